"""Integrals over held-out events: tree by tree as from the functions themselves, and what follows from them."""

import numpy as np
import pytest

from qbdt.statistics import profiled_information
from qbdt.training.profile.integrals import RIDGE, Integrals
from qbdt.training.profile.shift_sums import LeafSums


def test_trees_add_up_to_the_integrals_of_their_sum():
    rng = np.random.default_rng(2)
    n_events, n_sources = 40, 2
    s, n = rng.random(n_events), 1 + rng.random(n_events)
    shifts, r0 = rng.normal(size=(n_events, n_sources)), rng.random(n_events)
    start = np.column_stack([r0, np.ones(n_events)])
    found = Integrals.without_shifts(s @ start, (start * n[:, None]).T @ start, shifts.T @ start)
    f = np.zeros((n_events, n_sources))
    for _ in range(3):
        leaf, outputs = rng.integers(0, 4, n_events), rng.normal(size=(4, n_sources))
        one = np.eye(4)[leaf]
        found.add_tree(
            LeafSums(one.T @ n, one.T @ shifts, one.T @ (n[:, None] * f), one.T @ s, one.T @ (n * r0)), outputs
        )
        f += outputs[leaf]
    g = np.column_stack([start, f])
    assert found.signal == pytest.approx(s @ g)
    assert found.gram == pytest.approx((g * n[:, None]).T @ g)
    assert found.shifts == pytest.approx(shifts.T @ g)
    again = Integrals.from_dict(found.to_dict(), n_sources)
    assert np.array_equal(again.gram, found.gram)


def exact(seed=5, bins=30, sources=3):
    """Integrals of the exact ratios over bins, and the templates behind them."""
    rng = np.random.default_rng(seed)
    s, b = 10 * rng.random(bins), 50 + 100 * rng.random(bins)
    shifts = rng.normal(0, 20, (sources, bins))
    n = s + b
    f = np.vstack([s / n, np.ones(bins), shifts / n])
    return Integrals(f @ s, (f * n) @ f.T, shifts @ f.T), (s, shifts, n)


def test_exact_ratios_give_the_profiled_information_and_its_coefficients():
    integrals, (s, shifts, n) = exact()
    v = integrals.best()
    expected = 1 / np.sqrt(profiled_information(s, shifts, n))
    assert integrals.uncertainty() == pytest.approx(expected, rel=10 * RIDGE)  # the ridge costs second order
    assert integrals.pulls(v) == pytest.approx(-v[2:], rel=0.05, abs=0.05)  # c = ∫ Δ t*, up to the ridge


def test_without_shifts_only_statistics_count():
    integrals = Integrals.without_shifts(np.array([4.0, 0.0]), np.diag([4.0, 9.0]), np.zeros((0, 2)))
    assert integrals.best().tolist() == [1.0, 0.0]
    assert integrals.uncertainty() == 0.5


def test_an_f_of_noise_gets_no_weight():
    integrals, (_, shifts, n) = exact(sources=1)
    noise = np.random.default_rng(1).normal(0, np.abs(shifts / n).mean(), len(n))
    bigger = Integrals(
        np.append(integrals.signal, 0.0),
        np.block([[integrals.gram, np.zeros((3, 1))], [np.zeros((1, 3)), np.array([[noise**2 @ n]])]]),
        np.vstack([np.append(integrals.shifts, [[0.0]], axis=1), np.zeros((1, 4))]),
    )
    assert bigger.best()[3] == 0.0
    assert bigger.uncertainty() == pytest.approx(integrals.uncertainty())
