"""Boosted decision trees trained on the expected significance, with systematic uncertainties inside training.

Names for notebooks are here, all others in the rooms (`qbdt.data`, `qbdt.training`, …): see docs/architecture.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from qbdt.data import Dataset, Events, HashFolds, ModuloFolds, Sample, Systematic

if TYPE_CHECKING:
    import qbdt.report.figures as figures  # rooms are entered through their doors
    from qbdt.analysis import load, read_analysis, run_analysis
    from qbdt.estimator import CrossTrainedClassifier, QBDTClassifier, QBDTRegressor
    from qbdt.inference import FitSettings, fit_scores

    __version__: str

__all__ = [
    "CrossTrainedClassifier",
    "Dataset",
    "Events",
    "FitSettings",
    "HashFolds",
    "ModuloFolds",
    "QBDTClassifier",
    "QBDTRegressor",
    "Sample",
    "Systematic",
    "figures",
    "fit_scores",
    "load",
    "read_analysis",
    "run_analysis",
]

LAZY = {
    "CrossTrainedClassifier": "qbdt.estimator",
    "QBDTClassifier": "qbdt.estimator",
    "QBDTRegressor": "qbdt.estimator",
    "FitSettings": "qbdt.inference",
    "fit_scores": "qbdt.inference",
    "load": "qbdt.analysis",
    "read_analysis": "qbdt.analysis",
    "run_analysis": "qbdt.analysis",
}
"""Names that need the compiler or a fit, and where they are: imported when they are asked for."""


def __getattr__(name: str) -> Any:
    """Import what is slow to import only when it is asked for, so that `import qbdt` stays quick."""
    if name in LAZY:
        return getattr(import_module(LAZY[name]), name)
    if name == "figures":
        return import_module("qbdt.report.figures")
    if name == "__version__":
        return import_module("importlib.metadata").version("qbdt")
    raise AttributeError(f"module 'qbdt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
