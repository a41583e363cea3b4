"""Front door of training.paper."""

from qbdt.training.paper.boosting import Training
from qbdt.trees.growth import Split, Yield

__all__ = ["Split", "Training", "Yield"]
