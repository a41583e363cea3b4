"""Events with their weights, samples, systematic sources and folds, from files or arrays.

In: files (`qbdt.data.readers`), arrays and tables in memory (`qbdt.data.columns`), or samples that ship
(`qbdt.data.samples`). Out: a `Dataset`, immutable, that gives nominal and varied `Events` per process, and the change
Δ_k that each `Systematic` makes; `qbdt.data.checks` finds probable faults.
"""

from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.expressions import Expression
from qbdt.data.flat_systematic import FlatSystematic, Kind
from qbdt.data.folds import FoldRule, HashFolds, ModuloFolds, SplitFolds
from qbdt.data.from_target import TARGET, from_target
from qbdt.data.sample import Role, Sample, Tally
from qbdt.data.systematic import Systematic
from qbdt.data.variations import Variation

__all__ = [
    "TARGET",
    "Dataset",
    "Events",
    "Expression",
    "FlatSystematic",
    "FoldRule",
    "HashFolds",
    "Kind",
    "ModuloFolds",
    "Role",
    "Sample",
    "SplitFolds",
    "Systematic",
    "Tally",
    "Variation",
    "from_target",
]
