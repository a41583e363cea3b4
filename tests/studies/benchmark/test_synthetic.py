"""The synthetic problem: σ(s) of the exact score agrees with what was published of it."""

import numpy as np
import pytest

from qbdt.data import Role
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.studies.benchmark.synthetic import LIMIT, measure_exact, measure_sigma_of_signal, measure_synthetic
from qbdt.studies.comparison.contestants import Contestant
from qbdt.studies.comparison.nested_training import Cache
from qbdt.studies.trainers import Trained

EXACT = np.array([15.10, 16.05, 16.05, 15.96, 17.37])
"""t* from the true densities, 20 equal-signal bins, as measured for the design of this benchmark."""


@pytest.fixture(scope="module")
def exact():
    return measure_exact(seed=1, n=20_000)


def test_exact_score(exact):
    # 60k events of each class: σ scatters by about half a percent.
    assert exact["equal_signal", 20] == pytest.approx(EXACT, rel=0.015)


def test_optimised_edges_come_close_to_the_limit(exact):
    for bins, within in ((10, 1.05), (20, 1.035)):
        assert np.all(exact["optimised", bins] < within * np.array(LIMIT))
        assert np.all(exact["optimised", bins] > 0.99 * np.array(LIMIT))


def test_more_nuisances_cost_and_priors_help(exact):
    for b0, b1, b2, b3, b4 in exact.values():
        assert b0 < b1 <= b2
        assert b3 < b2
        assert b3 < b4


def test_one_bin_by_hand():
    signal = ProcessTemplates("signal", Role.SIGNAL, np.array([20.0, 30.0]), np.zeros(2))
    b = np.array([800.0, 200.0])
    change = np.array([10.0, -10.0])
    moved = Shift(b + change, b - change)
    background = ProcessTemplates("background", Role.BACKGROUND, b, np.zeros(2), {"r": moved, "rate": moved})
    found = measure_sigma_of_signal(TemplateSet("score", np.arange(3.0), (signal, background), ("r", "rate")))
    assert found[0] == pytest.approx(1 / np.sqrt(0.4**2 / 820 + 0.6**2 / 230))
    # Two bins and two unknowns: ds/dN is the row of the inverse of [[0.4, 50], [0.6, -50]].
    assert found[1] == pytest.approx(np.sqrt(820 + 230))


def test_a_contestant_is_measured_on_other_events(tmp_path):
    trainings = []

    def fit(data, settings, seed):
        trainings.append(data.total(Role.SIGNAL))
        return Trained(lambda events: np.asarray(events.column("x2") - np.abs(events.column("x0")), dtype=np.float64))

    contestant = Contestant("x0", fit, ({}, {"other": 1}))
    found, settings = measure_synthetic(contestant, 1, 2000, 2, Cache(tmp_path))
    assert settings == {}
    assert set(found) == {("equal_signal", 10), ("equal_signal", 20), ("optimised", 10), ("optimised", 20)}
    # Two halves for each of two settings, then all events.
    assert trainings == pytest.approx([25, 25, 25, 25, 50], rel=0.1)
    assert np.all(found["equal_signal", 20] > LIMIT)
