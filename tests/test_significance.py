"""Q against mpmath, and what must hold for any yields."""

from dataclasses import FrozenInstanceError

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qbdt.errors import DataError
from qbdt.statistics import (
    TanhScan,
    background_variance,
    correlated_variance,
    has_significance,
    purity,
    purity_value,
    scan_tanh,
    significance,
    significance_value,
)
from qbdt.statistics.significance import binned_significance

YIELD = st.floats(1e-12, 1e12)


def exact_q(s, b, v, digits=120):
    """Eq. Q (and Q0) as printed, with enough digits."""
    with mpmath.workdps(digits):
        s, b, v = mpmath.mpf(s), mpmath.mpf(b), mpmath.mpf(v)
        if v == 0:
            return 2 * ((s + b) * mpmath.log(1 + s / b) - s)
        first = (s + b) * mpmath.log((s + b) * (b + v) / (b * b + (s + b) * v))
        return 2 * (first - b * b / v * mpmath.log(1 + s * v / (b * (b + v))))


@given(YIELD, YIELD, st.one_of(st.just(0.0), st.floats(1e-40, 1e12)))
def test_q_equals_the_printed_formula(s, b, v):
    expected = exact_q(s, b, v)
    assert abs((mpmath.mpf(significance_value(s, b, v)) - expected) / expected) < 1e-12


ANY = st.floats(-307, 307).map(lambda power: 10.0**power)
"""All orders of magnitude that doubles have."""


@settings(max_examples=60)
@example(1e306, 1.0, 1e-79)  # Q is no double: in plain Python this was an error
@example(2e50, 1e50, 1e307)  # both terms of the formula for σ² ≫ b count
@given(ANY, st.one_of(ANY, st.just(5e-324)), st.one_of(st.just(0.0), ANY))
def test_q_holds_over_all_doubles(s, b, v):
    """Products of three such numbers leave the range of doubles; Q must not, where it is within."""
    expected, found = exact_q(s, b, v, digits=2000), significance_value(s, b, v)
    if expected > 1e307:
        assert found > 9e306
    else:
        assert abs(mpmath.mpf(found) - expected) <= 1e-11 * expected + 1e-290


@pytest.mark.parametrize("ratio", [0.0999999, 0.1, 0.1000001])
@pytest.mark.parametrize("v", [0.0, 1e-17, 0.3, 1e6])
def test_q_is_accurate_where_the_series_begins(ratio, v):
    expected = exact_q(ratio, 1.0, v)
    assert abs((mpmath.mpf(significance_value(ratio, 1.0, v)) - expected) / expected) < 1e-12


@given(YIELD, YIELD, st.floats(0, 1e12), st.floats(0, 1e12))
def test_q_never_rises_with_the_uncertainty(s, b, v, more):
    q = significance_value(s, b, v)
    assert significance_value(s, b, v + more) <= q * (1 + 1e-13)  # both are rounded


@given(st.floats(0, 1e300), st.floats(1e-300, 1e300), st.floats(0, 1e300))
def test_q_is_a_number_for_any_yields(s, b, v):
    q = significance_value(s, b, v)
    assert np.isfinite(q)
    assert q >= 0


def test_the_published_defect_is_not_there():
    # The published program gives 0.4759 for this leaf of its QBDT1; eq. Q0 is the upper limit for any σ.
    q0 = significance_value(0.10029, 0.014408, 0.0)
    assert q0 == pytest.approx(0.2753, abs=1e-4)
    assert significance_value(0.10029, 0.014408, 1e-17) == pytest.approx(q0, rel=1e-12)


def test_no_signal_means_no_significance():
    assert significance(-1.0, 1.0) == 0
    assert significance(0.0, 1.0, 2.0) == 0
    assert purity(-1.0, 0.5) == 0


def test_without_background_there_is_no_significance():
    assert [bool(has_significance(b)) for b in (-1.0, 0.0, 5e-324, np.nan)] == [False, False, True, False]


def test_arrays_and_shapes():
    q = significance(np.array([[1.0], [2.0]]), np.array([10.0, 20.0, 30.0]), 1.0)
    assert significance(1.0, 10.0) == significance_value(1.0, 10.0, 0.0) > q[0, 0]
    assert q.shape == (2, 3)
    assert q[1, 2] == significance_value(2.0, 30.0, 1.0)


@pytest.mark.parametrize("b", [0.0, -1.0, np.nan])
def test_background_must_be_positive(b):
    for function in (significance, purity):
        with pytest.raises(DataError, match="positive background"):
            function(1.0, b)
    with pytest.raises(DataError, match="positive background"):
        background_variance(b, [1.0])


def test_negative_variance_is_refused():
    with pytest.raises(DataError, match="sigma2=-1"):
        significance(1.0, 1.0, -1.0)


@given(st.floats(1e-6, 1e6), st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
def test_sigma_b_equals_the_double_sum(b, deltas):
    r = [d * d / (b + d * d) for d in deltas]
    double = sum(x * y for i, x in enumerate(r) for j, y in enumerate(r) if i != j)
    expected = max(0.0, b * (sum(r) - double))
    assert background_variance(b, deltas) == pytest.approx(expected, rel=1e-9, abs=1e-9 * b)
    assert correlated_variance(b, sum(r), sum(x * x for x in r)) == pytest.approx(expected, rel=1e-9, abs=1e-9 * b)


def test_equal_sources_break_the_formula_down_as_documented():
    # algorithm.md section 3: equal 5 % sources at b = 20 496 give σ_b²/b of 0.94 … 0.98, 0.12 … and a clipped negative.
    b = 20496.0
    values = [float(background_variance(b, [0.05 * b] * n)) / b for n in (1, 2, 3)]
    assert values[0] > 0.9
    assert values[1] < 0.2
    assert values[2] == 0


def test_purity():
    found = [purity_value(s, 3.0, v) for s, v in ((1.0, 0.0), (1.0, 4.0), (0.0, 4.0), (-1.0, 4.0))]
    assert found == [0.25, 0.125, 0, 0]
    assert purity([1.0, 0.0, -1.0], 3.0, 4.0).tolist() == [0.125, 0, 0]
    assert purity(1.0, 3.0) == 0.25


def test_mc_variance_is_added():
    assert background_variance(100.0, [0.0], 7.0) == 7.0


def test_bins_without_background_do_not_count():
    expected = float(significance(1.0, 10.0) + significance(1.0, 0.5))
    assert binned_significance([1.0, 1.0, 1.0, 1.0], [10.0, 0.0, -1.0, 0.5]) == pytest.approx(expected)


@pytest.mark.parametrize("n_bins", [2, 20])
def test_the_scan_equals_histograms_of_transformed_scores(n_bins):
    rng = np.random.default_rng(1)
    signal, background = np.append(rng.normal(1.0, 1.0, 200), 0.0), np.append(rng.normal(-1.0, 1.0, 300), 0.0)
    yields = rng.uniform(0.1, 2.0, 201), rng.uniform(0.1, 2.0, 301)
    scan = scan_tanh(signal, yields[0], background, yields[1], n_bins)
    assert scan.constants.tolist() == [round(0.05 * i, 2) for i in range(1, 31)]
    for c, q, allowed in zip(scan.constants, scan.q, scan.allowed, strict=True):
        s, b = (
            np.histogram(np.tanh(c * scores), n_bins, (-1.0, 1.0), weights=weights)[0]
            for scores, weights in ((signal, yields[0]), (background, yields[1]))
        )
        assert q == pytest.approx(binned_significance(s, b))
        assert allowed == (b[-1] > 0)
    assert np.all(scan.allowed) == (n_bins == 2)  # of 20 bins the last is beyond all scores where c is small
    if n_bins == 20:
        assert np.array_equal(scan_tanh(signal, yields[0], background, yields[1]).q, scan.q)


def test_the_best_constant_is_an_allowed_one():
    q = np.array([5.0, 3.0, 4.0])
    scan = TanhScan(np.array([0.1, 0.2, 0.3]), q, np.array([False, True, True]))
    assert (scan.best, scan.largest_q) == (0.3, 4.0)
    none = TanhScan(scan.constants, q, np.zeros(3, dtype=bool))
    assert (none.best, none.largest_q) == (None, 0.0)
    with pytest.raises(FrozenInstanceError):
        scan.q = q  # type: ignore[misc]
