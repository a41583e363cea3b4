"""Histograms of fixed-point weights over bin codes: the loop that training spends most of its time in.

The *nominal* histogram of a node sums one weight per nominal row (signal, each background process) for all features:
flat, laid out as (segment, feature, bin). Its *systematic* histograms sum all other channels (further weight columns of
nominal rows, rows of variations), asked for word by word, eight features at a time: flat, segment by segment, the
columns of a segment in planes of eight (the last may be four), each as (feature in word, bin, column of the plane).

Row numbers are read as unsigned: numba asks of any other index whether it counts from the end, at twice the time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from qbdt.arrays import BINS, FEATURES_PER_WORD, Columns, Fixed, Rows, Words
from qbdt.trees.kernels.lanes import AHEAD, LANES, add_weight_word, add_word, copy_lanes, prefetch

PLANE = 8
"""Columns whose sums lie side by side: a cache line."""

BLOCK = 1024
"""Weights or columns gathered at a time: a block of them and of words stays in the first-level cache."""


@njit(cache=True, nogil=True)
def _add_weights(words: Words, weights: Fixed, out: Fixed) -> None:
    """Add one weight per row to the bins of eight features."""
    for i in range(words.size):
        add_weight_word(out, words[i], weights[i])


@njit(cache=True, nogil=True)
def _add_scattered_weights(words: Words, rows: Rows, low: int, last: int, weights: Fixed, out: Fixed) -> None:
    """Add one weight per row, for the rows from place `low` on, to the bins of eight features.

    Words are asked for while others are added, up to that of the row at place `last`.
    """
    for i in range(weights.size):
        at = np.uint64(low + i)
        prefetch(words, np.uint64(rows[min(at + np.uint64(AHEAD), np.uint64(last))]))
        add_weight_word(out, words[np.uint32(rows[at])], weights[i])


@njit(cache=True, nogil=True)
def _add_to_few(words: Words, n_features: int, weights: Fixed, out: Fixed) -> None:
    """Add one weight per row to the bins of fewer than eight features, one after the other."""
    for feature in range(n_features):
        shift, own = np.uint64(8 * feature), out[feature * BINS :]
        for i in range(words.size):
            own[words[i] >> shift & np.uint64(255)] += weights[i]


@njit(cache=True, nogil=True)
def _add_plane(words: Words, columns: Columns, first: int, width: int, double: bool, out: Fixed) -> None:
    """Add four of `width` columns per row, or eight where `double`; row 0 has its columns from `first` on.

    Where a word has fewer than eight features, the first bin of the others is filled and nobody reads it.
    """
    for i in range(words.size):
        add_word(out, words[i], columns, np.uint64(first + i * width), double)


@njit(cache=True, nogil=True)
def _gather_words(words: Words, rows: Rows, whole: bool, low: int, n: int, last: int, block: Words) -> Words:
    """Words of the rows at low … low + n − 1, copied where they are scattered.

    Many reads are then under way at once, while additions would wait for each.
    """
    if whole:
        return words[low : low + n]
    for i in range(n):
        at = np.uint64(low + i)
        prefetch(words, np.uint64(rows[min(at + np.uint64(AHEAD), np.uint64(last))]))
        block[i] = words[np.uint32(rows[at])]
    return block[:n]


@njit(cache=True, nogil=True)
def _add_range(
    words: Words,
    chosen: Fixed,
    n_features: int,
    weights: Fixed,
    rows: Rows,
    whole: bool,
    begin: int,
    end: int,
    out: Fixed,
    step: int,
) -> None:
    """Add the weights of the rows at begin … end − 1 for some words; word k goes to `out` from k × `step` on."""
    word_block = np.empty(BLOCK, np.uint64)
    weight_block = np.empty(BLOCK, np.int64)
    for low in range(begin, end, BLOCK):
        n = min(BLOCK, end - low)
        block = weights[low : low + n] if whole else weight_block[:n]
        if not whole:
            for i in range(n):
                prefetch(weights, np.uint64(rows[min(low + i + AHEAD, end - 1)]))
                block[i] = weights[np.uint32(rows[low + i])]
        for k in range(chosen.size):
            own, target = words[chosen[k]], out[k * step :]
            n_filled = n_features - FEATURES_PER_WORD * chosen[k]
            if n_filled < FEATURES_PER_WORD:
                _add_to_few(_gather_words(own, rows, whole, low, n, end - 1, word_block), n_filled, block, target)
            elif whole:
                _add_weights(own[low : low + n], block, target)
            else:
                _add_scattered_weights(own, rows, low, end - 1, block, target)


@njit(cache=True, nogil=True)
def _add_columns(
    words: Words,
    chosen: Fixed,
    columns: Columns,
    width: int,
    start: int,
    rows: Rows,
    whole: bool,
    begin: int,
    end: int,
    out: Fixed,
    step: int,
) -> None:
    """Add the columns of the rows at begin … end − 1 for some words; row `start` has the first `width`, and so on."""
    size = max(1, BLOCK // width)
    word_block = np.empty(size, np.uint64)
    column_block = np.empty(size * width, np.int32)
    wide = np.uint64(width)
    for low in range(begin, end, size):
        n = min(size, end - low)
        block = columns[(low - start) * width :] if whole else column_block
        if not whole:
            for i in range(n):
                prefetch(columns, np.uint64(rows[min(low + i + AHEAD, end - 1)] - start) * wide)
                source, target = np.uint64(rows[low + i] - start) * wide, np.uint64(i) * wide
                for lane in range(0, width, LANES):
                    copy_lanes(block, target + np.uint64(lane), columns, source + np.uint64(lane))
        for k in range(chosen.size):
            own = _gather_words(words[chosen[k]], rows, whole, low, n, end - 1, word_block)
            for first in range(0, width, PLANE):
                plane = out[k * step + FEATURES_PER_WORD * BINS * first :]
                _add_plane(own, block, first, width, width - first >= PLANE, plane)


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
    every = np.empty(words.shape[0], np.int64)
    for word in range(every.size):
        every[word] = word
    for p in range(share.shape[0]):
        own = out[share[p, 0] * n_features * BINS :]
        begin, end, step = share[p, 1], share[p, 2], FEATURES_PER_WORD * BINS
        _add_range(words, every, n_features, weights, rows, whole, begin, end, own, step)


@njit(cache=True, nogil=True)
def add_systematics(
    words: Words,
    chosen: Fixed,
    n_features: int,
    weights: Fixed,
    columns: Columns,
    starts: Fixed,
    offsets: Fixed,
    widths: Fixed,
    bases: Fixed,
    rows: Rows,
    whole: bool,
    share: Fixed,
    out: Fixed,
) -> None:
    """Add a share of a node's rows to its systematic histograms of some words.

    Parameters
    ----------
    words, n_features, weights, rows, whole, share
        As for `add_rows`.
    chosen
        Words whose features are wanted.
    columns
        Further columns: segment j's from `offsets[j]`, `widths[j]` for each row, a multiple of four.
    starts, offsets, widths, bases
        Of each segment: its first row, where its further columns start, how many a row has (0: its one weight counts,
        as for variations), and where it starts in the histogram of a word.
    out
        The histograms that are added to, one row per word.
    """
    flat, step = out.ravel(), out.shape[1]
    for p in range(share.shape[0]):
        segment, begin, end = share[p, 0], share[p, 1], share[p, 2]
        width, start, own = widths[segment], starts[segment], flat[bases[segment] :]
        if width > 0:
            own_columns = columns[offsets[segment] :]
            _add_columns(words, chosen, own_columns, width, start, rows, whole, begin, end, own, step)
        else:
            _add_range(words, chosen, n_features, weights, rows, whole, begin, end, own, step)
