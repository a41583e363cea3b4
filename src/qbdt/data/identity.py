"""Which event a row is: whole numbers from its identifiers, and hashes of them that are the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.errors import DataError

__all__ = ["are_distinct", "hash_columns", "mix_salt", "whole_numbers"]

DISTINCT = 0.5
"""Smallest share of different hashes with which identifiers count as telling events apart: an event number that two
generators both count from one still does, the number of a run or of a fold does not."""


def whole_numbers(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Identifier values as 64-bit integers; floating-point columns are accepted where every value is whole."""
    if values.dtype.kind in "bi":
        return values.astype(np.int64, copy=False)
    if values.dtype.kind == "u":
        usable = values <= np.iinfo(np.int64).max
    elif values.dtype.kind == "f":
        exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)  # beyond it neighbouring whole numbers become one
        usable = np.isfinite(values) & (np.abs(values) <= exact) & (np.trunc(values) == values)
    else:
        raise DataError(f"identifier column {name} has type {values.dtype}: whole numbers are needed")
    bad = np.flatnonzero(~usable)
    if bad.size:
        raise DataError(
            f"identifier column {name} has the value {values[bad[0]]} in row {bad[0]}: a whole number that "
            f"{'64 bits hold with a sign' if values.dtype.kind == 'u' else f'{values.dtype} holds exactly'} is needed"
        )
    return values.astype(np.int64)


def hash_columns(columns: Sequence[NDArray[np.int64]], salt: int = 0) -> NDArray[np.uint64]:
    """64-bit hash of rows of whole numbers: one round of splitmix64 for each column in turn, starting from `salt`."""
    state = np.full(len(columns[0]), salt % 2**64, dtype=np.uint64)
    for column in columns:
        state = _splitmix64(state ^ column.view(np.uint64))
    return state


def _splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of the generator of Steele, Lea and Flood (2014), with its constants.

    Every input bit flips about half of the output bits, so that neighbouring event numbers get unrelated hashes.
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def mix_salt(salt: int) -> int:
    """Spread a salt over all bits: salts that differ in few bits would only make neighbours change places."""
    return int(hash_columns([np.array([salt % 2**63])])[0])


def are_distinct(hashes: NDArray[np.uint64]) -> bool:
    """Whether most hashes differ."""
    return np.unique(hashes).size >= DISTINCT * hashes.size
