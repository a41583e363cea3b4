"""Fisher information against the naive sum over bins."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
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
    """I* by elimination with 400 digits."""
    with mpmath.workdps(400):
        rows = [[mpmath.mpf(x) for x in row] for row in (signal, *shifts)]
        inverse = [1 / mpmath.mpf(x) for x in variance]
        matrix = mpmath.matrix(len(rows), len(rows))
        for i, one in enumerate(rows):
            for j, other in enumerate(rows):
                matrix[i, j] = mpmath.fsum(x * y * w for x, y, w in zip(one, other, inverse, strict=True)) + (
                    i == j > 0
                )
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
