"""Boosted decision trees trained on the expected significance, with systematic uncertainties inside training."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from qbdt.data import Dataset, Events, Sample, Systematic

if TYPE_CHECKING:
    from qbdt.estimator import CrossTrainedClassifier, QBDTClassifier

__all__ = ["CrossTrainedClassifier", "Dataset", "Events", "QBDTClassifier", "Sample", "Systematic"]
__version__ = version("qbdt")


def __getattr__(name: str) -> Any:
    """Import what needs the compiler only when it is asked for, so that `import qbdt` stays quick."""
    if name in ("CrossTrainedClassifier", "QBDTClassifier"):
        return getattr(import_module("qbdt.estimator"), name)
    raise AttributeError(f"module 'qbdt' has no attribute {name!r}")
