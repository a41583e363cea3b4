"""Row-by-row work of residual boosting, against numpy."""

import numpy as np
import pytest

from qbdt.training.kernels.residuals import (
    add_outputs,
    add_up_to,
    exponential,
    logistic_pairs,
    number_leaves,
    shift_pairs,
    sum_nominal,
    sum_weights,
)

SCALE = 2.0**40


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize("is_signal", [True, False])
def test_logistic_pairs_are_gradient_and_curvature(rng, is_signal):
    weight, log_ratio = rng.normal(size=50), rng.normal(0, 3, 50)
    out = np.zeros(100, dtype=np.int64)
    logistic_pairs(weight, log_ratio, is_signal, SCALE, SCALE, out)
    p = 1 / (1 + np.exp(-log_ratio))
    expected = np.stack([weight * (is_signal - p), weight * p * (1 - p)], axis=1)
    assert out.reshape(50, 2) / SCALE == pytest.approx(expected, abs=1e-11)  # 2^-41 of rounding, and 1 - p


def test_the_exponential_is_exact_enough_and_ends():
    x = -np.linspace(0.0, 60.0, 500)
    found = np.array([exponential(value) for value in x])
    # The series ends with y⁸, y = x/256: 256 y⁹/9! = 2 × 10⁻⁹ at −60, where it is 10⁻²⁶ of a row, and 10⁻¹³ at −20.
    assert found == pytest.approx(np.exp(x), rel=2e-9)
    assert found[x > -20] == pytest.approx(np.exp(x[x > -20]), rel=1e-12)
    assert exponential(0.0) == 1.0
    assert exponential(-1e9) == exponential(-64.0) < 1e-27


def test_pairs_stay_finite_far_out():
    out = np.zeros(4, dtype=np.int64)
    logistic_pairs(np.ones(2), np.array([-800.0, 800.0]), True, SCALE, SCALE, out)
    assert out.tolist() == [int(SCALE), 0, 0, 0]


def test_shift_pairs_are_residual_and_yield(rng):
    weight, columns, current = rng.normal(size=20), rng.normal(size=(20, 2)), rng.normal(size=(20, 3))
    c, own = rng.normal(size=3), rng.normal(size=2)
    out = np.zeros(40, dtype=np.int64)
    shift_pairs(weight, columns.ravel(), current.ravel(), 0.3, own, c, 0.7, SCALE, SCALE, out)
    n = weight + weight**2
    expected = np.stack([0.3 * weight + columns @ own - n * (0.7 + current @ c), n], axis=1)
    assert out.reshape(20, 2) / SCALE == pytest.approx(expected, abs=1e-11)


def test_sums_over_leaves(rng):
    weight, ratio = rng.normal(size=30), rng.random(30)
    columns, current = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    leaf_of = rng.integers(0, 4, 30).astype(np.int32)
    out, weights = np.zeros((4, 8), dtype=np.int64), np.zeros(4, dtype=np.int64)
    scales = np.full(3, SCALE)
    sum_nominal(weight, ratio, current.ravel(), columns.ravel(), leaf_of, scales, scales, scales[:2], out)
    sum_weights(weight, leaf_of, SCALE, weights)
    n = weight + weight**2
    of_rows = np.column_stack([weight, n, n * ratio, n[:, None] * current, columns])
    expected = [of_rows[leaf_of == leaf].sum(axis=0) for leaf in range(4)]
    assert out / SCALE == pytest.approx(np.array(expected), abs=1e-10)
    assert np.array_equal(weights, out[:, 0])


def test_rows_know_their_leaf_and_get_its_outputs():
    leaf_of, current = np.full(6, -1, dtype=np.int32), np.zeros((6, 2))
    rows = np.array([4, 0, 2, 5, 1, 3], dtype=np.int32)
    number_leaves(rows, np.array([[1, 0, 2], [0, 2, 5], [1, 5, 6]]), leaf_of)
    assert leaf_of.tolist() == [1, 0, 0, 1, 1, 0]
    outputs = np.array([[1.0, -2.0], [3.0, 4.0]])
    add_outputs(current.reshape(-1), leaf_of, outputs)
    assert np.array_equal(current, outputs[leaf_of])


@pytest.mark.parametrize("n_keys", [1, 2, 3, 7, 64, 100])
def test_rows_are_added_to_the_first_key_that_is_not_below(n_keys):
    rng = np.random.default_rng(n_keys)
    values, keys = rng.integers(-9, 9, 200), np.sort(rng.integers(-9, 9, n_keys))
    weight, found, expected = rng.normal(size=200), np.zeros(n_keys + 1, np.int64), np.zeros(n_keys + 1, np.int64)
    add_up_to(values, weight, 1024.0, keys, found)
    np.add.at(expected, np.searchsorted(keys, values), np.rint(np.abs(weight) * 1024.0).astype(np.int64))
    assert found.tolist() == expected.tolist()
