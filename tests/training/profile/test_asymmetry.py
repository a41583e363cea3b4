"""Responses of sources that are asymmetric beyond MC noise are used at a working point, others are not."""

import numpy as np
import pytest

from qbdt.data import Dataset, Events, Role, Sample, Systematic
from qbdt.errors import DataError
from qbdt.threads import Workers
from qbdt.training import Settings
from qbdt.training.partitions.events import PartitionedEvents, divide_dataset
from qbdt.training.profile.asymmetry import find_asymmetric, find_beyond_noise, move_events

N = 4000
ASYMMETRIC = ["moved", "tilt", "size"]
LINEAR = ["other", "wide", "even"]


def make_dataset(with_ids):
    """Three asymmetric sources: shifted copies, weights and a size. Three linear ones, one of independent events."""
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(N, 2)), rng.uniform(0.5, 1.5, N)

    def events(x, first=0):
        ids = {"event": np.arange(first, first + len(x))} if with_ids else {}
        return Events({"a": x[:, 0], "b": x[:, 1]}, w, ids)

    def drawn(shift, first):
        return {"b": events(rng.normal(size=(N, 2)) + np.array([shift, 0]), first)}

    bump = 0.2 * np.tanh(x[:, 0])
    sources = [
        Systematic.shape("moved", {"b": events(x + np.array([0.5, 0]))}, {"b": events(x - np.array([0.1, 0]))}),
        Systematic.weight("tilt", {"b": w * (1 + bump)}, {"b": w * (1 + bump / 2)}),
        Systematic.norm("size", (-0.1, 0.3), processes=["b"]),
        Systematic.shape("other", drawn(0.2, N), drawn(-0.2, 2 * N)),
        Systematic.weight("wide", {"b": w * (1 + bump)}, {"b": w * (1 - bump)}),
        Systematic.norm("even", 0.1, processes=["b"]),
        Systematic.weight("one", {"b": w * (1 + bump)}),
    ]
    samples = [Sample("s", Role.SIGNAL, events(x + 1)), Sample("b", Role.BACKGROUND, events(x))]
    return Dataset(samples, sources)


AT = dict.fromkeys([*ASYMMETRIC, *LINEAR, "one"], 1.0)


@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("n_partitions", [None, 3])
def test_asymmetry_is_told_from_noise(with_ids, n_partitions):
    dataset = make_dataset(with_ids)
    events = dataset if n_partitions is None else PartitionedEvents(divide_dataset(dataset, n_partitions))
    with Workers(1) as workers:
        assert find_asymmetric(events, Settings(at=AT), workers) == ASYMMETRIC


def find_change(dataset, source):
    """Yield of the background up minus down."""
    up, down = (dataset.varied(source, side)["b"].total for side in ("up", "down"))
    return up - down


def test_only_asymmetric_sources_bend_at_the_working_point():
    dataset = make_dataset(True)
    with Workers(1) as workers:
        moved = move_events(dataset, Settings(at=AT), workers)
    expected = dataset.at_working_point(AT, linear=LINEAR)
    for name in AT:
        mine, its = (find_change(one, name) for one in (moved, expected))
        assert mine == pytest.approx(its, rel=1e-12)
    # Half of up − down, where the bend would add (up + down)/2 − nominal
    assert find_change(moved, "other") == pytest.approx(
        find_change(dataset, "other") * 1.1 * 1.3, abs=1e-9
    )  # times the two normalisations, each one up


def test_linear_events_stay_where_nothing_moves():
    dataset = make_dataset(True)
    with Workers(1) as workers:
        assert move_events(dataset, Settings(), workers) is dataset


def test_noise_passes_as_rarely_as_it_should():
    rng = np.random.default_rng(2)
    found = find_beyond_noise(rng.normal(size=(20, 4000, 5)))
    assert 0.004 < found.mean() < 0.02


def test_a_working_point_without_events_is_named():
    with Workers(1) as workers, pytest.raises(DataError, match=r"at=\{even: -20\}: sample b expects -.* events there"):
        move_events(make_dataset(True), Settings(at={"even": -20.0}), workers)
