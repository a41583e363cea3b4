"""Samples, systematic sources and folds: the types that flow through everything else."""

from qbdt.dataset.dataset import Dataset, Role, Sample, Tally
from qbdt.dataset.events import Events
from qbdt.dataset.faults import Finding, find_faults
from qbdt.dataset.folds import FoldRule, HashFolds, ModuloFolds, SplitFolds
from qbdt.dataset.summary import DatasetSummary
from qbdt.dataset.systematic import FlatSystematic, Kind, Replaced, Reweighted, Scaled, Systematic, Variation

__all__ = [
    "Dataset",
    "DatasetSummary",
    "Events",
    "Finding",
    "FlatSystematic",
    "FoldRule",
    "HashFolds",
    "Kind",
    "ModuloFolds",
    "Replaced",
    "Reweighted",
    "Role",
    "Sample",
    "Scaled",
    "SplitFolds",
    "Systematic",
    "Tally",
    "Variation",
    "find_faults",
]
