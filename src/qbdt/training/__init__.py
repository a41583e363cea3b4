"""From a dataset and settings to a trained model.

In: a `Dataset`, or events on disk or on a cluster (`qbdt.training.partitions`), and `Settings`. Out: a `TrainedModel`,
whose `ensemble` scores events; a `CrossTrainedModel` holds one for each fold.
"""

from qbdt.training.ensembles import FoldedEnsemble, Model, SingleModel, gain_shares
from qbdt.training.methods import describe_trained, train
from qbdt.training.model import AnyTrainedModel, CrossTrainedModel, End, TrainedModel
from qbdt.training.monitor import Callback, Monitor
from qbdt.training.partner import STRENGTH, Partner
from qbdt.training.settings import Settings
from qbdt.training.weight_smoothing import smooth_nominal

__all__ = [
    "STRENGTH",
    "AnyTrainedModel",
    "Callback",
    "CrossTrainedModel",
    "End",
    "FoldedEnsemble",
    "Model",
    "Monitor",
    "Partner",
    "Settings",
    "SingleModel",
    "TrainedModel",
    "describe_trained",
    "gain_shares",
    "smooth_nominal",
    "train",
]
