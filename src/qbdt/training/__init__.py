"""Front door of training."""

from qbdt.training.cross_trained import CrossTraining
from qbdt.training.folded import FoldedEnsemble
from qbdt.training.inputs import described
from qbdt.training.methods import train
from qbdt.training.monitor import Callback, Monitor
from qbdt.training.settings import Settings

__all__ = [
    "Callback",
    "CrossTraining",
    "FoldedEnsemble",
    "Monitor",
    "Settings",
    "described",
    "train",
]
