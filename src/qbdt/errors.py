"""The errors that a user can cause, all below one base.

Owns the exception types and nothing else. The command line turns every `QBDTError` into one line and exit code 2;
anything else that escapes is a bug in qbdt.
"""

from __future__ import annotations

__all__ = [
    "ClusterError",
    "ConfigError",
    "DataError",
    "ExpressionError",
    "FitError",
    "MissingDependencyError",
    "ModelFileError",
    "OutputError",
    "QBDTError",
]


class QBDTError(Exception):
    """Base of every error that a user can cause; the message names what is wrong and what to do."""


class ConfigError(QBDTError):
    """An analysis file that cannot be understood: unknown key, wrong type, contradicting settings."""


class DataError(QBDTError, ValueError):
    """Events that cannot be used: missing file or column, NaN, no signal, a variation with other features."""


class ExpressionError(QBDTError, ValueError):
    """A selection, weight or derived column that cannot be parsed or evaluated."""


class ModelFileError(QBDTError):
    """A model file that is damaged, truncated, or written by a newer version."""


class FitError(QBDTError):
    """A likelihood fit that cannot be set up or does not converge."""


class ClusterError(QBDTError):
    """A Dask cluster that cannot be reached, or is lost."""


class OutputError(QBDTError):
    """A file that cannot be written, or would be overwritten."""


class MissingDependencyError(QBDTError, ImportError):
    """An optional package is not installed; the message says which extra brings it."""
