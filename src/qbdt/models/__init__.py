"""Trained models and their files.

In: a trained model, or a dataset to train into a file. Out: a model file, which is data and never code, and the model
read from one. `qbdt.models.export` writes the formats of other programs.
"""

from qbdt.models.cross_training import cross_train, require_writable, train_into
from qbdt.models.file_text import is_model_text
from qbdt.models.model_file import read_any_model, read_cross_trained, read_model, require_model_place, write_model
from qbdt.models.scoring import PlacedModel, classify_events, place_model, score_events

__all__ = [
    "PlacedModel",
    "classify_events",
    "cross_train",
    "is_model_text",
    "place_model",
    "read_any_model",
    "read_cross_trained",
    "read_model",
    "require_model_place",
    "require_writable",
    "score_events",
    "train_into",
    "write_model",
]
