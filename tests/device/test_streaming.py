"""Rows that do not fit a device take turns there, and folds are trained side by side: the same models."""

import math

import pytest

from qbdt.training import train
from qbdt.training.partitions import device as pieces
from qbdt.training.profile import folds_at_once
from qbdt.trees.device import DeviceMemory, Turn
from tests.device.trainings import draw_training


@pytest.mark.parametrize(("method", "seed"), [("paper", 0), ("paper", 2), ("paper", 3), ("profile", 0), ("profile", 2)])
def test_rows_in_pieces_give_the_models_of_the_cpu(method, seed, host_device, monkeypatch):
    taken, enter = set(), Turn.__enter__

    def note(turn):
        taken.add(turn)
        return enter(turn)

    monkeypatch.setattr(Turn, "__enter__", note)
    dataset, settings = draw_training(seed, method, 300)
    expected = train(dataset, settings, n_threads=1)
    host_device.n_free = 8 * n_bytes(dataset) // 5
    found = train(dataset, settings, n_threads=1, device="cuda")
    assert found.ensemble.trees == expected.ensemble.trees
    assert (found.end, found.data) == (expected.end, expected.data)
    assert len(taken) >= 2


def n_bytes(dataset):
    rows = sum(sample.events.n_rows for sample in dataset.samples)
    return pieces.estimate_bytes(rows, len(dataset.features), len(dataset.systematics))


@pytest.mark.parametrize(("share", "count"), [(0.4, 1), (0.6, 5), (1.0, 8), (3.0, 24)])
def test_there_are_as_many_pieces_as_memory_asks_for(share, count, host_device, monkeypatch):
    dataset, _ = draw_training(2, "paper", 300)
    host_device.n_free = math.ceil(n_bytes(dataset) / share)
    assert pieces.count_pieces(dataset, DeviceMemory(host_device)) == count


@pytest.mark.parametrize("n_free", [1 << 40, 1])
def test_folds_side_by_side_give_the_same_model(n_free, host_device, monkeypatch):
    together = []

    def count(*arguments):
        together.append(original(*arguments))
        return together[-1]

    original = folds_at_once._count_together
    monkeypatch.setattr(folds_at_once, "_count_together", count)
    monkeypatch.setattr("qbdt.training.partitions.events.count_pieces", lambda *_: 1)
    dataset, settings = draw_training(3, "profile", 300)
    expected = train(dataset, settings, n_threads=1)
    host_device.n_free = n_free
    found = train(dataset, settings, n_threads=4, device="cuda")
    assert found.ensemble.trees == expected.ensemble.trees
    assert together[-1] == (4 if n_free > 1 else 1)
