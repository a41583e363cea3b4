"""Boosted decision trees trained on the expected significance, with systematic uncertainties inside training."""

from importlib.metadata import version

__version__ = version("qbdt")
