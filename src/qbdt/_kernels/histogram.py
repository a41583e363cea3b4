"""Histograms of fixed-point weights over bin codes: the loop that training spends most of its time in.

A node has a histogram of *main* channels, one weight per nominal row (signal, each background process), for all
features: flat, laid out as (segment, feature, bin). What else a split is judged on (further weight columns of nominal
rows, rows of variations) are *details*, asked for feature by feature: flat, segment by segment as (bin, column).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from qbdt.dtypes import BINS, FEATURES_PER_WORD, Fixed, Rows, Words

__all__ = ["add_details", "add_rows"]

BLOCK = 1024
"""Rows gathered at a time: a block of words and weights stays in the first-level cache."""


@njit(cache=True, nogil=True)
def _add_words(words: Words, weights: Fixed, out: Fixed) -> None:
    """Add one weight per row to the bins of eight features; written out, since a loop of eight is not unrolled."""
    byte = np.uint64(255)
    for i in range(words.size):
        word = words[i]
        weight = weights[i]
        out[word & byte] += weight
        out[(word >> np.uint64(8) & byte) + np.uint64(BINS)] += weight
        out[(word >> np.uint64(16) & byte) + np.uint64(2 * BINS)] += weight
        out[(word >> np.uint64(24) & byte) + np.uint64(3 * BINS)] += weight
        out[(word >> np.uint64(32) & byte) + np.uint64(4 * BINS)] += weight
        out[(word >> np.uint64(40) & byte) + np.uint64(5 * BINS)] += weight
        out[(word >> np.uint64(48) & byte) + np.uint64(6 * BINS)] += weight
        out[(word >> np.uint64(56)) + np.uint64(7 * BINS)] += weight


@njit(cache=True, nogil=True)
def _add_byte(words: Words, feature: int, weights: Fixed, out: Fixed) -> None:
    """Add one weight per row to the bins of one feature."""
    byte = np.uint64(255)
    shift = np.uint64(8 * (feature % FEATURES_PER_WORD))
    for i in range(words.size):
        out[words[i] >> shift & byte] += weights[i]


@njit(cache=True, nogil=True)
def _add_columns(
    words: Words,
    feature: int,
    rows: Rows,
    whole: bool,
    begin: int,
    end: int,
    weights: Fixed,
    start: int,
    n_columns: int,
    out: Fixed,
) -> None:
    """Add several weights per row, a multiple of four, to the bins of one feature; row `start` has the first weights.

    Four sums are formed before four are stored, so that the compiler can use vectors without knowing that the arrays
    do not overlap; unsigned indices spare it the check for negative ones.
    """
    byte, four, width = np.uint64(255), np.uint64(4), np.uint64(n_columns)
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    shift = np.uint64(8 * (feature % FEATURES_PER_WORD))
    for i in range(begin, end):
        row = np.uint64(i) if whole else np.uint64(rows[i])
        at = (words[row] >> shift & byte) * width
        source = (row - np.uint64(start)) * width
        stop = at + width
        while at < stop:
            sum0 = out[at] + weights[source]
            sum1 = out[at + one] + weights[source + one]
            sum2 = out[at + two] + weights[source + two]
            sum3 = out[at + three] + weights[source + three]
            out[at] = sum0
            out[at + one] = sum1
            out[at + two] = sum2
            out[at + three] = sum3
            at += four
            source += four


@njit(cache=True, nogil=True)
def add_rows(words: Words, weights: Fixed, n_features: int, rows: Rows, whole: bool, share: Fixed, out: Fixed) -> None:
    """Add the weights of a share of a node's nominal rows to its histogram.

    Parameters
    ----------
    words
        Bin codes of all rows, eight features to a word.
    weights
        Fixed-point weight of every row.
    n_features
        Number of features.
    rows
        Row numbers of the nodes, in increasing order within each node and segment.
    whole
        Whether the node is the root: then row i is i and `rows` is not read.
    share
        Rows (segment, begin, end) of positions in `rows`.
    out
        The histogram that is added to, (segment, feature, bin).
    """
    word_block = np.empty(BLOCK, np.uint64)
    weight_block = np.empty(BLOCK, np.int64)
    for p in range(share.shape[0]):
        segment, begin, end = share[p, 0], share[p, 1], share[p, 2]
        base = segment * n_features * BINS
        for low in range(begin, end, BLOCK):
            high = min(low + BLOCK, end)
            n = high - low
            block_weights = weights[low:high] if whole else weight_block[:n]
            if not whole:
                for i in range(n):
                    block_weights[i] = weights[rows[low + i]]
            for g in range(words.shape[0]):
                block_words = words[g, low:high] if whole else word_block[:n]
                if not whole:
                    for i in range(n):
                        block_words[i] = words[g, rows[low + i]]
                first = g * FEATURES_PER_WORD
                if first + FEATURES_PER_WORD <= n_features:
                    _add_words(block_words, block_weights, out[base + first * BINS :])
                else:
                    for feature in range(first, n_features):
                        _add_byte(block_words, feature, block_weights, out[base + feature * BINS :])


@njit(cache=True, nogil=True)
def add_details(
    words: Words,
    weights: Fixed,
    extra: Fixed,
    starts: Fixed,
    offsets: Fixed,
    widths: Fixed,
    bases: Fixed,
    features: Fixed,
    rows: Rows,
    whole: bool,
    share: Fixed,
    out: Fixed,
) -> None:
    """Add a share of a node's details for some features.

    Parameters
    ----------
    words, weights, rows, whole, share
        As for `add_rows`.
    extra
        Further weights: segment j's from `offsets[j]`, `widths[j]` for each row.
    starts, offsets, widths, bases
        Of each segment: its first row, where its further weights start, how many a row has (0: its one weight is the
        detail, as for variations), and where it starts in a feature's details.
    features
        Features to add.
    out
        Details that are added to, one row per feature.
    """
    word_block = np.empty(BLOCK, np.uint64)
    weight_block = np.empty(BLOCK, np.int64)
    for p in range(share.shape[0]):
        segment, begin, end = share[p, 0], share[p, 1], share[p, 2]
        width, base, start = widths[segment], bases[segment], starts[segment]
        for low in range(begin, end, BLOCK):
            high = min(low + BLOCK, end)
            n = high - low
            block_weights = weights[low:high] if whole else weight_block[:n]
            if width == 0 and not whole:
                for i in range(n):
                    block_weights[i] = weights[rows[low + i]]
            for f in range(features.size):
                column = words[features[f] // FEATURES_PER_WORD]
                if width > 0:
                    own = extra[offsets[segment] :]
                    _add_columns(column, features[f], rows, whole, low, high, own, start, width, out[f, base:])
                    continue
                block_words = column[low:high] if whole else word_block[:n]
                if not whole:
                    for i in range(n):
                        block_words[i] = column[rows[low + i]]
                _add_byte(block_words, features[f], block_weights, out[f, base:])
