"""Front door of training.paper."""

from qbdt.trees.growth import Split, Yield

__all__ = ["Split", "Yield"]
