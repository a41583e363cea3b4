"""Dask collections as events: the same rows in the same order, whatever kind they are."""

import pickle

import awkward as ak
import dask.dataframe as dd
import dask_awkward
import numpy as np
import pandas as pd
import pytest

from qbdt.data import Dataset, Role, Sample
from qbdt.data.readers.request import read_events
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError
from qbdt.models.model_file import write_model
from qbdt.training.methods import train
from qbdt.training.partitions.dask.collections import collection_partitions
from qbdt.training.partitions.disk import OutOfCore
from qbdt.training.settings import Settings

FEATURES = ["x", "y"]


def made(tables):
    """Make a dataset with a shape source of three tables."""
    nominal = {name: read_events(tables[name], FEATURES, weight="w") for name in ("s", "b")}
    samples = [Sample("s", Role.SIGNAL, nominal["s"]), Sample("b", Role.BACKGROUND, nominal["b"])]
    shifted = read_events(tables["b_up"], FEATURES, weight="w")
    return Dataset(samples, [Systematic.shape("jes", {"b": shifted})])


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(2)
    sizes = {"s": (200, 0.5), "b": (300, 0.0), "b_up": (310, 0.1)}
    return {
        name: {**{f: rng.normal(centre, 1, n) for f in FEATURES}, "w": rng.uniform(0.5, 1.5, n)}
        for name, (n, centre) in sizes.items()
    }


@pytest.mark.parametrize("kind", ["dataframe", "awkward"])
def test_collections_train_the_model_of_tables(kind, tables, tmp_path):
    settings = Settings(method="paper", n_trees=3, row_fraction=0.8)
    if kind == "dataframe":
        collections = {n: dd.from_pandas(pd.DataFrame(t), npartitions=3, sort=False) for n, t in tables.items()}
    else:
        collections = {n: dask_awkward.from_awkward(ak.Array(t), npartitions=3) for n, t in tables.items()}
    parts = pickle.loads(pickle.dumps(collection_partitions(collections, made)))
    write_model(tmp_path / "parts", train(OutOfCore(parts, folder=tmp_path), settings, n_threads=1))
    write_model(tmp_path / "whole", train(made(tables), settings, n_threads=1))
    assert len(parts) == 3
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


def test_collections_have_as_many_partitions(tables):
    frames = {name: dd.from_pandas(pd.DataFrame(tables[name]), npartitions=n) for name, n in (("s", 2), ("b", 3))}
    with pytest.raises(DataError, match=r"same number of partitions \(s 2, b 3\); use repartition"):
        collection_partitions(frames, made)
