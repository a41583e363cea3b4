"""Front door of training."""

from qbdt.training.cross_trained import CrossTrainedModel
from qbdt.training.folded import FoldedEnsemble
from qbdt.training.inputs import describe_events
from qbdt.training.methods import train
from qbdt.training.model import End, Ending, TrainedModel
from qbdt.training.monitor import Callback, Monitor
from qbdt.training.settings import Settings

__all__ = [
    "Callback",
    "CrossTrainedModel",
    "End",
    "Ending",
    "FoldedEnsemble",
    "Monitor",
    "Settings",
    "TrainedModel",
    "describe_events",
    "train",
]
