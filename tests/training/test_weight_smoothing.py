"""Training on E[w | x]: smoothed weights are positive and keep yields, the same wherever the events are."""

from dataclasses import replace

import numpy as np
import pytest

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError
from qbdt.models.model_file import write_model
from qbdt.threads import Workers
from qbdt.training import weight_smoothing
from qbdt.training.methods import train
from qbdt.training.partitions.disk import OutOfCore
from qbdt.training.partitions.events import PartitionedEvents, divide_dataset, place_events
from qbdt.training.partitions.survey import survey_events
from qbdt.training.profile.inner_folds import count_rows
from qbdt.training.settings import Settings
from qbdt.training.weight_smoothing import WeightSet, smooth_nominal, smooth_weights

SMALL = {"paper": Settings(method="paper", n_trees=3), "profile": Settings(method="profile", n_trees=2, n_leaves=4)}


def events(rng, n, shift, negative):
    """Draw events whose weights are negative more often at large x0."""
    x = rng.normal(shift, 1.0, (n, 2))
    sign = np.where(rng.random(n) < negative / (1.0 + np.exp(-3.0 * x[:, 0])), -1.0, 1.0)
    return Events({"x0": x[:, 0], "x1": x[:, 1]}, sign * rng.uniform(0.5, 1.5, n), {"event": np.arange(n)})


def make_dataset(negative=0.4, n=6000):
    """Two backgrounds, one of them with negative weights, and sources of every kind."""
    rng = np.random.default_rng(4)
    signal, w, z = events(rng, n // 4, 0.7, 0.0), events(rng, n, 0.0, negative), events(rng, n // 6, -0.5, 0.0)
    sources = [
        Systematic.shape("jes", {"w": events(rng, n + 50, 0.1, negative), "z": events(rng, n // 6, -0.4, 0.0)}),
        Systematic.weight(
            "tag", {"w": w.weight * np.where(w.column("x1") > 0, 1.2, 1.0)}, {"w": w.weight * rng.uniform(0.8, 1.0, n)}
        ),
        Systematic.norm("xs", 0.1, processes=["w", "z"]),
    ]
    roles = {"s": (Role.SIGNAL, signal), "w": (Role.BACKGROUND, w), "z": (Role.BACKGROUND, z)}
    return Dataset([Sample(name, *one) for name, one in roles.items()], sources)


def smoothing_of(dataset, n_partitions=1, n_threads=1, settings=SMALL["paper"]):
    with Workers(n_threads) as workers:
        partitions = place_events(PartitionedEvents(divide_dataset(dataset, n_partitions)), workers)
        survey = survey_events(partitions, settings, count_rows)
        smoothed = smooth_weights(partitions, survey, survey.choose_binning(settings, workers), settings, workers)
        return None if smoothed is partitions else vars(smoothed)["_smoothing"]


@pytest.fixture(scope="module")
def dataset():
    return make_dataset()


@pytest.fixture(scope="module")
def smoothing(dataset):
    return smoothing_of(dataset)


def sets_of(dataset):
    """All sets of events of the process with negative weights, by name."""
    varied = {f"{s.name} {side}": dataset.varied(s.name, side) for s in dataset.systematics for side, _ in s.directions}
    return {"nominal": dataset.sample("w").events, **{name: found["w"] for name, found in varied.items()}}


def test_smoothed_weights_are_positive_and_keep_totals(dataset, smoothing):
    before, after = sets_of(dataset), sets_of(smoothing.apply(dataset))
    assert list(after) == ["nominal", "jes up", "tag up", "tag down", "xs up", "xs down"]
    for name, given in before.items():
        assert (given.weight < 0).any()
        assert (after[name].weight > 0).all()
        assert after[name].total == pytest.approx(given.total, rel=1e-13)  # sums of 6000 rounded numbers
        assert (after[name].weight <= np.abs(given.weight) * (1.2 if name == "xs up" else 1.0)).all()


def test_every_region_keeps_its_yield_and_its_shift(dataset, smoothing):
    tree, smoothed = smoothing.regions["w"], smoothing.apply(dataset)
    assert tree.trees[0].n_leaves > 2
    assert {tree.features[i] for i in tree.trees[0].nodes["feature"] if i >= 0} == {
        "x0"
    }  # x1 has nothing to do with it
    for given, own in zip(sets_of(dataset).values(), sets_of(smoothed).values(), strict=True):
        nodes = tree.leaves(given)[:, 0]
        for leaf in np.unique(nodes):
            assert own.weight[nodes == leaf].sum() == pytest.approx(given.weight[nodes == leaf].sum(), rel=1e-12)
            assert np.count_nonzero(nodes == leaf) > 500


def test_the_ratio_is_that_of_expectations(dataset, smoothing):
    """Bins that are no regions have the true yield within its statistical uncertainty, which is smaller now."""
    given, own = dataset.sample("w").events, smoothing.apply(dataset).sample("w").events
    places = np.digitize(given.column("x0"), [-1.0, -0.3, 0.3, 1.0])
    for place in range(5):
        inside = places == place
        true = np.sum(1.0 - 2.0 * 0.4 / (1.0 + np.exp(-3.0 * given.column("x0")[inside])))  # the mean |w| is 1
        error = np.sqrt(np.square(given.weight[inside]).sum())
        assert abs(own.weight[inside].sum() - true) < 3.0 * error
    assert own.effective_entries > 1.5 * given.effective_entries


def test_other_processes_stay_as_they_are(dataset, smoothing):
    smoothed = smoothing.apply(dataset)
    for name in ("s", "z"):
        assert smoothed.sample(name) is dataset.sample(name)
    assert smoothed.systematic("jes").up["z"] is dataset.systematic("jes").up["z"]
    assert smoothed.systematic("xs").up["w"] is dataset.systematic("xs").up["w"]


@pytest.mark.parametrize(("n_partitions", "n_threads"), [(1, 2), (5, 1)])
def test_where_rows_are_changes_no_bit(dataset, smoothing, n_partitions, n_threads):
    other = smoothing_of(dataset, n_partitions, n_threads)
    assert other.regions["w"].trees[0] == smoothing.regions["w"].trees[0]
    assert {key: ratios.tobytes() for key, ratios in other.ratios.items()} == {
        key: ratios.tobytes() for key, ratios in smoothing.ratios.items()
    }


@pytest.mark.parametrize("method", SMALL)
def test_models_are_the_same_in_partitions_and_other_than_raw(method, tmp_path):
    dataset, settings = make_dataset(n=1200), SMALL[method]

    def trained(events, chosen=settings, n_threads=1):
        write_model(tmp_path / "model.qbdt", train(events, chosen, n_threads=n_threads))
        return (tmp_path / "model.qbdt").read_bytes()

    whole = trained(dataset)
    assert trained(OutOfCore(divide_dataset(dataset, 3), folder=tmp_path), n_threads=2) == whole
    assert trained(dataset, replace(settings, negative_weights="raw")) != whole


def test_training_on_smoothed_weights_is_training_on_positive_ones(dataset):
    """The paper's trees are those of a sample whose weights are the smoothed ones, in the same bins."""
    settings = replace(SMALL["paper"], binning=[(40, -3.0, 3.0)] * 2)
    positive = smoothing_of(dataset, settings=settings).apply(dataset)
    of_signed, of_positive = (train(one, settings, n_threads=1) for one in (dataset, positive))
    assert of_signed.ensemble.trees == of_positive.ensemble.trees


@pytest.mark.parametrize("kind", ["jes", "tag"])
def test_what_a_source_scales_follows_the_nominal_weights(dataset, kind):
    """A source that scales one process with negative weights and changes events of another, as `norm:` in a file."""
    given = dataset.systematic(kind)
    other = Systematic(kind, given.kind, {"w": given.up["w"]}, {"w": given.down["w"]} if given.down else None)
    other_sample = Sample("v", Role.BACKGROUND, events(np.random.default_rng(9), 4000, 0.2, 0.4))
    joined = Systematic.join([Systematic.norm(kind, 0.05, processes=["v"]), other])
    both = Dataset([*dataset.samples, other_sample], [joined])
    after = smoothing_of(both).apply(both)
    assert after.systematic(kind).relative_shift("v") == pytest.approx(0.05)
    assert [s.name for s in after.samples if (s.events.weight < 0).any()] == []
    for at in ({}, {kind: 0.5}):
        model = train(both, replace(SMALL["profile"], at=at), n_threads=1)
        assert kind in [source.name for source in model.expectations[0].sources]


def test_without_negative_weights_nothing_happens():
    assert smoothing_of(make_dataset(negative=0.0)) is None
    assert smoothing_of(make_dataset(), settings=Settings(method="paper", negative_weights="raw")) is None


def test_a_region_that_cancels_has_some_background(monkeypatch):
    """A region whose sum is not positive gets the least ρ; the others pay for it."""
    monkeypatch.setattr(weight_smoothing, "ENTRIES", 10.0)
    x = np.repeat([0.0, 1.0], 200)
    weight = np.where(x > 0, np.tile([1.0, -1.0, -1.0, 1.0, -1.0], 80), 1.0)
    given = Events({"x": x}, weight)
    signal = Sample("s", Role.SIGNAL, Events({"x": x}, np.ones(400)))
    dataset = Dataset([signal, Sample("b", Role.BACKGROUND, given)])
    smoothing = smoothing_of(dataset)
    own = smoothing.apply(dataset).sample("b").events
    assert given.weight[x > 0].sum() == -40.0
    assert 5.0 < own.weight[x > 0].sum() < 10.0
    assert own.total == pytest.approx(160.0, rel=1e-14)
    assert set(smoothing.ratios) == {WeightSet("b")}


def test_a_process_without_positive_yield_is_refused():
    signal = Sample("s", Role.SIGNAL, Events({"x": [1.0, 2.0, 3.0]}, np.ones(3)))
    background = Sample("b", Role.BACKGROUND, Events({"x": [1.0, 2.0, 3.0]}, [1.0, -3.0, 0.5]))
    for settings in SMALL.values():
        with pytest.raises(
            DataError, match=r"sample b has a total weight of -1.5: a positive expected yield is needed"
        ):
            train(Dataset([signal, background]), settings, n_threads=1)


def test_other_libraries_get_the_same_positive_weights(dataset, smoothing):
    given = smooth_nominal(dataset)
    np.testing.assert_array_equal(given.sample("w").events.weight, smoothing.apply(dataset).sample("w").events.weight)
    assert given.sample("w").events.weight.min() > 0.0
    assert given.sample("z").events is dataset.sample("z").events
    plain = make_dataset(negative=0.0, n=2000)
    assert smooth_nominal(plain).sample("w").events is plain.sample("w").events
