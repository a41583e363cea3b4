"""Numbers of a record, of the type and shape that their readers take for granted."""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.arrays import Floats

LARGEST = 1e30
"""Size of the numbers of results: what is larger is no result, and no axis of a figure holds it."""


def read_floats(values: Any, *shape: int) -> Floats:
    """Numbers of a record as an array of this shape; None is NaN.

    Examples
    --------
    >>> read_floats([1, None], 2)
    array([ 1., nan])
    """
    found = np.array(values, dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"numbers of shape {found.shape} in the place of {shape}")
    if np.any(np.abs(found[~np.isnan(found)]) > LARGEST):
        raise ValueError(f"a number beyond {LARGEST:g}")
    return found


def read_float(value: Any) -> float:
    """A number of a record."""
    return float(read_floats(value))
