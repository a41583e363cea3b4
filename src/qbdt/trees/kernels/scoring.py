"""Scores and leaves from bin codes.

Codes are (feature, row), so that one comparison runs over neighbouring rows at once. A node sends a row right where
cut ≤ code ≤ last; `last` excludes the code for missing values where those go left.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from qbdt.arrays import Fixed, Floats

SMALL_LEAVES = 16
"""Trees up to this size are scored without branches: one bit per leaf that a row can still reach."""

CodeColumns = NDArray[np.uint8]
Integers = NDArray[np.int32]
Masks = NDArray[np.uint8] | NDArray[np.uint16]


@njit(cache=True, nogil=True)
def score_small_trees(
    codes: CodeColumns,
    first: Fixed,
    features: Integers,
    cuts: NDArray[np.uint8],
    spans: NDArray[np.uint8],
    masks: Masks,
    tables: Floats,
    scores: Floats,
) -> None:
    """Add the outputs of trees with at most eight leaves, or sixteen where masks have as many bits.

    Splits of tree t are first[t] … first[t + 1] − 1. A row goes right at a split where the code minus `cuts`, modulo
    256, is at most `spans`; it can then still reach the leaves in `masks`. `tables` has the output of each tree for a
    set of reachable leaves, of which the leftmost counts: 256 numbers for sets among the first eight leaves, then as
    many for sets of others alone.
    """
    n = scores.size
    reach = np.empty(n, masks.dtype)
    every = ~np.zeros(1, masks.dtype)[0]
    for tree in range(first.size - 1):
        reach[:] = every
        for split in range(first[tree], first[tree + 1]):
            column = codes[features[split]]
            cut, span, mask = np.int64(cuts[split]), np.int64(spans[split]), masks[split]
            for row in range(n):
                right = ((np.int64(column[row]) - cut) & 255) <= span
                reach[row] &= mask if right else every
        table = tables[tree]
        for row in range(n):
            low, high = np.int64(reach[row]) & 255, np.int64(reach[row]) >> 8
            scores[row] += table[low if low > 0 else 256 + high]


@njit(cache=True, nogil=True)
def find_leaves(
    codes: CodeColumns,
    root: int,
    features: Integers,
    cuts: Integers,
    lasts: Integers,
    lefts: Integers,
    rights: Integers,
    out: Integers,
) -> None:
    """Node that each row ends in, for the tree whose nodes start at `root`; children are counted from the root."""
    for row in range(out.size):
        node = root
        while features[node] >= 0:
            code = np.int32(codes[features[node], row])
            right = (code >= cuts[node]) & (code <= lasts[node])
            node = root + (rights[node] if right else lefts[node])
        out[row] = node - root


@njit(cache=True, nogil=True)
def score_trees(
    codes: CodeColumns,
    roots: Fixed,
    features: Integers,
    cuts: Integers,
    lasts: Integers,
    lefts: Integers,
    rights: Integers,
    outputs: Floats,
    scores: Floats,
) -> None:
    """Add the outputs of trees of any size; `roots` are their first nodes."""
    leaves = np.empty(scores.size, np.int32)
    for root in roots:
        find_leaves(codes, root, features, cuts, lasts, lefts, rights, leaves)
        for row in range(scores.size):
            scores[row] += outputs[root + leaves[row]]
