"""Every array layout of the training core, once, with the reason for its precision."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BINS",
    "COLUMN_BITS",
    "FEATURES_PER_WORD",
    "MISSING",
    "MISSING_LEFT",
    "MISSING_RIGHT",
    "NODE",
    "NONE_MISSING",
    "SUM_BITS",
    "Codes",
    "Columns",
    "Fixed",
    "Floats",
    "Nodes",
    "Rows",
    "Words",
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

Words: TypeAlias = NDArray[np.uint64]
"""Bin codes as (word, row): eight features to a word."""

Codes: TypeAlias = NDArray[np.uint8]
"""The same memory as (word, row, feature in word)."""

Fixed: TypeAlias = NDArray[np.int64]
"""Fixed-point weights and their sums: 64-bit integers, because sums of floats depend on their order."""

Columns: TypeAlias = NDArray[np.int32]
"""Further weight columns in fixed point, see COLUMN_BITS; their sums are `Fixed`."""

Rows: TypeAlias = NDArray[np.int32]
"""Row numbers: four bytes, since they are moved at every split; limits a training to 2^31 rows."""

Floats: TypeAlias = NDArray[np.float64]
"""Floats and significances: double precision, because Q is a small difference of large terms."""

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
