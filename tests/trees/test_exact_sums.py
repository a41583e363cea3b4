"""Exact sums: those of fractions, however values are divided, and rounded once."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbdt.trees.kernels.exact_sums import exact_sum, round_sums, sum_in_bins

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


def nearest(values):
    total = sum((Fraction(value) for value in values), Fraction())
    try:
        return float(total)
    except OverflowError:
        return np.inf if total > 0 else -np.inf


@given(st.lists(st.tuples(FINITE, st.integers(0, 2)), max_size=20), st.integers(0, 20))
@settings(max_examples=50)
def test_sums_are_those_of_fractions_however_values_are_divided(rows, cut):
    values = np.array([value for value, _ in rows], dtype=np.float64)
    bins = np.array([where for _, where in rows], dtype=np.int64)
    found = sum_in_bins(values[:cut], bins[:cut], 3) + sum_in_bins(values[cut:], bins[cut:], 3)
    expected = [nearest([value for value, where in rows if where == i]) for i in range(3)]
    assert round_sums(found).tolist() == expected


def test_what_is_too_large_for_a_number_is_infinite():
    assert round_sums(exact_sum(np.full(3, 1.7e308))) == np.inf
    assert round_sums(exact_sum(np.full(3, -1.7e308))) == -np.inf


def test_many_sums_can_be_added():
    """Limbs are carried: a sum that is added a million times does not overflow."""
    one = exact_sum(np.full(1000, 2.0**53 - 1))
    assert round_sums(one * 10**6) == 1e9 * (2.0**53 - 1)
