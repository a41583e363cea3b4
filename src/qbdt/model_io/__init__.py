"""The model file: one self-describing JSON text with features, bins, settings, trees and what it was trained on.

Flows in and out: a `Training` of either method, or a `CrossTraining` with the rule that divides its folds. Nothing in
a file is ever executed. Numbers are written with as many digits as give back the same bits. A file is written whole or
not at all, and on reading everything is checked: format, version, checksum, types, and that trees are trees.
"""

from qbdt.model_io.files import read_any_model, read_cross_trained, read_model, write_model
from qbdt.model_io.text import FORMAT_VERSION

__all__ = ["FORMAT_VERSION", "read_any_model", "read_cross_trained", "read_model", "write_model"]
