"""Fisher information against the naive sum over bins."""

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbdt.statistics import Expectation, SourceExpectation, information_matrix, profiled_information


def test_matrix_equals_the_naive_sum():
    rng = np.random.default_rng(1)
    s, shifts, v = rng.random(5), rng.normal(size=(3, 5)), rng.random(5) + 1
    rows = np.vstack([s, shifts])
    naive = sum(np.outer(rows[:, i], rows[:, i]) / v[i] for i in range(5)) + np.diag([0, 1, 1, 1])
    assert information_matrix(s, shifts, v) == pytest.approx(naive)
    assert profiled_information(s, shifts, v) == pytest.approx(1 / np.linalg.inv(naive)[0, 0])


def test_without_sources_it_is_the_textbook_sum():
    assert profiled_information([3.0, 1.0], np.zeros((0, 2)), [9.0, 1.0]) == pytest.approx(2.0)


def test_one_bin_reduces_to_the_paper():
    """σ_μ⁻² = s²/(b + ΣΔ²) for a single region, as eq:Q to first order."""
    assert profiled_information([3.0], [[2.0], [4.0]], [100.0]) == pytest.approx(9 / 120)


def test_batches():
    rng = np.random.default_rng(2)
    s, shifts, v = rng.random((4, 5)), rng.normal(size=(4, 3, 5)), rng.random((4, 5)) + 1
    single = [float(profiled_information(s[i], shifts[i], v[i])) for i in range(4)]
    assert profiled_information(s, shifts, v) == pytest.approx(single)


def test_expectations_average_and_print():
    one = Expectation(1.0, 1.2, unprofiled=2.0, sources=(SourceExpectation("jes", 0.1, 1.5, 0.5),))
    other = Expectation(2.0, 2.2, unprofiled=3.0, sources=(SourceExpectation("jes", 0.3, 2.5, 0.7),))
    mean = Expectation.mean([one, other])
    assert (mean.sigma_stat, mean.unprofiled) == (1.5, 2.5)
    assert mean.sources[0].profiled_cost == pytest.approx(0.6)
    assert Expectation.from_dict(one.to_dict()) == one
    assert one.tables()[0].rows[1] == ("jes", "0.10", "1.5", "0.5")


def exact_information(signal, shifts, variance):
    """I* by elimination, with digits for products of any four doubles."""
    with mpmath.workdps(1300):
        rows = [[mpmath.mpf(x) for x in row] for row in (signal, *shifts)]
        inverse = [1 / mpmath.mpf(x) for x in variance]
        matrix = mpmath.matrix(len(rows), len(rows))
        for i, one in enumerate(rows):
            for j, other in enumerate(rows):
                matrix[i, j] = mpmath.fsum(x * y * w for x, y, w in zip(one, other, inverse, strict=True)) + (
                    i == j > 0
                )
        if len(rows) == 1:  # mpmath before 1.4 solves no empty system
            return matrix[0, 0]
        nuisance, mixed = matrix[1:, 1:], matrix[1:, 0]
        return matrix[0, 0] - (mixed.T * mpmath.lu_solve(nuisance, mixed))[0]


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.floats(-90, 90), st.floats(-4, 4))
def test_information_to_its_contract(seed, power, strength):
    """Yields of any size: I* is exact to 1e-11 of what is there without sources, I_μμ."""
    rng = np.random.default_rng(seed)
    size = 10.0**power
    variance = size * rng.uniform(0.1, 10.0, 5)
    signal = np.sqrt(size) * rng.normal(size=5)
    shifts = 10.0**strength * np.sqrt(size) * rng.normal(size=(2, 5))
    found, expected = profiled_information(signal, shifts, variance), exact_information(signal, shifts, variance)
    assert abs(mpmath.mpf(float(found)) - expected) <= 1e-11 * float(np.sum(signal**2 / variance))


def test_information_where_a_quotient_leaves_the_range_of_doubles():
    found = profiled_information([1e-10, 0.0], [[0.0, 2.0]], [1e-320, 4.0])
    assert found == pytest.approx(float(exact_information([1e-10, 0.0], [[0.0, 2.0]], [1e-320, 4.0])), rel=1e-11)


POWERS = st.floats(-323, 307)
"""All orders of magnitude that doubles have."""


@settings(max_examples=60)
@given(st.integers(0, 2**32), POWERS, st.floats(-290, 290), st.lists(st.floats(-290, 290), max_size=3))
def test_information_over_all_doubles(seed, of_variance, of_signal, of_shifts):
    """Signal and shifts of any size in standard deviations of the bins: what is a double comes out as one."""
    rng = np.random.default_rng(seed)
    variance = 10.0**of_variance * rng.uniform(0.5, 1.5, 4)
    sizes = [10.0 ** np.clip(power / 2 + of_variance / 2, -300, 300) for power in (of_signal, *of_shifts)]
    signal, *others = (size * rng.uniform(-1.0, 1.0, 4) for size in sizes)
    assume(np.all(variance > 0))
    shifts = np.reshape(others, (-1, 4))
    alone = exact_information(signal, np.zeros((0, 4)), variance)
    assume(all(exact_information(row, np.zeros((0, 4)), variance) < 1e300 for row in (signal, *shifts)))
    found, expected = profiled_information(signal, shifts, variance), exact_information(signal, shifts, variance)
    assert abs(mpmath.mpf(float(found)) - expected) <= 1e-11 * alone + 1e-290
