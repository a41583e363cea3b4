"""Every array layout of the training core, once, with the reason for its precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "BINS",
    "COLUMN_BITS",
    "FEATURES_PER_WORD",
    "LARGEST_YIELD",
    "MISSING",
    "MISSING_LEFT",
    "MISSING_RIGHT",
    "NODE",
    "NONE_MISSING",
    "SUM_BITS",
    "Categories",
    "Codes",
    "Columns",
    "Fixed",
    "Floats",
    "Indices",
    "Nodes",
    "Rows",
    "Words",
    "pack_codes",
    "unpack_codes",
]

BINS = 256
"""Bin codes per feature, so that one fits a byte; histograms have this many slots for every feature."""

MISSING = BINS - 1
"""Bin code of a missing value; values use the codes below it."""

MISSING_RIGHT, MISSING_LEFT, NONE_MISSING = 0, 1, 2
"""Where missing values of the cut feature go; the last where the node has none."""

FEATURES_PER_WORD = 8
"""Bin codes are kept eight features to a 64-bit word: one load serves eight histogram additions."""

SUM_BITS = 61
"""Fixed-point weights are scaled so that no sum of absolute values over any set of rows and channels passes 2^61.
Sums, and differences of two sums, then never overflow, and addition is exact and independent of order."""

COLUMN_BITS = 30
"""Further weight columns of a row (Δ of a source, squared weights, numbers of simulated events) are 32-bit integers, of
all rows the largest below 2^30: they are rounded at 10^-9 of it, and sums of 2^31 of them fit 64 bits. They enter σ_b
and limits on simulated events only, never s and b; half the memory is what reading them at random costs."""

LARGEST_YIELD = 1e11
"""Expected events of a region up to which a likelihood is fitted: its logarithm is about 30 times as large, and double
precision knows that to 10^-3, as a fit needs it."""

Words: TypeAlias = NDArray[np.uint64]
"""Bin codes as (word, row): eight features to a word."""

Codes: TypeAlias = NDArray[np.uint8]
"""The same memory as (word, row, feature in word)."""

Fixed: TypeAlias = NDArray[np.int64]
"""Fixed-point weights and their sums: 64-bit integers, because sums of floats depend on their order."""

Indices: TypeAlias = NDArray[np.int64]
"""Places and counts that kernels read: numbers of features, channels and bins, ranges of rows."""

Columns: TypeAlias = NDArray[np.int32]
"""Further weight columns in fixed point, see COLUMN_BITS; their sums are `Fixed`."""

Rows: TypeAlias = NDArray[np.int32]
"""Row numbers: four bytes, since they are moved at every split; limits a training to 2^31 rows."""

Floats: TypeAlias = NDArray[np.float64]
"""Weights and significances: double precision, because Q is a small difference of large terms."""

Categories: TypeAlias = Mapping[str, Floats]
"""For each categorical feature its values, increasing; a value's place among them is its bin code."""

NODE = np.dtype(
    [
        ("feature", np.int32),  # index of the feature that is cut on; −1 for a leaf
        ("threshold", np.float64),  # x < threshold goes left; exactly one of the bin edges; 0 where categories divide
        ("missing_left", np.bool_),  # where a missing value goes
        ("left", np.int32),  # index of the children; −1 for a leaf
        ("right", np.int32),
        ("depth", np.int32),
        ("s", np.float64),  # yields with signal and background each scaled to one event
        ("b", np.float64),
        ("sigma2", np.float64),  # σ_b², eq:sigmab, with MC statistics where asked for
        ("q", np.float64),  # Q of eq:Q
        ("gain", np.float64),  # ΔQ of the split; 0 for a leaf
        ("value", np.float64),  # output of the node as a leaf: 2p − 1 for the paper's method
        ("categories", np.uint64, (BINS // 64,)),  # one bit per category that goes left; no bit where a cut divides
    ]
)
"""One node of a tree; node 0 is the root and children follow their parents."""

Nodes: TypeAlias = NDArray[np.void]


def pack_codes(codes: ArrayLike) -> NDArray[np.uint64]:
    """Set of bin codes as bits, the layout of the field `categories` of a node.

    Examples
    --------
    >>> pack_codes([0, 2, 64])
    array([5, 1, 0, 0], dtype=uint64)
    """
    marked = np.zeros(BINS, dtype=np.uint8)
    marked[np.asarray(codes, dtype=np.intp)] = 1
    return np.packbits(marked, bitorder="little").view(np.dtype("<u8")).astype(np.uint64)


def unpack_codes(bits: ArrayLike) -> NDArray[np.intp]:
    """Bin codes of a set, increasing.

    Examples
    --------
    >>> unpack_codes(pack_codes([64, 0, 2]))
    array([ 0,  2, 64])
    """
    words = np.asarray(bits, dtype=np.dtype("<u8"))
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
