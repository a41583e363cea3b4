"""Boosted decision trees trained on the expected significance, with systematic uncertainties inside training."""

from importlib.metadata import version

from qbdt.dataset import Dataset, Events, Sample, Systematic

__all__ = ["Dataset", "Events", "Sample", "Systematic"]
__version__ = version("qbdt")
