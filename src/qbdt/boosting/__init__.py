"""The paper's boosting: trees on reweighted events, one after the other.

Flows in: a `Dataset` and `Settings`. Flows out: a `Training` with its `Ensemble`.
"""

from qbdt.boosting.crossed import CrossTraining
from qbdt.boosting.monitor import Monitor, TreeReport, score_significance
from qbdt.boosting.settings import Settings
from qbdt.boosting.training import Training, described, train

__all__ = ["CrossTraining", "Monitor", "Settings", "Training", "TreeReport", "described", "score_significance", "train"]
