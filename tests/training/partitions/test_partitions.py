"""Rows in parts: the same trees, bit for bit, however many parts there are and wherever they are kept."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError
from qbdt.models.model_file import write_model
from qbdt.threads import Workers
from qbdt.training.methods import train
from qbdt.training.partitions.disk import OutOfCore
from qbdt.training.partitions.events import divide_dataset
from qbdt.training.partitions.survey import count_before
from qbdt.training.settings import Settings
from qbdt.trees.quantiles import QuantileSketch

CASES = {
    "plain": Settings(method="paper", n_trees=6),
    "mc_stat and entries": Settings(method="paper", n_trees=5, mc_stat=True, min_leaf_entries=20.0, learning_rate=0.5),
    "drawn": Settings(method="paper", n_trees=6, row_fraction=0.5, feature_fraction=0.6, random_state=3),
    "published": Settings(method="paper", n_trees=4, growth="published", binning=[(20, -3.0, 3.0)] * 4),
}


def events(rng, n, shift, scale=1.0):
    x = rng.normal(shift, 1.0, (n, 4)).astype(np.float32)
    x[rng.random(n) < 0.05, 1] = np.nan
    return Events({f"x{i}": x[:, i] for i in range(4)}, rng.uniform(-0.1, 1.0, n) * scale)


@pytest.fixture(scope="module")
def dataset():
    """Every kind of source, negative weights, missing values, processes of very different size."""
    rng = np.random.default_rng(7)
    signal = events(rng, 900, 0.5)
    ttbar, wjets = events(rng, 1500, 0.0, 20.0), events(rng, 40, -0.5)
    return Dataset(
        [Sample("s", Role.SIGNAL, signal), Sample("tt", Role.BACKGROUND, ttbar), Sample("w", Role.BACKGROUND, wjets)],
        [
            Systematic.shape("jes", {"tt": events(rng, 1480, 0.1, 20.0)}, {"tt": events(rng, 1520, -0.1, 20.0)}),
            Systematic.weight("btag", {"tt": ttbar.weight * rng.uniform(0.9, 1.3, 1500)}),
            Systematic.norm("xs", 0.1, processes=["tt", "w"]),
        ],
    )


def model_bytes(training, folder):
    write_model(folder / "model.qbdt", training)
    return (folder / "model.qbdt").read_bytes()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("count", [1, 7])
def test_parts_on_disk_train_the_model_of_memory(name, count, dataset, tmp_path):
    local = train(dataset, CASES[name], n_threads=1)
    parted = train(OutOfCore(divide_dataset(dataset, count), folder=tmp_path), CASES[name], n_threads=1)
    assert model_bytes(parted, tmp_path) == model_bytes(local, tmp_path)


def test_nothing_stays_on_disk(dataset, tmp_path):
    train(OutOfCore(divide_dataset(dataset, 2), folder=tmp_path), Settings(method="paper", n_trees=1), n_threads=1)
    assert not list(tmp_path.iterdir())


def test_training_in_parts_resumes(dataset, tmp_path):
    whole = train(dataset, CASES["drawn"], n_threads=1)
    short = train(
        OutOfCore(divide_dataset(dataset, 4), folder=tmp_path), Settings(**{**CASES["drawn"].to_dict(), "n_trees": 2})
    )
    resumed = train(OutOfCore(divide_dataset(dataset, 3), folder=tmp_path), CASES["drawn"], resume=short)
    assert model_bytes(resumed, tmp_path) == model_bytes(whole, tmp_path)


def test_unusable_events_are_refused_in_parts_as_in_one(tmp_path):
    one = Events({"x": [0.0, 1.0]}, [1.0, 1.0])
    flat = Dataset([Sample("s", Role.SIGNAL, one), Sample("b", Role.BACKGROUND, one.with_weight([0.0, 0.0]))])
    for rows in (flat, OutOfCore(divide_dataset(flat, 2), folder=tmp_path)):
        with pytest.raises(DataError, match="sample b: all 2 weights are zero"):
            train(rows, Settings(method="paper", n_trees=1))


def test_at_least_one_part(dataset):
    with pytest.raises(DataError, match="0 partitions"):
        divide_dataset(dataset, 0)


def test_a_part_that_travels_carries_its_own_rows_only(dataset):
    part: Any = divide_dataset(dataset, 4)[1]
    make, arguments = part.__reduce__()
    travelled = make(*arguments)()
    assert np.array_equal(travelled.sample("tt").events.weight, part().sample("tt").events.weight)
    assert travelled.varied("jes", "up")["tt"].n_rows == part().varied("jes", "up")["tt"].n_rows
    base, _ = travelled.sample("tt").events.in_place()
    assert len(base["x0"]) == part().sample("tt").events.n_rows


@settings(max_examples=25)
@given(cuts=st.lists(st.integers(0, 300), max_size=6), seed=st.integers(0, 5), rows=st.sampled_from([20, 100, 1000]))
def test_sketches_of_parts_merge_to_that_of_the_whole(cuts, seed, rows, monkeypatch_module):
    monkeypatch_module.setattr("qbdt.trees.quantiles.QUANTILE_ROWS", rows)
    rng = np.random.default_rng(seed)
    whole = events(rng, 300, 0.0)
    bounds = [0, *sorted(cuts), 300]
    with Workers(1) as workers:
        expected = QuantileSketch.of([whole], workers)
        pieces = [whole[low:high] for low, high in pairwise(bounds)]
        found = [QuantileSketch.of([piece], workers) for piece in pieces]
    rng.shuffle(found)
    merged = found[0]
    for one in found[1:]:
        merged = merged.merge(one)
    order, its = np.argsort(expected.hashes), np.argsort(merged.hashes)
    assert merged.n_rows == expected.n_rows
    assert np.array_equal(expected.hashes[order], merged.hashes[its])
    for name in whole.features:
        assert np.array_equal(expected.column(name)[order], merged.column(name)[its], equal_nan=True)
    assert np.array_equal(expected.fixed_weights()[order], merged.fixed_weights()[its])


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def test_positions_of_rows_count_on_over_partitions():
    assert count_before({1: (2, 3), 0: (5, 0), 2: (1, 1)}) == {0: (0, 0), 1: (5, 0), 2: (7, 3)}
