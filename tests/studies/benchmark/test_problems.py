"""Sources that the benchmark adds do what they are called."""

import numpy as np
import pytest

from qbdt.data.folds import HashFolds
from qbdt.studies.benchmark.physics import BenchmarkOptions
from qbdt.studies.benchmark.problems import (
    LOST,
    SCATTER,
    THIN,
    TILT,
    add_sources,
    get_problem,
    make_resampled_sources,
    make_shuffled_sources,
    make_tilted_sources,
    replace_by_idle_sources,
)
from tests.studies.paper.events import imitation


@pytest.fixture(scope="module")
def data():
    return imitation(300, 3000)


def test_idle_sources_leave_every_event(data):
    idle = replace_by_idle_sources(data, 2)
    varied = idle.varied("idle1", "up")["background"]
    nominal = data.sample("background").events
    assert varied.features == nominal.features
    np.testing.assert_array_equal(varied.matrix(), nominal.matrix())
    np.testing.assert_array_equal(varied.weight, nominal.weight)
    assert len(idle.systematics) == 2


def test_tilts_are_bounded_and_along_a_feature(data):
    more = add_sources(data, make_tilted_sources(data, 3, seed=1))
    assert len(more.systematics) == len(data.systematics) + 3
    nominal = data.sample("background").events.weight
    for k in range(3):
        up, down = (more.varied(f"tilt{k}", side)["background"].weight / nominal - 1 for side in ("up", "down"))
        assert np.abs(up).max() <= TILT
        assert up.std() > TILT / 4
        np.testing.assert_allclose(up, -down, atol=1e-12)


def test_noise_has_no_effect_on_average(data):
    more = add_sources(data, [*make_shuffled_sources(data, 2, seed=1), *make_resampled_sources(data, 2, seed=1)])
    n = data.sample("background").events.n_rows
    total = data.total("background")
    for k in range(2):
        # Five standard deviations.
        assert more.varied(f"noise{k}", "up")["background"].total / total == pytest.approx(1, abs=5 * SCATTER / n**0.5)
        kept = more.varied(f"resampled{k}", "down")["background"].total / total
        assert kept == pytest.approx(1, abs=5 * (2 * LOST / n) ** 0.5)


def test_resampled_events_stay_in_their_folds(data):
    rule = HashFolds(3, ("event_number",), 1)
    more = add_sources(data, make_resampled_sources(data, 1, seed=1)).with_folds(rule)
    part = more.fold(1)
    known = set(part.sample("background").events.identifier("event_number").tolist())
    assert set(part.varied("resampled0", "up")["background"].identifier("event_number").tolist()) <= known


def test_thin_problems_keep_the_yields_and_draw_other_events_in_every_division(data):
    problem = get_problem("P4/8")
    kept = [problem.division(data, seed).data for seed in (1, 2)]
    for one in kept:
        assert one.sample("background").events.n_rows == pytest.approx(3000 / 8, rel=0.2)
        assert one.total("background") == pytest.approx(data.total("background"), rel=0.2)
    first, second = (set(one.sample("background").events.identifier("event_number").tolist()) for one in kept)
    assert first != second
    assert BenchmarkOptions(("P1", "P5")).problems == ("P1", *THIN)
