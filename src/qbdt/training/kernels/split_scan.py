"""The split scan: every cut on every feature of a node, judged by ΔQ.

A cut is judged on *quantities*: s, b, the Δ_k, and, where asked for, the MC variance δ² and the two sums behind the
effective number of simulated events. Each is a sum of histogram channels with signs ±1, an exact integer, times a
factor. Quantity 0 is s, 1 is b, 2 … 1 + n_sources are the Δ_k.

Loops are written out where numpy's own copies, sums and maxima would do: those take seconds to compile.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from qbdt.arrays import BINS, FEATURES_PER_WORD, MISSING, MISSING_LEFT, NONE_MISSING, Fixed, Floats
from qbdt.statistics import correlated_variance, has_significance, purity_value, significance_value

LN2 = 0.6931471805599453
MANTISSA = (1 << 52) - 1
ONE = 1023 << 52
LARGE = 1e100
REMAINDER = 2e-8
"""Above what the series in `_add_bounds` leaves out, 1.1e-8, with room for rounding."""


class ChannelTable(NamedTuple):
    """Histogram channels of all quantities: those of quantity i are first[i] … first[i+1] − 1, each with a sign.

    A channel is in the nominal histogram, or in the systematic one of a word (`is_systematic`); it starts at `base`,
    its bins are `stride` apart, its features BINS × `stride`.
    """

    first: Fixed
    is_systematic: Fixed
    base: Fixed
    stride: Fixed
    sign: Fixed


@njit(cache=True, nogil=True)
def _load_feature(
    hist: Fixed, systematics: Fixed, feature: int, n_cuts: int, channels: ChannelTable, left: Fixed, missing: Fixed
) -> bool:
    """Quantities left of each cut, as left[quantity, cut − 1], and of missing values; returns whether there are any."""
    any_missing = False
    for quantity in range(left.shape[0]):
        row = left[quantity]
        row[:n_cuts] = 0
        missing[quantity] = 0
        for channel in range(channels.first[quantity], channels.first[quantity + 1]):
            values = systematics if channels.is_systematic[channel] else hist
            slot = feature % FEATURES_PER_WORD if channels.is_systematic[channel] else feature
            step, sign = channels.stride[channel], channels.sign[channel]
            at = channels.base[channel] + slot * BINS * step
            running = np.int64(0)
            for code in range(n_cuts):
                running += values[at + code * step]
                row[code] += sign * running
            lost = values[at + MISSING * step]
            missing[quantity] += sign * lost
            any_missing |= lost != 0
    return any_missing


@njit(cache=True, nogil=True)
def total_sums(hist: Fixed, systematics: Fixed, feature: int, channels: ChannelTable) -> Fixed:
    """Quantities of a whole node, as integers, from any one feature and the systematic histogram of its word."""
    left = np.empty((channels.first.size - 1, BINS), np.int64)
    sums = np.empty(channels.first.size - 1, np.int64)
    _load_feature(hist, systematics, feature, BINS, channels, left, sums)
    for quantity in range(sums.size):
        sums[quantity] = left[quantity, BINS - 1]
    return sums


class Formula(NamedTuple):
    """How Q follows from quantities.

    Their factors; the number of Δ_k; whether the MC variance follows them; the least effective number of simulated
    background events on either side of a cut (its two sums are the last quantities), 0 for no limit.
    """

    factor: Floats
    n_sources: int
    has_mc: bool
    min_entries: float


@njit(cache=True, nogil=True, error_model="numpy")
def node_variance(sums: Fixed, formula: Formula) -> float:
    """σ_b² (eq:sigmab, plus δ² where MC statistics count) of a node with b > 0.

    eq:sigmab is σ_b² = b [Σ_k r_k − Σ_{i≠j} r_i r_j] with r_k = Δ_k²/(b + Δ_k²). With R₁ = Σ r_k and R₂ = Σ r_k² the
    bracket is R₁ − (R₁² − R₂): one pass over the sources.
    """
    factor, n_sources = formula.factor, formula.n_sources
    b = sums[1] * factor[1]
    r1 = 0.0
    r2 = 0.0
    for k in range(2, 2 + n_sources):
        delta = sums[k] * factor[k]
        r = delta * delta / (b + delta * delta)
        r1 += r
        r2 += r * r
    variance = correlated_variance(b, r1, r2)
    if formula.has_mc:
        variance += sums[2 + n_sources] * factor[2 + n_sources]
    return variance


@njit(cache=True, nogil=True, error_model="numpy")
def _side(sums: Fixed, formula: Formula) -> float:
    """Q of one side of a cut, or −1 where such a node is not allowed."""
    factor = formula.factor
    if not has_significance(sums[1]):  # b ≤ 0: Q is not defined
        return -1.0
    if formula.min_entries > 0.0:
        n = sums.size
        # Effective number of simulated events: (Σw)²/Σw².
        simulated = sums[n - 2] * factor[n - 2]
        squares = sums[n - 1] * factor[n - 1]
        if simulated <= 0.0 or simulated * simulated < formula.min_entries * squares:
            return -1.0
    if sums[0] <= 0:  # without signal Q = 0
        return 0.0
    variance = node_variance(sums, formula)
    return significance_value(sums[0] * factor[0], sums[1] * factor[1], variance)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_shares(
    sums: Fixed, b: Floats, factor: Floats, n_sources: int, has_mc: bool, first: Floats, second: Floats, out: Floats
) -> None:
    """Share c = σ_b²/(b + σ_b²) of each cut's side, from its quantities (quantity, cut), bit by bit as exact Q has it.

    `first` and `second` become Σ r_k and Σ r_k² of `node_variance`. All loops are over cuts, so that they run in
    vectors.
    """
    for i in range(b.size):
        first[i], second[i] = 0.0, 0.0
    for k in range(2, 2 + n_sources):
        for i in range(b.size):
            delta = sums[k, i] * factor[k]
            r = delta * delta / (b[i] + delta * delta)
            first[i] += r
            second[i] += r * r
    for i in range(b.size):
        variance = correlated_variance(b[i], first[i], second[i])
        if has_mc:
            variance += sums[2 + n_sources, i] * factor[2 + n_sources]
        out[i] = variance / (b[i] + variance)


@njit(cache=True, nogil=True, error_model="numpy")
def _add_bounds(s: Floats, b: Floats, c: Floats, ratio: Floats, mantissa: Floats, out: Floats) -> None:
    """Add to `out` an upper bound on Q, or −inf where b ≤ 0; c are shares σ_b²/(b + σ_b²), 0 for any σ_b.

    With d = 1 − c and t = c s/b, eq:Q is 2[(s+b) ln r − s d ln(1 + t)/t], r = (s+b)/(b + c s). It falls with σ_b, so
    that of c = 0 (eq:Q0) bounds all. ln r is that of the exponent of r plus 2 artanh((m−1)/(m+1)) of its mantissa m, by
    a series whose remainder is below REMAINDER; ln(1 + t)/t is at least (6 + 3t)/(6 + 6t + t²), a Padé approximant,
    and at least 0. No loop reads memory both as numbers and as bits, so all of them run in vectors.
    """
    bits, mantissa_bits = ratio.view(np.int64), mantissa.view(np.int64)
    for i in range(s.size):
        signal = max(s[i], 0.0)
        ratio[i] = (signal + b[i]) / (b[i] + signal * c[i]) if b[i] > 0.0 else 1.0
    for i in range(s.size):
        mantissa_bits[i] = (bits[i] & MANTISSA) | ONE
    for i in range(s.size):
        f = (mantissa[i] - 1.0) / (mantissa[i] + 1.0)
        g = f * f
        series = 1.0 + g * (1 / 3 + g * (1 / 5 + g * (1 / 7 + g * (1 / 9 + g * (1 / 11 + g * (1 / 13))))))
        log = ((bits[i] >> 52) - 1023) * LN2 + 2.0 * f * series + REMAINDER
        signal = max(s[i], 0.0)
        t = signal * c[i] / b[i]
        second = (6.0 + 3.0 * t) / (6.0 + t * (6.0 + t)) if t < LARGE else 0.0
        bound = 2.0 * ((signal + b[i]) * log - signal * (1.0 - c[i]) * second)
        out[i] += bound if b[i] > 0.0 else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_bounds(
    left: Fixed, total: Fixed, factor: Floats, n_sources: int, has_mc: bool, work: Floats, out: Floats
) -> None:
    """Upper bound on Q_L + Q_R for each cut, from the quantities left of it.

    Where sources or MC statistics count the bound is close, so that few cuts have to be judged exactly.
    """
    n = out.size
    s, b, c, ratio, mantissa = work[0, :n], work[1, :n], work[2, :n], work[3, :n], work[4, :n]
    out[:] = 0.0
    c[:] = 0.0
    for _ in range(2):
        for i in range(n):
            s[i] = left[0, i] * factor[0]
            b[i] = left[1, i] * factor[1]
        if n_sources > 0 or has_mc:
            _fill_shares(left[:, :n], b, factor, n_sources, has_mc, ratio, mantissa, c)
        _add_bounds(s, b, c, ratio, mantissa, out)
        # The right side; after the second time the left one again.
        for quantity in range(total.size):
            for i in range(n):
                left[quantity, i] = total[quantity] - left[quantity, i]


@njit(cache=True, nogil=True)
def _first_largest(values: Floats) -> int:
    """Return where the largest value stands, the first of equals."""
    best = 0
    for i in range(1, values.size):
        if values[i] > values[best]:
            best = i
    return best


@njit(cache=True, nogil=True)
def _add_missing(left: Fixed, n_cuts: int, missing: Fixed) -> None:
    """Add the missing values to the quantities left of each cut."""
    for quantity in range(missing.size):
        for cut in range(n_cuts):
            left[quantity, cut] += missing[quantity]


@njit(cache=True, nogil=True, error_model="numpy")
def bound_features(
    hist: Fixed, total: Fixed, factor: Floats, channels: ChannelTable, features: Fixed, n_cuts: Fixed
) -> Floats:
    """Upper bound on Q_L + Q_R over all cuts of each feature, from s and b alone; −inf where no cut is allowed."""
    found = np.empty(features.size)
    left = np.empty((2, BINS), np.int64)
    missing = np.empty(2, np.int64)
    nothing = np.empty(0, np.int64)
    work, bound = np.empty((5, BINS)), np.empty(BINS)
    for f in range(features.size):
        size = n_cuts[features[f]]
        found[f] = -np.inf
        if size == 0:
            continue
        any_missing = _load_feature(hist, nothing, features[f], size, channels, left, missing)
        for option in range(2 if any_missing else 1):
            if option == MISSING_LEFT:
                _add_missing(left, size, missing)
            _fill_bounds(left, total[:2], factor, 0, False, work, bound[:size])
            found[f] = max(found[f], bound[_first_largest(bound[:size])])
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _gain(left: Fixed, total: Fixed, node_q: float, formula: Formula, side: Fixed) -> float:
    """ΔQ of a cut with these quantities left of it, or −inf where it is not allowed; `side` is used up."""
    for i in range(total.size):
        side[i] = left[i]
    left_q = _side(side, formula)
    if left_q < 0.0:
        return -np.inf
    for i in range(total.size):
        side[i] = total[i] - side[i]
    right_q = _side(side, formula)
    return left_q + right_q - node_q if right_q >= 0.0 else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _output(sums: Fixed, formula: Formula, low: float, high: float) -> float:
    """Output 2p − 1 of a node with b > 0, within the limits that cuts above it left."""
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
def _best_cut(
    left: Fixed,
    total: Fixed,
    node_q: float,
    formula: Formula,
    bound: Floats,
    least: float,
    direction: int,
    low: float,
    high: float,
    side: Fixed,
) -> tuple[float, int]:
    """Largest ΔQ above `least` of one feature, and its cut, the lowest of equals; `least` and 0 where there is none.

    The cut with the largest bound is judged first: few others can then still be the best.
    """
    leader = _first_largest(bound)
    best_gain, best_cut, floor = least, 0, least
    for step in range(-1, bound.size):
        code = leader if step < 0 else step
        if bound[code] - node_q < floor or bound[code] == -np.inf:
            continue
        gain = _gain(left[:, code], total, node_q, formula, side)
        directed = direction != 0 and gain > -np.inf
        if directed and not _in_order(left[:, code], total, formula, direction, low, high, side):
            continue
        floor = max(floor, gain)
        if step >= 0 and gain > best_gain:
            best_gain, best_cut = gain, code + 1
    return best_gain, best_cut


@njit(cache=True, nogil=True, error_model="numpy")
def scan_features(
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
    """Best split over some features: largest ΔQ, ties to the first found (feature, then missing right, then cut).

    A cheap upper bound on ΔQ is computed for every cut; only cuts that could be the best are judged exactly. `hist` is
    the nominal histogram, `systematics` that of the word which these features share (empty without); `total` and
    `node_q` are the node's quantities and Q. Features come in increasing order; `n_cuts` and `directions` (±1 for a
    monotonic constraint, else 0) are those of every feature; outputs are compared within `low` and `high`. `best_left`
    receives the quantities left of the best split. Returns gain, feature (−1 where no cut is allowed), cut, and where
    missing values go.
    """
    best_gain, best_feature, best_cut, best_missing = -np.inf, -1, 0, NONE_MISSING
    left = np.empty((total.size, BINS), np.int64)
    missing, side = np.empty(total.size, np.int64), np.empty(total.size, np.int64)
    work, bound = np.empty((5, BINS)), np.empty(BINS)
    for f in range(features.size):
        feature = features[f]
        size = n_cuts[feature]
        if size == 0:
            continue
        any_missing = _load_feature(hist, systematics, feature, size, channels, left, missing)
        for option in range(2 if any_missing else 1):
            if option == MISSING_LEFT:
                _add_missing(left, size, missing)
            n_sources, has_mc = formula.n_sources, formula.has_mc
            _fill_bounds(left, total, formula.factor, n_sources, has_mc, work, bound[:size])
            gain, cut = _best_cut(
                left, total, node_q, formula, bound[:size], best_gain, directions[feature], low, high, side
            )
            if cut > 0:
                best_gain, best_feature, best_cut = gain, feature, cut
                best_missing = option if any_missing else NONE_MISSING
                for i in range(total.size):
                    best_left[i] = left[i, cut - 1]
    return best_gain, best_feature, best_cut, best_missing


@njit(cache=True, nogil=True, error_model="numpy")
def judge_plain(sums: Fixed, lefts: Fixed, formula: Formula, values: Floats, gains: Floats) -> None:
    """Numbers of nodes that are judged on s and b alone, from their quantities and those left of their cuts.

    `values` receives s, b, Q and the output 2p − 1 of each node, `gains` the ΔQ of its cut.
    """
    side = np.empty(2, np.int64)
    for i in range(sums.shape[0]):
        variance = node_variance(sums[i], formula)
        s, b = sums[i, 0] * formula.factor[0], sums[i, 1] * formula.factor[1]
        values[i, 0], values[i, 1] = s, b
        values[i, 2] = significance_value(s, b, variance)
        values[i, 3] = 2.0 * purity_value(s, b, variance) - 1.0
        gains[i] = _gain(lefts[i], sums[i], values[i, 2], formula, side)
