"""Columns of events as few matrices, without copies, in chunks of rows: the form that kernels read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Indices
from qbdt.data import Events

CHUNK = 16384
"""Rows encoded at a time by one thread."""


def chunk_ranges(n_rows: int) -> list[tuple[int, int]]:
    """Begin and end of each chunk of rows."""
    return [(begin, min(begin + CHUNK, n_rows)) for begin in range(0, n_rows, CHUNK)]


def chunk_matrices(
    events: Events, features: Sequence[str], begin: int, end: int
) -> Iterator[tuple[NDArray[Any], Indices, NDArray[np.int32]]]:
    """Return the columns of some rows as few matrices without copying, each with its feature numbers and row numbers.

    Columns that lie at equal distances in memory, as those of one table do, are read together as one matrix. A matrix
    of all columns of the events comes whole, with −1 for those that are not asked for: kernels are then compiled for
    one layout, whichever features are in use.
    """
    columns, rows = events.in_place()
    if isinstance(rows, range):
        chosen = rows[begin:end]
        low, high = (min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1]) + 1) if chosen else (0, 0)
        numbers: NDArray[Any] = np.arange(chosen.start, chosen.stop, chosen.step)
    else:
        numbers = rows[begin:end]
        low, high = (int(numbers.min()), int(numbers.max()) + 1) if numbers.size else (0, 0)
    local = (numbers - low).astype(np.int32)
    numbers_of = {name: i for i, name in enumerate(features)}
    candidates = (events.features, tuple(features)) if set(features) <= set(events.features) else (tuple(features),)
    for names in candidates:
        together = _as_one_matrix([columns[name][low:high] for name in names])
        if together is not None:
            yield together, np.array([numbers_of.get(name, -1) for name in names], dtype=np.int64), local
            return
    for i, name in enumerate(features):
        array = _native(columns[name][low:high])
        yield array[:, np.newaxis], np.array([i], dtype=np.int64), local


def _native(column: NDArray[Any]) -> NDArray[Any]:
    return column if _is_native(column) else column.astype(np.float64)


def _is_native(column: NDArray[Any]) -> bool:
    return column.dtype.isnative and column.dtype.itemsize <= 8


def _as_one_matrix(arrays: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
    first = arrays[0]
    if not _is_native(first):
        return None
    if len(arrays) < 2:
        return first[:, np.newaxis]
    if any(a.dtype != first.dtype or a.strides != first.strides for a in arrays):
        return None
    addresses = np.array([a.__array_interface__["data"][0] for a in arrays], dtype=np.int64)
    steps = np.diff(addresses)
    if np.any(steps != steps[0]):
        return None
    if not all(a.base is not None and a.base is first.base for a in arrays):
        return None
    return np.lib.stride_tricks.as_strided(
        first, shape=(first.size, len(arrays)), strides=(first.strides[0], int(steps[0])), writeable=False
    )
