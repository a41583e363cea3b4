"""Histograms of fixed-point weights over bin codes: the loop that training spends most of its time in.

A node has a histogram of *main* channels, one weight per nominal row (signal, each background process), for all
features: flat, laid out as (segment, feature, bin). What else a split is judged on (further weight columns of nominal
rows, rows of variations) are *details*, asked for word by word, eight features at a time: flat, segment by segment as
(feature in word, bin, column).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from qbdt._kernels.lanes import LANES, add_lanes
from qbdt.dtypes import BINS, FEATURES_PER_WORD, Fixed, Rows, Words

__all__ = ["add_details", "add_rows"]

BLOCK = 1024
"""Weights gathered at a time: a block of words and weights stays in the first-level cache."""


@njit(cache=True, nogil=True)
def _add_word(words: Words, n_features: int, weights: Fixed, out: Fixed) -> None:
    """Add one weight per row to the bins of up to eight features.

    Eight are written out, since a loop of eight is not unrolled; fewer are added one after the other.
    """
    byte = np.uint64(255)
    if n_features < FEATURES_PER_WORD:
        for feature in range(n_features):
            shift, own = np.uint64(8 * feature), out[feature * BINS :]
            for i in range(words.size):
                own[words[i] >> shift & byte] += weights[i]
        return
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
def _add_columns(words: Words, n_features: int, weights: Fixed, width: int, out: Fixed) -> None:
    """Add several weights per row, a multiple of four, to the bins of up to eight features."""
    byte, eight, columns = np.uint64(255), np.uint64(8), np.uint64(width)
    for i in range(words.size):
        word = words[i]
        source = np.uint64(i) * columns
        first = np.uint64(0)
        for _ in range(n_features):
            at = (first + (word & byte)) * columns
            for vector in range(width // LANES):
                lane = np.uint64(vector * LANES)
                add_lanes(out, at + lane, weights, source + lane)
            word >>= eight
            first += np.uint64(BINS)


@njit(cache=True, nogil=True)
def _add_range(
    words: Words,
    chosen: Fixed,
    n_features: int,
    weights: Fixed,
    width: int,
    start: int,
    rows: Rows,
    whole: bool,
    begin: int,
    end: int,
    out: Fixed,
    step: int,
) -> None:
    """Add the rows at begin … end − 1 for some words; row `start` has the first of the weights, `width` to a row.

    Rows are taken block by block. Their weights and words are copied first where they are scattered: many reads are
    then under way at once, while additions would wait for each. Word k goes to `out` from k × `step` on.
    """
    size = max(1, BLOCK // width)
    columns = np.uint64(width)
    word_block = np.empty(size, np.uint64)
    weight_block = np.empty(size * width, np.int64)
    for low in range(begin, end, size):
        n = min(size, end - low)
        block = weights[(low - start) * width :] if whole else weight_block
        if not whole:
            for i in range(n):
                source, target = np.uint64(rows[low + i] - start) * columns, np.uint64(i) * columns
                for c in range(columns):
                    block[target + c] = weights[source + c]
        for k in range(chosen.size):
            column = words[chosen[k]]
            block_words = column[low : low + n] if whole else word_block[:n]
            if not whole:
                for i in range(n):
                    block_words[i] = column[rows[low + i]]
            n_filled = min(FEATURES_PER_WORD, n_features - FEATURES_PER_WORD * chosen[k])
            if width == 1:
                _add_word(block_words, n_filled, block, out[k * step :])
            else:
                _add_columns(block_words, n_filled, block, width, out[k * step :])


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
    every = np.arange(words.shape[0])
    for p in range(share.shape[0]):
        own = out[share[p, 0] * n_features * BINS :]
        begin, end, step = share[p, 1], share[p, 2], FEATURES_PER_WORD * BINS
        _add_range(words, every, n_features, weights, 1, 0, rows, whole, begin, end, own, step)


@njit(cache=True, nogil=True)
def add_details(
    words: Words,
    chosen: Fixed,
    n_features: int,
    weights: Fixed,
    extra: Fixed,
    starts: Fixed,
    offsets: Fixed,
    widths: Fixed,
    bases: Fixed,
    rows: Rows,
    whole: bool,
    share: Fixed,
    out: Fixed,
) -> None:
    """Add a share of a node's details for some words.

    Parameters
    ----------
    words, n_features, weights, rows, whole, share
        As for `add_rows`.
    chosen
        Words whose features are wanted.
    extra
        Further weights: segment j's from `offsets[j]`, `widths[j]` for each row, a multiple of four.
    starts, offsets, widths, bases
        Of each segment: its first row, where its further weights start, how many a row has (0: its one weight is the
        detail, as for variations), and where it starts in the details of a word.
    out
        Details that are added to, one row per word.
    """
    flat, step = out.ravel(), out.shape[1]
    for p in range(share.shape[0]):
        segment, begin, end = share[p, 0], share[p, 1], share[p, 2]
        width, start, own = widths[segment], starts[segment], flat[bases[segment] :]
        if width > 0:
            columns = extra[offsets[segment] :]
            _add_range(words, chosen, n_features, columns, width, start, rows, whole, begin, end, own, step)
        else:
            _add_range(words, chosen, n_features, weights, 1, 0, rows, whole, begin, end, own, step)
