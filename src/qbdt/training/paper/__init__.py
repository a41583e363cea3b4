"""Front door of training.paper."""

from qbdt.trees import Split, Yield

__all__ = ["Split", "Yield"]
