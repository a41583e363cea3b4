"""A whole tree of cuts judged by N²/(D + λ), grown in one call: what `TreeGrower` does, without Python between steps.

Inner folds are trained side by side by threads, and Python lets only one of them work at a time; so a fold that has one
thread to itself grows its trees here. Nodes are noted in the same records as those of a device (`growth.cu`).

Loops are written out as in `split_scan`, and for the same reason.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from qbdt.arrays import BINS, MISSING, MISSING_LEFT, NONE_MISSING, Codes, Fixed, Floats, Indices, Rows
from qbdt.training.kernels.pairs import RowWords, add_pairs, first_largest, pair_value, scan_pairs
from qbdt.trees.kernels import divide_in_place

FEATURE, CUT, MISSING_SIDE, LEFT_CHILD, GAIN = 0, 1, 2, 5, 8
LEFT_SUMS, SUMS = 3, 6
N_FIELDS = 9
"""Fields of the record of a node: `Record` in growth.cu. Sums take two, N and D."""


class NodeRows(NamedTuple):
    """Bin codes and pairs of all rows, the lists of rows in which nodes have their ranges, and room for a split.

    Codes are there twice. Histograms take all of a row, from words that lie side by side; splits take one of each row,
    from `codes`, (feature, row). So both touch the least memory, which is what most nodes wait for: their rows are
    scattered. The room is a list of rows, and whether rows with each code go right.
    """

    words: RowWords
    codes: Codes
    pairs: Fixed
    rows: Rows
    scratch: Rows
    goes_right: NDArray[np.uint8]


class PairRules(NamedTuple):
    """Features that may be cut on, their cuts; values of one unit of N and of D; λ; least D; most leaves and depth."""

    features: Indices
    n_cuts: Indices
    factor: Floats
    ridge: float
    least: float
    n_leaves: int
    depth: int


@njit(cache=True, nogil=True, error_model="numpy")
def _judge_node(histogram: Fixed, own: Fixed, noted: Floats, rules: PairRules) -> float:
    """Note the best cut of a node, whose sums are noted; return its gain, −∞ where no cut is allowed or gains."""
    sums = own[SUMS : SUMS + 2]
    value = max(pair_value(sums[0] * rules.factor[0], sums[1] * rules.factor[1], rules.ridge, -np.inf), 0.0)
    left = own[LEFT_SUMS : LEFT_SUMS + 2]
    found = scan_pairs(
        histogram, sums, value, rules.factor, rules.ridge, rules.least, rules.features, rules.n_cuts, left
    )
    noted[GAIN], own[FEATURE], own[CUT], own[MISSING_SIDE] = found
    return found[0] if found[0] > 0.0 and own[FEATURE] >= 0 else -np.inf


@njit(cache=True, nogil=True)
def _fill_table(own: Fixed, child: Fixed, unit: float, table: NDArray[np.uint8]) -> None:
    """Write 1 for each code that the cut of a node sends right; D of its children is in multiples of `unit`."""
    missing_left = own[MISSING_SIDE] == MISSING_LEFT
    if own[MISSING_SIDE] == NONE_MISSING:  # later missing values follow most of the yield
        missing_left = child[0, SUMS + 1] * unit > child[1, SUMS + 1] * unit
    for code in range(BINS):
        table[code] = code >= own[CUT]
    table[MISSING] = not missing_left


@njit(cache=True, nogil=True)
def _divide_node(given: NodeRows, node: int, ranges: Fixed, own: Fixed) -> bool:
    """Divide the rows of a node as noted; return whether the left child is the smaller one, or as large."""
    first = own[LEFT_CHILD]
    codes = given.codes[own[FEATURE]]
    middles = divide_in_place(codes, 1, given.goes_right, given.rows, node == 0, ranges[node], given.scratch)
    more = np.int64(0)
    for p in range(middles.size):
        ranges[first, p, 0], ranges[first + 1, p, 0] = ranges[node, p, 0], ranges[node, p, 0]
        ranges[first, p, 1], ranges[first, p, 2] = ranges[node, p, 1], middles[p]
        ranges[first + 1, p, 1], ranges[first + 1, p, 2] = middles[p], ranges[node, p, 2]
        more += (ranges[node, p, 2] - middles[p]) - (middles[p] - ranges[node, p, 1])
    return bool(more >= 0)


@njit(cache=True, nogil=True)
def _sum_node(given: NodeRows, n_features: int, node: int, ranges: Fixed, out: Fixed) -> None:
    """Sum the pairs of the rows of a node, over its trained ranges, into a histogram."""
    for i in range(out.size):
        out[i] = 0
    add_pairs(given.words, given.pairs, n_features, given.rows, node == 0, ranges, out)


@njit(cache=True, nogil=True)
def _note_children(own: Fixed, first: int, child: Fixed) -> None:
    """Note the place of the children of a node, and their sums."""
    own[LEFT_CHILD] = first
    for i in range(2):
        child[0, SUMS + i] = own[LEFT_SUMS + i]
        child[1, SUMS + i] = own[SUMS + i] - own[LEFT_SUMS + i]
        child[i, LEFT_CHILD] = -1


@njit(cache=True, nogil=True, error_model="numpy")
def grow_pair_tree(
    given: NodeRows,
    n_features: int,
    n_trained: int,
    rules: PairRules,
    ranges: Fixed,
    histograms: Fixed,
    record: Fixed,
    noted: Floats,
    depths: Indices,
) -> int:
    """Grow a tree best first; return its number of nodes.

    Parameters
    ----------
    given, rules, n_features, n_trained
        The rows, what decides on cuts, and the numbers of features and of first segments that are trained on.
    ranges, histograms
        Rows of each node as (node, segment, [segment, begin, end]), those of the root filled in; room for the
        histograms of one node per leaf.
    record, noted, depths
        Zeros, which receive the notes on each node, and how many cuts are above it; `noted` is the memory of `record`
        as floating-point numbers.
    """
    gains = np.empty(len(record), np.float64)  # of nodes that may be divided
    slots = np.empty(len(record), np.int64)  # where the histograms of these are
    slots[0] = 0
    root = slots[0]  # no literal: numba would compile once more what is given one
    _sum_node(given, n_features, root, ranges[0, :n_trained], histograms[0])
    record[0, LEFT_CHILD] = -1
    for code in range(BINS):
        for i in range(2):
            record[0, SUMS + i] += histograms[0, 2 * code + i]
    gains[0] = _judge_node(histograms[0], record[0], noted[0], rules)
    n_nodes = root + 1
    for n_splits in range(1, rules.n_leaves):
        found = first_largest(gains[:n_nodes])[1]  # of equals the first made
        if found == 0:
            break
        node = found - 1
        gains[node] = -np.inf
        child = record[n_nodes : n_nodes + 2]
        _note_children(record[node], n_nodes, child)
        _fill_table(record[node], child, rules.factor[1], given.goes_right)
        left_is_small = _divide_node(given, node, ranges, record[node])
        for i in range(n_nodes, n_nodes + 2):
            gains[i], depths[i] = -np.inf, depths[node] + 1
        n_nodes += 2
        if n_splits == rules.n_leaves - 1 or depths[n_nodes - 1] >= rules.depth:
            continue
        # The smaller child is summed over its rows; the larger one is the parent minus it, in the parent's memory.
        small, large = (n_nodes - 2, n_nodes - 1) if left_is_small else (n_nodes - 1, n_nodes - 2)
        slots[small], slots[large] = n_splits, slots[node]
        own, other = histograms[slots[small]], histograms[slots[large]]
        _sum_node(given, n_features, small, ranges[small, :n_trained], own)
        for i in range(own.size):
            other[i] -= own[i]
        for i in range(n_nodes - 2, n_nodes):
            gains[i] = _judge_node(histograms[slots[i]], record[i], noted[i], rules)
    return int(n_nodes)
