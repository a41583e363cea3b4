"""Errors that people see, what checks of input share, and the gate for optional packages.

Every message names what is wrong, where, and what to do. The library raises these; the command line prints one line.
"""

from __future__ import annotations

import difflib
import importlib
import math
import re
from collections import Counter
from collections.abc import Iterable
from numbers import Real
from types import ModuleType
from typing import Any

__all__ = [
    "EXTRAS",
    "MALFORMED",
    "ClusterError",
    "ConfigError",
    "DataError",
    "DeviceError",
    "ExpressionError",
    "FitError",
    "MissingDependencyError",
    "ModelFileError",
    "OutputError",
    "QBDTError",
    "find_repeated",
    "has_half_character",
    "hint_at",
    "is_number",
    "require",
    "require_known",
]


MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What plain data of a damaged or foreign file lead to where they are read as records of ours."""


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
    """A Dask cluster, or a process on this machine, that cannot be reached, or is lost."""


class DeviceError(QBDTError):
    """A GPU that is not there, cannot be used, or has too little memory."""


class OutputError(QBDTError):
    """A file that cannot be written, or would be overwritten."""


class MissingDependencyError(QBDTError, ImportError):
    """An optional package is not installed; the message says which extra brings it."""


EXTRAS = {
    "cupy": "cuda",
    "dask": "dask",
    "distributed": "dask",
    "dask_awkward": "dask",
    "lightgbm": "baselines",
    "onnx": "export",
    "onnxruntime": "export",
    "optuna": "tune",
    "pythia8mc": "generate",
    "xgboost": "baselines",
}
"""Import name of each optional package and the extra of qbdt that installs it."""


def find_repeated(names: Iterable[str]) -> list[str]:
    """Names that occur more than once, sorted.

    Examples
    --------
    >>> find_repeated(["b", "a", "b", "c", "a"])
    ['a', 'b']
    """
    return sorted(name for name, times in Counter(names).items() if times > 1)


def has_half_character(text: str) -> bool:
    r"""Whether a text holds surrogates, which escapes can make: it can be neither written nor shown.

    Examples
    --------
    >>> has_half_character("\ud83d"), has_half_character("τ")
    (True, False)
    """
    return re.search("[\ud800-\udfff]", text) is not None


def hint_at(name: str, known: Iterable[str], most: int = 30) -> str:
    """End of a message about an unknown name: the known one that is most like it, or all that there are.

    Examples
    --------
    >>> hint_at("pt_lepp", ["pt_lep", "eta"]), hint_at("x", ["pt_lep", "eta"])
    ('did you mean pt_lep?', 'there are: pt_lep, eta')
    >>> hint_at("PT_LEP", ["pt_lep", "eta"])
    'did you mean pt_lep?'
    """
    names = list(known)
    same = [one for one in names if one.casefold() == name.casefold()]
    close = same or difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return f"there are: {', '.join(names[:most]) or 'none'}{more}"


def require_known(key: str, names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse names, given under a key of the settings, that are not among those known."""
    known = list(known)
    for name in names:
        if name not in known:
            raise ConfigError(f"{key}: no {what} {name}; {hint_at(name, known)}")


def is_number(value: Any) -> bool:
    """Whether a value is a finite number that a float holds; True and False are none.

    Examples
    --------
    >>> is_number(1), is_number(float("nan")), is_number(True), is_number(10**400)
    (True, False, False, False)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def require(module: str, purpose: str) -> ModuleType:
    """Import an optional package, or say what to install.

    Parameters
    ----------
    module
        Import name, for example ``"pythia8mc"``.
    purpose
        What needs it, for the message: ``"qbdt generate"``.

    Examples
    --------
    >>> require("json", "an example").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.partition(".")[0]
        extra = EXTRAS.get(top)
        install = f"pip install 'qbdt[{extra}]'" if extra else f"pip install {top}"
        raise MissingDependencyError(f"{purpose} needs the package {top}, which is not installed: {install}") from error
