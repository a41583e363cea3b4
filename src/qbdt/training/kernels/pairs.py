"""Histograms of pairs of fixed-point numbers over bin codes, and the scan for the split that gains most in squares.

A row has a numerator and a denominator (a gradient and a curvature; a shift and a yield). The histogram of a node is
flat, laid out as (feature, bin, pair), so that both numbers of a bin share a cache line. A split gains

    N_L²/(D_L + λ) + N_R²/(D_R + λ) − N²/(D + λ).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from qbdt.arrays import BINS, FEATURES_PER_WORD, MISSING, MISSING_LEFT, NONE_MISSING, Fixed, Floats, Rows, Words
from qbdt.trees.kernels import add_pair, add_pair_word

BLOCK = 512
"""Rows gathered at a time: a block of words and pairs stays in the first-level cache."""


class RowWords(NamedTuple):
    """Bin codes of all rows, eight features to a word, flat; steps between rows, and between the words of one.

    Nodes whose rows are scattered are read faster where the words of a row lie side by side.
    """

    words: Words
    row_step: int
    word_step: int


@njit(cache=True, nogil=True)
def _add_pair_words(words: Words, step: int, pairs: Fixed, n_features: int, out: Fixed) -> None:
    """Add one pair per row to the bins of up to eight features; both numbers at once, as a vector.

    `words` begin with that of the first row, and rows are `step` words apart.
    """
    apart = np.uint64(step)
    if n_features == FEATURES_PER_WORD:
        for i in range(pairs.size // 2):
            add_pair_word(out, words[np.uint64(i) * apart], pairs, np.uint64(2 * i))
        return
    for feature in range(n_features):
        shift, own = np.uint64(8 * feature), out[2 * feature * BINS :]
        for i in range(pairs.size // 2):
            add_pair(own, words[np.uint64(i) * apart] >> shift, pairs, np.uint64(2 * i))


@njit(cache=True, nogil=True)
def _gather_rows(given: RowWords, pairs: Fixed, rows: Rows, to: Words, pairs_to: Fixed) -> None:
    """Copy words and pairs of some rows, as (word, row) and (row, pair).

    Many reads are under way at once, while additions would wait for each. Loops over rows are the inner ones: two words
    at a time, or the last one twice, take less than a loop over the words of each row.
    """
    one, two, row_step = np.uint64(1), np.uint64(2), np.uint64(given.row_step)
    for i in range(rows.size):
        row = np.uint64(np.uint32(rows[i]))
        pairs_to[2 * i], pairs_to[2 * i + 1] = pairs[two * row], pairs[two * row + one]
    for word in range(0, to.shape[0], 2):
        after = min(word + 1, to.shape[0] - 1)
        first, second = np.uint64(word * given.word_step), np.uint64(after * given.word_step)
        to_first, to_second = to[word], to[after]
        for i in range(rows.size):
            row = np.uint64(np.uint32(rows[i])) * row_step
            to_first[i], to_second[i] = given.words[row + first], given.words[row + second]


@njit(cache=True, nogil=True)
def add_pairs(
    given: RowWords, pairs: Fixed, n_features: int, rows: Rows, whole: bool, share: Fixed, out: Fixed
) -> None:
    """Add the pairs of a share of a node's rows to its histogram, (feature, bin, pair).

    `pairs` are numerator and denominator of every row, flat; the others are as for `add_rows`.
    """
    n_words = -(-n_features // FEATURES_PER_WORD)
    word_block = np.empty((n_words, BLOCK), np.uint64)
    pair_block = np.empty(2 * BLOCK, np.int64)
    for p in range(share.shape[0]):
        begin, end = share[p, 1], share[p, 2]
        for low in range(begin, end, BLOCK):
            high = min(low + BLOCK, end)
            if not whole:
                _gather_rows(given, pairs, rows[low:high], word_block, pair_block)
            own_pairs = pairs[2 * low : 2 * high] if whole else pair_block[: 2 * (high - low)]
            for g in range(n_words):
                own = given.words[low * given.row_step + g * given.word_step :] if whole else word_block[g]
                size = min(FEATURES_PER_WORD, n_features - g * FEATURES_PER_WORD)
                step = given.row_step if whole else 1
                _add_pair_words(own, step, own_pairs, size, out[2 * g * FEATURES_PER_WORD * BINS :])


@njit(cache=True, nogil=True, error_model="numpy")
def pair_value(numerator: float, denominator: float, ridge: float, least: float) -> float:
    """N²/(D + λ), or −1 where the denominator is too small for a node."""
    if denominator < least or denominator + ridge <= 0.0:
        return -1.0
    return numerator * numerator / (denominator + ridge)


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_cuts(bins: Fixed, top: int, bottom: int, tops: Fixed, bottoms: Fixed) -> None:
    """N and D left of each cut, on top of what is there before."""
    for code in range(tops.size):
        top += bins[2 * code]
        bottom += bins[2 * code + 1]
        tops[code], bottoms[code] = top, bottom


@njit(cache=True, nogil=True, error_model="numpy")
def _judge_cuts(
    tops: Fixed, bottoms: Fixed, total: Fixed, factor: Floats, ridge: float, least: float, out: Floats
) -> None:
    """N_L²/(D_L + λ) + N_R²/(D_R + λ) of each cut, or −∞ where a side is too small: without a branch, for vectors."""
    whole_top, whole_bottom, of_top, of_bottom = total[0], total[1], factor[0], factor[1]
    for code in range(out.size):
        left, left_curvature = tops[code] * of_top, bottoms[code] * of_bottom
        right, right_curvature = (whole_top - tops[code]) * of_top, (whole_bottom - bottoms[code]) * of_bottom
        smaller = min(left_curvature, right_curvature)
        value = left * left / (left_curvature + ridge) + right * right / (right_curvature + ridge)
        out[code] = value if (smaller >= least) & (smaller + ridge > 0.0) else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def first_largest(values: Floats) -> tuple[float, int]:
    """Largest of some numbers, −∞ if there is none, and the place after the first of them, 0 if all are −∞.

    Numbers are −∞ or not negative: then they are ordered as their bits are, of which many are compared at once.
    """
    bits = values.view(np.int64)
    most = np.int64(-1)
    for i in range(bits.size):
        most = max(most, bits[i])
    for i in range(bits.size):
        if bits[i] == most:
            return values[i], i + 1
    return -np.inf, 0


@njit(cache=True, nogil=True, error_model="numpy")
def scan_pairs(
    hist: Fixed,
    total: Fixed,
    node_value: float,
    factor: Floats,
    ridge: float,
    least: float,
    features: Fixed,
    n_cuts: Fixed,
    best_left: Fixed,
) -> tuple[float, int, int, int]:
    """Best split over some features; ties go to the first found (feature, then missing right, then cut).

    `total` and `node_value` are N and D of the node as integers and its N²/(D + λ); `factor` the values of their units,
    `ridge` is λ and `least` the least D on either side. Otherwise as `scan_features` of the paper's criterion.
    """
    best_gain, best_feature, best_cut, best_missing = -np.inf, -1, 0, NONE_MISSING
    top_sums, bottom_sums, judged = np.empty(BINS, np.int64), np.empty(BINS, np.int64), np.empty(BINS, np.float64)
    for f in range(features.size):
        feature = features[f]
        size = n_cuts[feature]
        bins = hist[2 * feature * BINS : 2 * (feature + 1) * BINS]
        any_missing = bins[2 * MISSING] != 0 or bins[2 * MISSING + 1] != 0
        for option in range(2 if any_missing else 1):
            top, bottom = (bins[2 * MISSING], bins[2 * MISSING + 1]) if option == MISSING_LEFT else (0, 0)
            tops, bottoms, values = top_sums[:size], bottom_sums[:size], judged[:size]
            _sum_cuts(bins, top, bottom, tops, bottoms)
            _judge_cuts(tops, bottoms, total, factor, ridge, least, values)
            found, cut = first_largest(values)
            if found - node_value > best_gain:
                best_gain, best_feature, best_cut = found - node_value, feature, cut
                best_missing = option if any_missing else NONE_MISSING
                best_left[0], best_left[1] = tops[cut - 1], bottoms[cut - 1]
    return best_gain, best_feature, best_cut, best_missing


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_output(top: float, bottom: float, ridge: float, low: float, high: float) -> float:
    """N/(D + λ) within limits."""
    return min(max(top / (bottom + ridge), low), high)


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_gain(top: float, bottom: float, ridge: float, output: float) -> float:
    """Gain of an output w: 2 w N − w² (D + λ), which is N²/(D + λ) for the best one."""
    return output * (2.0 * top - output * (bottom + ridge))


@njit(cache=True, nogil=True, error_model="numpy")
def scan_ordered_pairs(
    hist: Fixed,
    total: Fixed,
    factor: Floats,
    ridge: float,
    least: float,
    features: Fixed,
    n_cuts: Fixed,
    directions: Fixed,
    low: float,
    high: float,
    best_left: Fixed,
) -> tuple[float, int, int, int]:
    """As `scan_pairs`, of cuts along the features' directions; gains are those of outputs between `low` and `high`."""
    best_gain, best_feature, best_cut, best_missing = -np.inf, -1, 0, NONE_MISSING
    whole_top, whole_bottom = total[0] * factor[0], total[1] * factor[1]
    if whole_bottom + ridge <= 0.0:
        return best_gain, best_feature, best_cut, best_missing
    node_gain = _pair_gain(whole_top, whole_bottom, ridge, _pair_output(whole_top, whole_bottom, ridge, low, high))
    sums = np.zeros(2, np.int64)
    for f in range(features.size):
        feature = features[f]
        bins = hist[2 * feature * BINS : 2 * (feature + 1) * BINS]
        any_missing = bins[2 * MISSING] != 0 or bins[2 * MISSING + 1] != 0
        for option in range(2 if any_missing else 1):
            for i in range(2):
                sums[i] = bins[2 * MISSING + i] if option == MISSING_LEFT else 0
            for code in range(n_cuts[feature]):
                sums[0] += bins[2 * code]
                sums[1] += bins[2 * code + 1]
                top, bottom = sums[0] * factor[0], sums[1] * factor[1]
                other_top, other_bottom = (total[0] - sums[0]) * factor[0], (total[1] - sums[1]) * factor[1]
                if (
                    pair_value(top, bottom, ridge, least) < 0.0
                    or pair_value(other_top, other_bottom, ridge, least) < 0.0
                ):
                    continue
                before = _pair_output(top, bottom, ridge, low, high)
                after = _pair_output(other_top, other_bottom, ridge, low, high)
                gain = _pair_gain(top, bottom, ridge, before) + _pair_gain(other_top, other_bottom, ridge, after)
                if gain - node_gain > best_gain and (after - before) * directions[feature] >= 0.0:
                    best_gain, best_feature, best_cut = gain - node_gain, feature, code + 1
                    best_missing = option if any_missing else NONE_MISSING
                    for i in range(2):
                        best_left[i] = sums[i]
    return best_gain, best_feature, best_cut, best_missing
