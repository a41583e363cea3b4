"""A small training by folds."""

import pytest

from qbdt.data.samples.inferno import inferno
from qbdt.inference.settings import FitSettings
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.methods import train
from qbdt.training.settings import Settings

SETTINGS = Settings(method="paper", n_trees=8, n_leaves=4)


def small_trainer(part):
    return train(part, SETTINGS, n_threads=1).ensemble


@pytest.fixture(scope="session")
def dataset():
    return inferno(1500, seed=2)


@pytest.fixture(scope="session")
def models(dataset):
    return FoldedEnsemble(tuple(small_trainer(dataset.without_fold(i)) for i in range(2)), dataset.folds)


@pytest.fixture(scope="session")
def fit():
    return FitSettings(bins=6, scan=False)


@pytest.fixture(scope="session")
def trainer():
    return small_trainer
