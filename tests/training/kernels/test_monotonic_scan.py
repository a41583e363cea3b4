"""Scans under monotonic constraints against trying every cut in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbdt.arrays import BINS, MISSING, MISSING_LEFT, MISSING_RIGHT, NONE_MISSING
from qbdt.statistics import purity, significance
from qbdt.training.kernels.pairs import scan_ordered_pairs
from qbdt.training.kernels.split_scan import ChannelTable, Formula, scan_features, total_sums

N_BINS = 8
DIRECTIONS = np.array([1, -1, 0])
LIMITS = [(-np.inf, np.inf), (-0.2, 0.3), (0.9, 1.0)]


def naive_scan(hist, n_cuts, judge):
    """Histogram as (feature, bin, quantity); `judge` gives the gain of a cut and the outputs of its sides, or None."""
    best, left_of_best = (-np.inf, -1, 0, NONE_MISSING), None
    for feature, bins in enumerate(hist):
        seen = bool(bins[MISSING].any())
        for option in (MISSING_RIGHT, MISSING_LEFT) if seen else (MISSING_RIGHT,):
            for cut in range(1, n_cuts[feature] + 1):
                left = bins[:cut].sum(axis=0) + (bins[MISSING] if option == MISSING_LEFT else 0)
                judged = judge(left, bins.sum(axis=0) - left)
                if judged is None:
                    continue
                gain, (before, after) = judged
                if gain > best[0] and (after - before) * DIRECTIONS[feature] >= 0:
                    best = (gain, feature, cut, option if seen else NONE_MISSING)
                    left_of_best = left.tolist()
    return best, left_of_best


def random_bins(rng, n_quantities, missing, low):
    hist = np.zeros((3, BINS, n_quantities), dtype=np.int64)
    hist[:, :N_BINS] = rng.integers(low, 50, (3, N_BINS, n_quantities))
    hist[:, MISSING] = rng.integers(0, 20, (3, n_quantities)) if missing else 0
    hist[1:, 0] += hist[0].sum(axis=0) - hist[1:].sum(axis=1)  # all features of a node have the same total
    return hist


@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.sampled_from(LIMITS))
def test_features_in_order(seed, missing, negative, limits):
    rng = np.random.default_rng(seed)
    hist = random_bins(rng, 3, missing, -5 if negative else 0)
    total = hist[0].sum(axis=0)
    if total[1] <= 0:
        return
    n_cuts = np.array([N_BINS - 1, N_BINS - 1, 3])
    terms = ChannelTable(
        np.arange(4), np.zeros(3, np.int64), np.arange(3) * 3 * BINS, np.ones(3, np.int64), np.ones(3, np.int64)
    )
    rules = Formula(np.array([0.01, 0.02, 0.001]), 1, False, 0.0)
    flat, nothing = np.ascontiguousarray(hist.transpose(2, 0, 1)).ravel(), np.zeros(0, np.int64)
    assert total_sums(flat, nothing, 0, terms).tolist() == total.tolist()

    def judge(*sides):
        if any(side[1] <= 0 for side in sides):
            return None
        s, b, delta = np.array(sides).T * rules.factor[:, None]
        r = delta**2 / (b + delta**2)
        sigma2 = b * (r - 0.0)
        outputs = np.clip(2 * purity(s, b, sigma2) - 1, *limits)
        return float(significance(s, b, sigma2).sum()) - 0.5, outputs

    left = np.zeros(3, np.int64)
    features = np.arange(3)
    given_terms = (flat, nothing, total, 0.5, rules, terms, features, n_cuts)
    found = scan_features(*given_terms, DIRECTIONS, limits[0], limits[1], left)
    expected, expected_left = naive_scan(hist, n_cuts, judge)
    assert found[0] == pytest.approx(expected[0], rel=1e-9, abs=1e-12)  # the twin adds up σ_b² in another order
    if found[1] >= 0 and found[:3] == expected[:3]:
        assert left.tolist() == expected_left


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([0.0, 5.0]), st.sampled_from(LIMITS))
def test_pairs_in_order(seed, missing, least, limits):
    rng = np.random.default_rng(seed)
    hist = random_bins(rng, 2, missing, 0)
    hist[:, :, 0] -= 25 * (hist[:, :, 0] != 0)
    hist[1:, 0] += hist[0].sum(axis=0) - hist[1:].sum(axis=1)
    total = hist[0].sum(axis=0)
    factor, ridge = np.array([0.5, 0.25]), 1.0
    n_cuts = np.array([N_BINS - 1, N_BINS - 1, 3])

    def gain(top, bottom):
        output = np.clip(top / (bottom + ridge), *limits)
        return output * (2 * top - output * (bottom + ridge)), output

    node_gain = gain(*(total * factor))[0]

    def judge(*sides):
        pairs = [side * factor for side in sides]
        if any(bottom < least or bottom + ridge <= 0 for _, bottom in pairs):
            return None
        gains, outputs = zip(*(gain(*pair) for pair in pairs), strict=True)
        return sum(gains) - node_gain, outputs

    left = np.zeros(2, np.int64)
    arguments = (hist.ravel(), total, factor, ridge, least, np.arange(3), n_cuts, DIRECTIONS, *limits, left)
    found = scan_ordered_pairs(*arguments)
    expected, expected_left = naive_scan(hist, n_cuts, judge)
    assert found == expected
    if found[1] >= 0:
        assert left.tolist() == expected_left
