"""Boosting factors and fixed point against the obvious loops."""

import numpy as np
import pytest

from qbdt.training.kernels.weights import (
    boost_rows,
    drop_rows,
    quantise_columns,
    quantise_squares,
    quantise_weights,
    splitmix,
)


def test_boosting_multiplies_each_leaf():
    rng = np.random.default_rng(1)
    n, start = 5000, 300
    current = rng.normal(size=n)
    leaf_of = rng.integers(0, 3, n)
    rows = np.concatenate([np.flatnonzero(leaf_of == leaf) + start for leaf in range(3)]).astype(np.int32)
    ends = np.cumsum(np.bincount(leaf_of, minlength=3))
    leaves = np.stack([ends - np.bincount(leaf_of, minlength=3), ends], axis=1)
    factors = np.array([2.0, 0.5, 3.0])
    expected = current * factors[leaf_of]
    for low, high in ((0, 1234), (1234, n)):
        boost_rows(current, start, rows, leaves, factors, start + low, start + high)
    assert np.array_equal(current, expected)


@pytest.mark.parametrize(("n_columns", "width"), [(3, 4), (1, 4), (5, 8)])
def test_fixed_point_equals_rounding(n_columns, width):
    rng = np.random.default_rng(2)
    n, scale = 200, 2.0**26
    initial = rng.uniform(-1, 1, (n, n_columns)) * 10.0 ** rng.integers(-12, 1, (n, n_columns))
    growth = np.exp2(rng.integers(-3, 3, n), dtype=np.float64)
    fixed = np.full((n, width), 99, np.int32)
    largest = quantise_columns(initial.ravel(), growth, fixed.ravel(), width, scale)
    expected = np.rint(initial * growth[:, None] * scale).astype(np.int64)
    assert np.array_equal(fixed[:, :n_columns], expected)
    assert np.all(fixed[:, n_columns:] == 99)
    assert largest == np.abs(expected).max()
    one = np.empty(n, np.int64)
    assert quantise_weights(growth, one, scale) == np.rint(growth * scale).sum()
    assert np.array_equal(one, np.rint(growth * scale))


def test_squares():
    rng = np.random.default_rng(3)
    current, fixed = rng.uniform(-1, 1, 50), np.full((50, 4), 99, np.int32)
    largest = quantise_squares(current, fixed.ravel(), 4, 2, 2.0**30)
    assert np.array_equal(fixed[:, 2], np.rint(current * current * 2.0**30))
    assert largest == fixed[:, 2].max()
    assert np.all(fixed[:, [0, 1, 3]] == 99)


def test_subsample_depends_on_position_only():
    n, seed, threshold = 400, 5, 2**52
    with np.errstate(over="ignore"):
        kept = np.array([splitmix(seed, i) < threshold for i in range(n)])
        parts = [np.ones((n // 2, 4), np.int64) for _ in range(2)]
        for i, part in enumerate(parts):
            drop_rows(part.ravel(), 4, 3, seed, threshold, i * n // 2, (i + 1) * n // 2)
    table = np.concatenate(parts)
    assert np.array_equal(table[:, :3], np.repeat(kept[:, None], 3, axis=1))
    assert np.all(table[:, 3] == 1)
    assert 0.4 < kept.mean() < 0.6
