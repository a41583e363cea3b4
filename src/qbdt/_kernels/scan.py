"""The split scan: every cut on every feature of a node, judged by ΔQ.

What a cut is judged on are *quantities*: s, b, the Δ_k, and, where asked for, the MC variance and the two sums behind
the effective number of simulated events. Each is a sum of histogram channels with signs ±1, as exact integers, times a
factor; the table of terms says which. Quantity 0 is s, 1 is b, 2 … 1 + n_sources are the Δ_k.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from qbdt.dtypes import BINS, MISSING, Fixed, Yields
from qbdt.significance import correlated_variance, defined, significance_value

__all__ = [
    "MISSING_LEFT",
    "MISSING_RIGHT",
    "NONE_MISSING",
    "bound_features",
    "node_variance",
    "scan_features",
    "total_sums",
]

MISSING_RIGHT, MISSING_LEFT, NONE_MISSING = 0, 1, 2
"""Where missing values of the cut feature go; the last where the node has none."""

LN2 = 0.6931471805599453
MANTISSA = (1 << 52) - 1
ONE = 1023 << 52
REMAINDER = 2e-8
"""Above what the series in `_add_bounds` leaves out, 1.1e-8, with room for rounding."""


@njit(cache=True, nogil=True)
def _add_code(
    hist: Fixed,
    details: Fixed,
    feature: int,
    code: int,
    first: Fixed,
    detail: Fixed,
    base: Fixed,
    stride: Fixed,
    sign: Fixed,
    out: Fixed,
) -> bool:
    """Add one bin of one feature to the sums; return whether anything was there."""
    something = False
    for quantity in range(out.size):
        for term in range(first[quantity], first[quantity + 1]):
            if detail[term]:
                value = details[base[term] + code * stride[term]]
            else:
                value = hist[base[term] + feature * BINS + code]
            if value != 0:
                out[quantity] += sign[term] * value
                something = True
    return something


@njit(cache=True, nogil=True)
def total_sums(
    hist: Fixed,
    details: Fixed,
    feature: int,
    first: Fixed,
    detail: Fixed,
    base: Fixed,
    stride: Fixed,
    sign: Fixed,
) -> Fixed:
    """Quantities of a whole node, as integers, from any one feature and its details."""
    out = np.zeros(first.size - 1, np.int64)
    for code in range(BINS):
        _add_code(hist, details, feature, code, first, detail, base, stride, sign, out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def node_variance(sums: Fixed, factor: Yields, n_sources: int, has_mc: bool) -> float:
    """σ_b² (eq:sigmab, plus δ² where MC statistics count) of a node with b > 0."""
    b = sums[1] * factor[1]
    r1 = 0.0
    r2 = 0.0
    for k in range(2, 2 + n_sources):
        delta = sums[k] * factor[k]
        r = delta * delta / (b + delta * delta)
        r1 += r
        r2 += r * r
    variance = correlated_variance(b, r1, r2)
    if has_mc:
        variance += sums[2 + n_sources] * factor[2 + n_sources]
    return variance


@njit(cache=True, nogil=True, error_model="numpy")
def _side(sums: Fixed, factor: Yields, n_sources: int, has_mc: bool, min_entries: float) -> float:
    """Q of one side of a cut, or −1 where such a node is not allowed."""
    if not defined(sums[1]):
        return -1.0
    if min_entries > 0.0:
        n = sums.size
        simulated = sums[n - 2] * factor[n - 2]
        squares = sums[n - 1] * factor[n - 1]
        if simulated <= 0.0 or simulated * simulated < min_entries * squares:
            return -1.0
    if sums[0] <= 0:
        return 0.0
    variance = node_variance(sums, factor, n_sources, has_mc)
    return significance_value(sums[0] * factor[0], sums[1] * factor[1], variance)


@njit(cache=True, nogil=True)
def _running_sums(
    hist: Fixed,
    details: Fixed,
    feature: int,
    n_cuts: int,
    first: Fixed,
    detail: Fixed,
    base: Fixed,
    stride: Fixed,
    sign: Fixed,
    out: Fixed,
) -> None:
    """Quantities left of each cut, as out[quantity, cut − 1]."""
    for quantity in range(out.shape[0]):
        row = out[quantity]
        row[:n_cuts] = 0
        for term in range(first[quantity], first[quantity + 1]):
            factor = sign[term]
            running = np.int64(0)
            if detail[term]:
                at, step = base[term], stride[term]
                for code in range(n_cuts):
                    running += details[at + code * step]
                    row[code] += factor * running
            else:
                at = base[term] + feature * BINS
                for code in range(n_cuts):
                    running += hist[at + code]
                    row[code] += factor * running


@njit(cache=True, nogil=True, error_model="numpy")
def _add_bounds(s: Yields, b: Yields, ratio: Yields, bits: Fixed, out: Yields) -> None:
    """Add to `out` a number that Q cannot pass, whatever σ_b is, or −inf where b ≤ 0; all loops run in vectors.

    Q falls with σ_b, so eq:Q0 = 2[(s+b) ln r − s], r = (s+b)/b, is a bound. The logarithm is that of the exponent of r
    plus 2 artanh((m−1)/(m+1)) of its mantissa m, by a series whose remainder is below REMAINDER. `bits` is the memory
    of `ratio` read as integers.
    """
    for i in range(s.size):
        signal = max(s[i], 0.0)
        ratio[i] = (signal + b[i]) / b[i] if b[i] > 0.0 else 1.0
    for i in range(s.size):
        exponent = bits[i] >> 52
        bits[i] = (bits[i] & MANTISSA) | ONE
        m = ratio[i]
        f = (m - 1.0) / (m + 1.0)
        g = f * f
        series = 1.0 + g * (1 / 3 + g * (1 / 5 + g * (1 / 7 + g * (1 / 9 + g * (1 / 11 + g * (1 / 13))))))
        log = (exponent - 1023) * LN2 + 2.0 * f * series + REMAINDER
        signal = max(s[i], 0.0)
        bound = 2.0 * ((signal + b[i]) * log - signal)
        out[i] += bound if b[i] > 0.0 else -np.inf


@njit(cache=True, nogil=True, error_model="numpy")
def _bounds(
    left: Fixed, total: Fixed, factor: Yields, s: Yields, b: Yields, ratio: Yields, bits: Fixed, out: Yields
) -> None:
    """Bound on Q_L + Q_R for each cut, from s and b left of it (rows 0 and 1 of `left`)."""
    n = out.size
    out[:] = 0.0
    for i in range(n):
        s[i] = left[0, i] * factor[0]
        b[i] = left[1, i] * factor[1]
    _add_bounds(s[:n], b[:n], ratio[:n], bits[:n], out)
    for i in range(n):
        s[i] = (total[0] - left[0, i]) * factor[0]
        b[i] = (total[1] - left[1, i]) * factor[1]
    _add_bounds(s[:n], b[:n], ratio[:n], bits[:n], out)


@njit(cache=True, nogil=True, error_model="numpy")
def bound_features(
    hist: Fixed,
    total: Fixed,
    factor: Yields,
    first: Fixed,
    detail: Fixed,
    base: Fixed,
    stride: Fixed,
    sign: Fixed,
    features: Fixed,
    n_cuts: Fixed,
) -> Yields:
    """For each feature what Q_L + Q_R cannot pass for any cut, from s and b alone; −inf where no cut is allowed."""
    found = np.full(features.size, -np.inf)
    left = np.empty((2, BINS), np.int64)
    missing = np.empty(2, np.int64)
    nothing = np.empty(0, np.int64)
    s, b, ratio, bound = np.empty(BINS), np.empty(BINS), np.empty(BINS), np.empty(BINS)
    bits = ratio.view(np.int64)
    for f in range(features.size):
        feature = features[f]
        size = n_cuts[feature]
        if size == 0:
            continue
        _running_sums(hist, nothing, feature, size, first, detail, base, stride, sign, left)
        missing[:] = 0
        any_missing = _add_code(hist, nothing, feature, MISSING, first, detail, base, stride, sign, missing)
        for option in range(2 if any_missing else 1):
            if option == MISSING_LEFT:
                for i in range(2):
                    left[i, :size] += missing[i]
            _bounds(left, total, factor, s, b, ratio, bits, bound[:size])
            found[f] = max(found[f], bound[:size].max())
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def scan_features(
    hist: Fixed,
    details: Fixed,
    total: Fixed,
    node_q: float,
    factor: Yields,
    n_sources: int,
    has_mc: bool,
    min_entries: float,
    first: Fixed,
    detail: Fixed,
    base: Fixed,
    stride: Fixed,
    sign: Fixed,
    features: Fixed,
    n_cuts: Fixed,
    best_left: Fixed,
) -> tuple[float, int, int, int]:
    """Best split over some features: largest ΔQ, ties to the first found (feature, then missing right, then cut).

    A cheap bound on ΔQ is computed for every cut; only cuts that could be the best are judged exactly.

    Parameters
    ----------
    hist, details
        The node's histogram, and the details of each of these features (without columns where there are none).
    total, node_q
        Quantities of the node as integers, and its Q.
    factor
        Factor of each quantity.
    n_sources, has_mc, min_entries
        Number of Δ_k; whether the MC variance follows them; least effective number of simulated background events on
        either side (its two sums are the last quantities), 0 for no limit.
    first, detail, base, stride, sign
        Terms of quantity i are first[i] … first[i+1] − 1: each a channel, in the histogram or in the details, that
        starts at `base` and has its bins `stride` apart, and a sign.
    features, n_cuts
        Features to scan, in increasing order; number of cuts of every feature.
    best_left
        Receives the quantities left of the best split.

    Returns
    -------
    gain, feature, cut, missing
        Feature −1 where no cut is allowed; `missing` is one of the constants above.
    """
    n = total.size
    best_gain, best_feature, best_cut, best_missing = -np.inf, -1, 0, NONE_MISSING
    running = np.empty((n, BINS), np.int64)
    missing = np.empty(n, np.int64)
    left = np.empty(n, np.int64)
    right = np.empty(n, np.int64)
    s, b, ratio, bound = np.empty(BINS), np.empty(BINS), np.empty(BINS), np.empty(BINS)
    bits = ratio.view(np.int64)
    for f in range(features.size):
        feature = features[f]
        size = n_cuts[feature]
        if size == 0:
            continue
        own = details[f]
        _running_sums(hist, own, feature, size, first, detail, base, stride, sign, running)
        missing[:] = 0
        any_missing = _add_code(hist, own, feature, MISSING, first, detail, base, stride, sign, missing)
        for option in range(2 if any_missing else 1):
            if option == MISSING_LEFT:
                for i in range(n):
                    running[i, :size] += missing[i]
            _bounds(running, total, factor, s, b, ratio, bits, bound[:size])
            floor = best_gain
            leader = int(np.argmax(bound[:size]))
            for step in range(-1, size):
                code = leader if step < 0 else step
                if bound[code] - node_q < floor or bound[code] == -np.inf:
                    continue
                for i in range(n):
                    left[i] = running[i, code]
                    right[i] = total[i] - left[i]
                left_q = _side(left, factor, n_sources, has_mc, min_entries)
                if left_q < 0.0:
                    continue
                right_q = _side(right, factor, n_sources, has_mc, min_entries)
                if right_q < 0.0:
                    continue
                gain = left_q + right_q - node_q
                floor = max(floor, gain)
                if step >= 0 and gain > best_gain:
                    best_gain, best_feature, best_cut = gain, feature, code + 1
                    best_missing = option if any_missing else NONE_MISSING
                    best_left[:] = left
    return best_gain, best_feature, best_cut, best_missing
