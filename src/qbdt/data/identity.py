"""Which event a row is: whole numbers from its identifiers, and hashes of them that are the same on every machine.

Where files have no identifiers, readers make some: the position of a row, and the bits of columns that tell events
apart. They have names that no branch has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.data.columns import require_unmasked
from qbdt.errors import DataError

DISTINCT = 0.5
"""Smallest share of different hashes with which identifiers count as telling events apart: an event number that two
generators both count from one still does, the number of a run or of a fold does not."""

FEW_SHARE = 0.05
"""The same for sums over rows with one identifier, in which an event and its shifted copy cancel: event numbers that
start again in every file serve for that, as long as each occurs in some twenty files at most."""


def whole_numbers(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Identifier values as 64-bit integers; floating-point columns are accepted where every value is whole."""
    if values.dtype.kind in "bi":
        return values.astype(np.int64, copy=False)
    if values.dtype.kind == "u":
        usable = values <= np.iinfo(np.int64).max
    elif values.dtype.kind == "f":
        exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)  # from it on neighbouring whole numbers become one
        usable = np.isfinite(values) & (np.abs(values) < exact) & (np.trunc(values) == values)
    else:
        raise DataError(f"identifier column {name} has type {values.dtype}: whole numbers are needed")
    bad = np.flatnonzero(~usable)
    if bad.size:
        raise DataError(
            f"identifier column {name} has the value {values[bad[0]]} in row {bad[0]}: a whole number that "
            f"{'64 bits hold with a sign' if values.dtype.kind == 'u' else f'{values.dtype} holds exactly'} is needed"
        )
    return values.astype(np.int64)


def number_identifiers(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers of identifiers: whole values as they are, the bits of any others.

    So events may be told apart by the content of columns that no source moves.

    Examples
    --------
    >>> number_identifiers("eta", np.array([7.0, 0.5])).tolist()
    [7, 4602678819172646912]
    """
    if values.dtype.kind != "f":
        return whole_numbers(name, values)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(f"{name} has the value {values[bad[0]]} in row {bad[0]}: every event needs an identifier")
    whole = (np.trunc(values) == values) & (np.abs(values) < 2.0**53)
    return np.where(whole, np.where(whole, values, 0).astype(np.int64), take_bits(values))


def list_identifiers(event_id: Any, n_rows: int, context: str = "") -> dict[str, NDArray[Any]]:
    """Columns of identifiers that come as an array of rows, or of rows × numbers, under names that no table has."""
    values = require_unmasked(event_id, f"{context}event_id")
    if values.ndim not in (1, 2) or len(values) != n_rows or not values.size:
        raise DataError(f"{context}event_id has shape {values.shape}: each of the {n_rows} rows needs an identifier")
    table = values.reshape(n_rows, -1)
    return {f"event_id({i})": table[:, i] for i in range(table.shape[1])}


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


def are_shared_by_few(hashes: NDArray[np.uint64]) -> bool:
    """Whether a hash belongs to few rows on average."""
    return np.unique(hashes).size >= FEW_SHARE * hashes.size


POSITION = ("position(file)", "position(row)")
"""Which file of a sample a row stands in, and where, before any selection."""

_BITS = re.compile(r"bits\((?P<column>.+)\)")


def name_bits(column: str) -> str:
    """Name of the identifier that holds the bits of a column.

    Examples
    --------
    >>> name_bits("eta"), bits_column("bits(eta)"), bits_column("eta")
    ('bits(eta)', 'eta', None)
    """
    return f"bits({column})"


def bits_column(identifier: str) -> str | None:
    """Column whose bits an identifier holds; None for any other identifier."""
    found = _BITS.fullmatch(identifier)
    return found["column"] if found else None


def take_bits(values: NDArray[Any]) -> NDArray[np.int64]:
    """Bits of numbers in double precision as whole numbers: the same for a value in any file, whatever its type.

    Examples
    --------
    >>> bool((take_bits(np.array([0.5], np.float32)) == take_bits(np.array([0.5]))).all())
    True
    """
    numbers = values.astype(np.float64) + 0.0  # −0 becomes 0
    numbers[np.isnan(numbers)] = np.nan  # one of the many bit patterns that mean it
    return numbers.view(np.int64)
