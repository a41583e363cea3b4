"""Boosting weights: one factor per leaf, then fixed point for the next tree."""

from __future__ import annotations

import numpy as np
from numba import njit

from qbdt.arrays import Columns, Fixed, Floats, Rows

ALL_ROWS = -1
"""Threshold of a draw of rows that takes all of them."""

BLOCK = 2048
"""Rows treated at a time, so that the weights that all leaves' rows touch stay in cache."""


@njit(cache=True, nogil=True)
def splitmix(seed: int, position: int) -> np.int64:
    """Return 53 random bits that depend on seed and position only (splitmix64)."""
    z = np.uint64(seed) + (np.uint64(position) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.int64(z >> np.uint64(11))


@njit(cache=True, nogil=True)
def _first_from(rows: Rows, begin: int, end: int, low: int) -> int:
    """Return the first place in begin … end − 1, where rows increase, that has a row ≥ low, or `end`."""
    while begin < end:
        middle = (begin + end) // 2
        if rows[middle] < low:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def boost_rows(
    current: Floats,
    start: int,
    rows: Rows,
    leaves: Fixed,
    factors: Floats,
    low: int,
    high: int,
) -> None:
    """Multiply the weights of one segment's rows low … high − 1 by the factor of their leaf.

    `current` has one number per row, from row `start` on; `leaves` are begin and end of each leaf's range in `rows`.
    """
    position = np.empty(leaves.shape[0], np.int64)
    for leaf in range(leaves.shape[0]):
        position[leaf] = _first_from(rows, leaves[leaf, 0], leaves[leaf, 1], low)
    for block in range(low, high, BLOCK):
        block_end = min(block + BLOCK, high)
        for leaf in range(leaves.shape[0]):
            factor, end, i = factors[leaf], leaves[leaf, 1], position[leaf]
            while i < end and rows[i] < block_end:
                current[np.uint64(rows[i] - start)] *= factor
                i += 1
            position[leaf] = i


@njit(cache=True, nogil=True)
def quantise_weights(current: Floats, fixed: Fixed, scale: float) -> np.int64:
    """Fixed point of one weight per row; returns Σ of absolute values."""
    total = np.int64(0)
    for i in range(current.size):
        value = np.int64(np.rint(current[i] * scale))
        fixed[i] = value
        total += abs(value)
    return total


@njit(cache=True, nogil=True)
def quantise_columns(initial: Floats, growth: Floats, columns: Columns, width: int, scale: float) -> np.int64:
    """Fixed point of initial × growth of each row, into the first of its `width` columns; returns the largest |…|.

    None is above 2^COLUMN_BITS: 32-bit integers and unsigned places are what runs in vectors.
    """
    largest = np.int32(0)
    n_columns = initial.size // growth.size
    for i in range(growth.size):
        factor = growth[i] * scale
        source, target = np.uint64(i * n_columns), np.uint64(i * width)
        for c in range(np.uint64(n_columns)):
            value = np.int32(np.rint(initial[source + c] * factor))
            columns[target + c] = value
            largest = max(largest, abs(value))
    return np.int64(largest)


@njit(cache=True, nogil=True)
def quantise_squares(current: Floats, columns: Columns, width: int, column: int, scale: float) -> np.int64:
    """Fixed point of the square of each row's weight, into one of its `width` columns; returns the largest."""
    largest = np.int64(0)
    for i in range(current.size):
        value = np.int64(np.rint(current[i] * current[i] * scale))
        columns[i * width + column] = value
        largest = max(largest, value)
    return largest


@njit(cache=True, nogil=True)
def drop_rows(
    fixed: Fixed | Columns, width: int, n_dropped: int, seed: int, threshold: int, low: int, high: int
) -> None:
    """Set the first columns of rows that a tree's subsample leaves out to zero: `splitmix(seed, row) ≥ threshold`.

    Rows are low … high − 1 of their segment; `fixed` starts with row low.
    """
    for row in range(low, high):
        if splitmix(seed, row) >= threshold:
            for c in range(n_dropped):
                fixed[(row - low) * width + c] = 0
