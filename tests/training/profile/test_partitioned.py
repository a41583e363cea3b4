"""The profiled training on events in parts: the model of memory, bit for bit, wherever the parts are."""

import numpy as np
import pytest

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.models.model_file import write_model
from qbdt.threads import Workers
from qbdt.training.methods import train
from qbdt.training.model import TrainedModel
from qbdt.training.partitions.disk import OutOfCore
from qbdt.training.partitions.events import PartitionedEvents, divide_dataset
from qbdt.training.partitions.survey import Survey
from qbdt.training.profile.inner_folds import InnerFolds, count_rows
from qbdt.training.settings import Settings
from tests.training.profile.test_training import problem

CASES = {
    "identifiers": (problem(n=900), Settings(method="profile", n_trees=6, n_leaves=4, learning_rate=2.0)),
    "positions, negative weights": (
        problem(4, n=900, with_ids=False, negative=True),
        Settings(method="profile", n_trees=3, n_leaves=3),
    ),
    "drawn": (
        problem(2, n=900, with_ids=False),
        Settings(method="profile", n_trees=3, row_fraction=0.5, feature_fraction=0.5, random_state=3),
    ),
    "no sources, fixed bins": (
        problem(3, n=900).with_systematics([]),
        Settings(method="profile", n_trees=2, binning=[(20, -3.0, 3.0)] * 2),
    ),
}


def model_bytes(training, folder):
    write_model(folder / "model.qbdt", training)
    return (folder / "model.qbdt").read_bytes()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    folder = tmp_path_factory.mktemp("local")
    return {name: model_bytes(train(*case, n_threads=1), folder) for name, case in CASES.items()}


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("name", CASES)
def test_parts_on_disk_train_the_model_of_memory(name, count, local, tmp_path):
    dataset, settings = CASES[name]
    rows = OutOfCore(divide_dataset(dataset, count), folder=tmp_path)
    assert model_bytes(train(rows, settings, n_threads=1), tmp_path) == local[name]
    assert [path.name for path in tmp_path.iterdir()] == ["model.qbdt"]  # no rows stay on disk


def test_parts_of_a_few_rows_train_the_model_of_memory(tmp_path):
    settings = Settings(method="profile", n_trees=1, n_leaves=3)
    dataset = problem(5, n=30, with_ids=False)
    whole = model_bytes(train(dataset, settings, n_threads=1), tmp_path)
    assert model_bytes(train(PartitionedEvents(divide_dataset(dataset, 29)), settings, n_threads=2), tmp_path) == whole


def test_training_in_parts_resumes(local, tmp_path):
    dataset, settings = CASES["drawn"]
    kept: list[TrainedModel] = []
    train(PartitionedEvents(divide_dataset(dataset, 3)), settings, n_threads=1, checkpoint=kept.append)
    rows = OutOfCore(divide_dataset(dataset, 2), folder=tmp_path)
    assert model_bytes(train(rows, settings, n_threads=1, resume=kept[0]), tmp_path) == local["drawn"]


@pytest.mark.parametrize("with_ids", [True, False])
def test_rows_are_in_the_same_part_however_they_are_cut(with_ids):
    dataset = problem(n=200, with_ids=with_ids)
    rows = [part().sample("b").events.n_rows for part in divide_dataset(dataset, 7)]

    def held(count):
        parts = [part() for part in divide_dataset(dataset, count)]
        survey = Survey(dataset, {i: count_rows(one, Settings()) for i, one in enumerate(parts)}, (), None)
        folds = InnerFolds.of(survey)
        divided = [folds.split(i, one, 1, Workers(1))[1] for i, one in enumerate(parts)]
        return [
            np.concatenate([events(one).column("y") for one in divided]).tolist()
            for events in (lambda d: d.sample("b").events, lambda d: d.varied("scale", "down")["b"])
        ]

    assert sum(rows) == 200
    assert held(7) == held(1)


@pytest.mark.parametrize(
    ("event", "k", "said"),
    [
        ([0, 0, 0, 0], 1, "too few events to hold any out"),  # all in the same fold
        ([0, 1, 2, 3], 2, "2 inner folds"),
    ],
)
def test_few_events_are_divided_into_fewer_folds(event, k, said, tmp_path):
    one = Events({"x": np.arange(4.0)}, np.ones(4), {"event": np.array(event)})
    dataset = Dataset([Sample("s", Role.SIGNAL, one), Sample("b", Role.BACKGROUND, one)])
    for rows in (dataset, OutOfCore(divide_dataset(dataset, 2), folder=tmp_path)):
        trained = train(rows, Settings())
        assert trained.data["inner_folds"] == len(trained.data["parts"]) == k
        assert said in trained.headline
        assert trained.complete
