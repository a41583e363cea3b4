"""The paper's boosting: trees on reweighted events, one after the other.

Flows in: a `Dataset` (or its parts, on disk or on a cluster) and `Settings`. Flows out: a `Training`.
"""

from qbdt.boosting.crossed import CrossTraining
from qbdt.boosting.monitor import Monitor, TreeReport, score_significance
from qbdt.boosting.outofcore import OutOfCore
from qbdt.boosting.parts import EventsInParts, parts_of
from qbdt.boosting.rows import described
from qbdt.boosting.settings import Settings
from qbdt.boosting.training import Training, train_paper

__all__ = [
    "CrossTraining",
    "EventsInParts",
    "Monitor",
    "OutOfCore",
    "Settings",
    "Training",
    "TreeReport",
    "described",
    "parts_of",
    "score_significance",
    "train_paper",
]
