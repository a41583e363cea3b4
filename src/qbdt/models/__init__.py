"""Front door of models."""

from qbdt.models.cross_training import cross_train, train_into
from qbdt.models.model_file import read_any_model, read_cross_trained, read_model, write_model

__all__ = ["cross_train", "read_any_model", "read_cross_trained", "read_model", "train_into", "write_model"]
