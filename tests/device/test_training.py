"""Trainings on a device give the models of the CPU, bit by bit; here its kernels are compiled for the CPU."""

import numpy as np
import pytest

from qbdt import CrossTrainedClassifier, QBDTClassifier
from qbdt.arrays import NODE
from qbdt.data import ModuloFolds
from qbdt.errors import ConfigError, DeviceError, MissingDependencyError
from qbdt.models import place_model, scoring
from qbdt.studies.comparison.contestants import get_contestant
from qbdt.training import FoldedEnsemble, Settings, device_growth, train
from qbdt.trees import Ensemble, Tree
from qbdt.trees.device import open_device, score_on_device
from tests.device.trainings import draw_training


@pytest.mark.parametrize(("method", "seed"), [*(("paper", i) for i in (0, 2, 3, 4)), *(("profile", i) for i in (0, 2))])
def test_random_trainings_give_the_models_of_the_cpu(method, seed, host_device):
    dataset, settings = draw_training(seed, method, 400)
    expected, found = (train(dataset, settings, n_threads=1, device=device) for device in (None, "cuda"))
    assert found.ensemble.trees == expected.ensemble.trees
    assert (found.end, found.data) == (expected.end, expected.data)


@pytest.mark.parametrize("agrees", [True, False])
def test_where_the_device_may_be_wrong_the_cpu_decides(agrees, host_device, monkeypatch):
    grown = []

    def repeat(self, record, gains):
        grown.append(original(self, record, gains) if agrees else None)
        return grown[-1]

    original = device_growth.DeviceGrowth.depths
    monkeypatch.setattr(device_growth.DeviceGrowth, "depths", repeat)
    dataset, settings = draw_training(5, "paper", 300)
    expected, found = (train(dataset, settings, n_threads=1, device=device) for device in (None, "cuda"))
    assert found.ensemble.trees == expected.ensemble.trees
    assert [one is not None for one in grown] == [agrees] * len(grown) != []


def test_a_training_on_a_device_resumes(host_device):
    dataset, settings = draw_training(4, "paper", 300)
    short = train(dataset, Settings(**{**settings.to_dict(), "n_trees": 2}), n_threads=1)
    expected = train(dataset, settings, n_threads=1)
    assert train(dataset, settings, n_threads=1, resume=short, device="cuda").ensemble.trees == expected.ensemble.trees


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", 0])
def test_unknown_devices_are_named(name):
    with pytest.raises(ConfigError, match=f"device={name!r}: must be None"):
        open_device(name)


def test_what_is_missing_is_said():
    """Before anything slow starts."""
    with pytest.raises((MissingDependencyError, DeviceError), match="device='cuda"):
        train(draw_training(1, "paper")[0], Settings(method="paper"), device="cuda:99")


@pytest.mark.parametrize(("method", "seed"), [("paper", 0), ("profile", 3)])
def test_scores_are_those_of_the_cpu(method, seed, host_device):
    dataset, settings = draw_training(seed, method, 300)
    for ensemble in train(dataset, settings, n_threads=1).ensemble.components.values():
        for sample in dataset.samples:
            for events in (sample.events, sample.events[::-2], sample.events[np.arange(5)], sample.events[:0]):
                assert np.array_equal(score_on_device(ensemble, events, host_device), ensemble.score(events, 1))


def test_trees_without_cuts_are_scored(host_device):
    dataset, _ = draw_training(1, "paper", 300)
    nodes = np.zeros(1, NODE)
    nodes["feature"], nodes["value"] = -1, 0.5
    events = dataset.samples[0].events
    for trees in ((), (Tree(nodes, 2.0),)):
        found = score_on_device(Ensemble(dataset.features, trees), events, host_device)
        assert found.tolist() == [1.0 * len(trees)] * events.n_rows


@pytest.mark.parametrize("method", ["paper", "profile"])
def test_classifiers_train_and_score_on_a_device(method, host_device, monkeypatch):
    monkeypatch.setattr(scoring, "open_device", lambda name: None if name is None else host_device)
    monkeypatch.setattr("qbdt.estimator.classifier.open_device", lambda name: None)
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], 150)
    table = {"x": rng.normal(y, 1.0), "z": rng.normal(-y, 1.0), "event": np.arange(300)}
    found = []
    for device in (None, "cuda"):
        options = {"method": method, "n_trees": 3, "n_leaves": 4, "n_threads": 1, "device": device}
        single = QBDTClassifier(**options).fit({name: table[name] for name in "xz"}, y)
        crossed = CrossTrainedClassifier(QBDTClassifier(**options), ModuloFolds(2, "event")).fit(table, y)
        found.append((single.decision_function({name: table[name] for name in "xz"}), crossed.decision_function(table)))
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
    assert found[0][0].std() > 0


def test_a_contestant_trains_and_scores_on_a_device(host_device, monkeypatch):
    monkeypatch.setattr(scoring, "open_device", lambda name: None if name is None else host_device)
    dataset, _ = draw_training(3, "profile", 200)
    contestant, events = get_contestant("qbdt profile"), dataset.samples[0].events
    settings = {"n_trees": 2, "n_leaves": 3}
    on_cpu, on_device = (one.fit(dataset, settings, 0) for one in (contestant, contestant.on_device("cuda")))
    assert np.array_equal(on_device.score(events), on_cpu.score(events))


def test_models_of_folds_are_averaged_on_a_device(host_device, monkeypatch):
    monkeypatch.setattr(scoring, "open_device", lambda name: None if name is None else host_device)
    dataset, settings = draw_training(0, "paper", 200)
    single = train(dataset, settings, n_threads=1).ensemble
    folded = FoldedEnsemble((single, single), ModuloFolds(2, "event"))
    for model in (single, folded):
        for sample in dataset.samples:
            assert np.array_equal(place_model(model, "cuda").average(sample.events), model.average(sample.events))
            assert place_model(model, None) is model
