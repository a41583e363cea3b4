"""Values of a model file with the types they must have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from qbdt.errors import ModelFileError

__all__ = ["get", "names", "number", "numbers"]


def get(content: Mapping[str, Any], key: str, kind: type) -> Any:
    """Return the value of a key; refused where it is missing or of another type."""
    value = content.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelFileError(f"{key}: {'missing' if key not in content else 'wrong type'}")
    return value


def number(value: Any, what: str) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise ModelFileError(f"{what}: {value!r} is not a finite number")
    return float(value)


def numbers(content: Mapping[str, Any], key: str) -> tuple[float, ...]:
    """Return a list of finite numbers."""
    return tuple(number(value, key) for value in get(content, key, list))


def names(content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of different names."""
    found = tuple(get(content, key, list))
    if not all(isinstance(name, str) for name in found) or len(set(found)) < len(found):
        raise ModelFileError(f"{key}: different names are needed")
    return found


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False
