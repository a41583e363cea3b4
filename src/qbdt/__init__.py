"""Boosted decision trees trained on the expected significance, with systematic uncertainties inside training.

Names for notebooks are here, all others in the rooms (`qbdt.data`, `qbdt.training`, …): see docs/architecture.md.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers know better; `typing` is slow to import
if TYPE_CHECKING:
    from typing import Any

    import qbdt.report.figures as figures  # rooms are entered through their doors
    from qbdt.analysis import load, read_analysis, run_analysis
    from qbdt.data import Dataset, Events, HashFolds, ModuloFolds, Sample, Systematic
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
    "Dataset": "qbdt.data",
    "Events": "qbdt.data",
    "HashFolds": "qbdt.data",
    "ModuloFolds": "qbdt.data",
    "Sample": "qbdt.data",
    "Systematic": "qbdt.data",
    "CrossTrainedClassifier": "qbdt.estimator",
    "QBDTClassifier": "qbdt.estimator",
    "QBDTRegressor": "qbdt.estimator",
    "FitSettings": "qbdt.inference",
    "fit_scores": "qbdt.inference",
    "load": "qbdt.analysis",
    "read_analysis": "qbdt.analysis",
    "run_analysis": "qbdt.analysis",
}
"""Where the names are: imported when they are asked for, since the command line catches Ctrl-C only after this file."""

ROOMS = ("analysis", "data", "errors", "estimator", "inference", "models", "report", "studies", "training", "trees")
"""Rooms that may be written as `qbdt.data` after `import qbdt`."""


def __getattr__(name: str) -> Any:
    """Import what is slow to import only when it is asked for, so that `import qbdt` stays quick."""
    if name in LAZY:
        return getattr(import_module(LAZY[name]), name)
    if name == "figures":
        return import_module("qbdt.report.figures")
    if name in ROOMS:
        return import_module(f"qbdt.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("qbdt")
    raise AttributeError(f"module 'qbdt' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
