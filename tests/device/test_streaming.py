"""Rows that do not fit a device take turns there: the same models."""

import math

import pytest

from qbdt.training import train
from qbdt.training.partitions import device as pieces
from qbdt.trees.device import DeviceMemory, Turn
from tests.device.trainings import draw_training


@pytest.mark.parametrize(("method", "seed"), [("paper", 3), ("profile", 0)])
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
