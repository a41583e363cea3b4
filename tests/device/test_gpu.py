"""Trainings on a GPU give the models of the CPU, bit by bit: `make test-gpu`, where there is one."""

import os

import numpy as np
import pytest

from qbdt.errors import DeviceError, MissingDependencyError, QBDTError
from qbdt.training import train
from qbdt.trees.device import open_device, score_on_device
from tests.device.trainings import draw_training

TRAININGS = int(os.environ.get("QBDT_GPU_TRAININGS", "20"))
"""Of each method; hundreds by `make test-gpu`."""


@pytest.fixture(scope="module")
def gpu():
    try:
        return open_device("cuda")
    except (DeviceError, MissingDependencyError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("method", ["paper", "profile"])
@pytest.mark.parametrize("block", range(10))
def test_random_trainings_give_the_models_of_the_cpu(method, block, gpu):
    for seed in range(block, TRAININGS, 10):
        dataset, settings = draw_training(1000 + seed, method, 3000)
        try:
            expected = train(dataset, settings)
        except QBDTError as error:  # too few events of one kind
            with pytest.raises(type(error)):
                train(dataset, settings, device="cuda")
            continue
        found = train(dataset, settings, device="cuda")
        assert found.ensemble.trees == expected.ensemble.trees, f"seed {seed}"
        assert (found.end, found.data) == (expected.end, expected.data), f"seed {seed}"
        for ensemble in expected.ensemble.components.values():
            events = dataset.samples[seed % 3].events
            assert np.array_equal(score_on_device(ensemble, events, gpu), ensemble.score(events)), f"seed {seed}"
