"""Split scans under monotonic constraints: only cuts that put the outputs of both sides in the asked-for order.

Kernels of their own, compiled where a training has constraints. A node's output must lie between two numbers, which
the cuts above it left; the outputs that are compared are those after this.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from qbdt.arrays import BINS, MISSING, MISSING_LEFT, NONE_MISSING, Fixed, Floats
from qbdt.statistics import purity_value
from qbdt.training.kernels.pairs import pair_value
from qbdt.training.kernels.split_scan import ChannelTable, Formula, _add_missing, _gain, _load_feature, node_variance

__all__ = ["scan_ordered_features", "scan_ordered_pairs"]


@njit(cache=True, nogil=True, error_model="numpy")
def _output(sums: Fixed, formula: Formula, low: float, high: float) -> float:
    """2p − 1 of a node with b > 0, within limits."""
    s, b = sums[0] * formula.factor[0], sums[1] * formula.factor[1]
    value = 2.0 * purity_value(s, b, node_variance(sums, formula)) - 1.0
    return min(max(value, low), high)


@njit(cache=True, nogil=True, error_model="numpy")
def _in_order(
    left: Fixed, total: Fixed, formula: Formula, direction: int, low: float, high: float, side: Fixed
) -> bool:
    """Whether the outputs left and right of a cut do not go against a direction; `side` is used up."""
    for i in range(total.size):
        side[i] = left[i]
    before = _output(side, formula, low, high)
    for i in range(total.size):
        side[i] = total[i] - side[i]
    return (_output(side, formula, low, high) - before) * direction >= 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def scan_ordered_features(
    hist: Fixed,
    systematics: Fixed,
    total: Fixed,
    node_q: float,
    formula: Formula,
    channels: ChannelTable,
    features: Fixed,
    n_cuts: Fixed,
    directions: Fixed,
    low: float,
    high: float,
    best_left: Fixed,
) -> tuple[float, int, int, int]:
    """Best split over some features, as `scan_features`, of those that go along with the features' directions.

    Parameters
    ----------
    hist, systematics, total, node_q, formula, channels, features, n_cuts, best_left
        As for `scan_features`.
    directions
        Of every feature: +1 where the output must not fall when it rises, −1 for the opposite, 0 for neither.
    low, high
        What the outputs of both sides must lie between.
    """
    best_gain, best_feature, best_cut, best_missing = -np.inf, -1, 0, NONE_MISSING
    left = np.empty((total.size, BINS), np.int64)
    missing, side = np.empty(total.size, np.int64), np.empty(total.size, np.int64)
    for f in range(features.size):
        feature = features[f]
        size = n_cuts[feature]
        if size == 0:
            continue
        any_missing = _load_feature(hist, systematics, feature, size, channels, left, missing)
        for option in range(2 if any_missing else 1):
            if option == MISSING_LEFT:
                _add_missing(left, size, missing)
            for code in range(size):
                gain = _gain(left[:, code], total, node_q, formula, side)
                if gain > best_gain and _in_order(left[:, code], total, formula, directions[feature], low, high, side):
                    best_gain, best_feature, best_cut = gain, feature, code + 1
                    best_missing = option if any_missing else NONE_MISSING
                    for i in range(total.size):
                        best_left[i] = left[i, code]
    return best_gain, best_feature, best_cut, best_missing


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_output(top: float, bottom: float, ridge: float, low: float, high: float) -> float:
    """N/(D + λ) within limits."""
    return min(max(top / (bottom + ridge), low), high)


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_gain(top: float, bottom: float, ridge: float, output: float) -> float:
    """What an output w gains: 2 w N − w² (D + λ), which is N²/(D + λ) for the best one."""
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
    """Best split over some features, as `scan_pairs`, of those that go along with the features' directions.

    Parameters
    ----------
    hist, total, factor, ridge, least, features, n_cuts, best_left
        As for `scan_pairs`.
    directions, low, high
        As for `scan_ordered_features`. Gains are those of outputs between the limits.
    """
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
