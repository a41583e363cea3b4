"""Fisher information against the naive sum over bins."""

import numpy as np
import pytest

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
