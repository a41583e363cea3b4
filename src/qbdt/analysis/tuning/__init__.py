"""The search for training settings: in go events and an analysis, out come trials and a `training:` section.

`NestedFolds` divides events so that settings are never chosen on events that are fitted.
"""

from qbdt.analysis.tuning.nested_folds import Cells, NestedFolds, Scorer, score_by_fold
from qbdt.analysis.tuning.result import Tuning, write_tuning
from qbdt.analysis.tuning.search import tune

__all__ = ["Cells", "NestedFolds", "Scorer", "Tuning", "score_by_fold", "tune", "write_tuning"]
