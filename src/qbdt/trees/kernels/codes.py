"""Bin codes of values, and a hash of rows that does not depend on their order or on the order of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from qbdt.arrays import MISSING, Fixed, Floats, Rows

GUIDE_CELLS = 1024
"""Equal cells between the first and the last edge of a feature; each knows how many edges lie below it."""

MAX_WALK = 8
"""Where a cell has more edges than this (a few far values stretch the cells) edges are searched by halving instead."""

BLOCK = 256
"""Rows encoded at a time, so that they stay in cache while one feature after the other is read."""


@njit(cache=True, nogil=True)
def _cell(x: float, low: float, inverse: float) -> np.int64:
    """Cell of a value: never falls when the value rises; below the first edge 0, at or above the last the highest."""
    position = (x - low) * inverse + 1.0
    position = position if position >= 0.0 else 0.0
    return np.int64(position if position <= GUIDE_CELLS + 1.0 else GUIDE_CELLS + 1.0)


@njit(cache=True, nogil=True)
def encode(
    values: NDArray[Any],
    rows: Rows,
    features: Fixed,
    edges: Floats,
    low: Floats,
    inverse: Floats,
    guides: NDArray[np.uint8],
    most: Fixed,
    out: NDArray[np.uint8],
    places: Fixed,
    step: int,
) -> None:
    """Bin codes of some rows: the number of edges at or below a value, or MISSING for NaN.

    `values` are (row, column), of which `rows` are read; `features` are those of the columns, −1 where a column is not
    wanted. `edges` increase, padded with NaN to 256, so that no search runs past them; `low`, `inverse`, `guides`,
    `most` are the cells that shorten the search (see `Binning.lookup`). Codes of a feature go to `out`, flat, from its
    place on, `step` apart.
    """
    apart = np.uint64(step)
    for block in range(0, rows.size, BLOCK):
        block_end = min(block + BLOCK, rows.size)
        for column in range(features.size):
            feature = features[column]
            if feature < 0:
                continue
            target = out[places[feature] :]
            own, guide = edges[feature], guides[feature]
            bottom, scale = low[feature], inverse[feature]
            if most[feature] <= MAX_WALK:
                for i in range(block, block_end):
                    x = np.float64(values[rows[i], column])
                    code = np.int64(guide[_cell(x, bottom, scale)])
                    code += np.int64(own[code] <= x)
                    while own[code] <= x:
                        code += 1
                    target[np.uint64(i) * apart] = code if x == x else MISSING
            else:
                for i in range(block, block_end):
                    x = np.float64(values[rows[i], column])
                    code = np.int64(0)
                    half = 128
                    while half > 0:
                        code += half * np.int64(own[code + half - 1] <= x)
                        half >>= 1
                    target[np.uint64(i) * apart] = code if x == x else MISSING


@njit(cache=True, nogil=True)
def hash_rows(values: NDArray[Any], rows: Rows, hashes: NDArray[np.uint64]) -> None:
    """Add to the hash of each row the mixed bits of its values; the sum does not depend on the order of columns."""
    multiplier = np.uint64(0x9E3779B97F4A7C15)
    for i in range(rows.size):
        row = rows[i]
        total = hashes[i]
        for column in range(values.shape[1]):
            z = np.float64(values[row, column]).view(np.uint64) * multiplier
            z = (z ^ (z >> np.uint64(29))) * multiplier
            total += z ^ (z >> np.uint64(32))
        hashes[i] = total
