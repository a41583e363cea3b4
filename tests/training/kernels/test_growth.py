"""Trees that grow in one call, against those of `TreeGrower`."""

import numpy as np
import pytest

from qbdt.data import Dataset
from qbdt.training import Settings, train
from qbdt.training.profile.pair_rows import PairRows


def draw_problem(seed):
    rng = np.random.default_rng(seed)
    n, n_features = int(rng.integers(60, 500)), int(rng.choice([1, 3, 9]))
    x = np.round(rng.normal(size=(n, n_features)), int(rng.integers(0, 4)))
    y = rng.random(n) < 1 / (1 + np.exp(-x[:, 0]))
    y[:2] = False, True
    x[rng.random(x.shape) < 0.1 * rng.integers(0, 2)] = np.nan
    chosen = Settings(
        n_trees=3,
        n_leaves=int(rng.integers(2, 12)),
        max_depth=3 if rng.random() < 0.4 else None,
        row_fraction=float(rng.choice([0.5, 1.0])),
        feature_fraction=float(rng.choice([0.6, 1.0])),
    )
    return Dataset.from_arrays(x, y.astype(int), rng.uniform(0.5, 1.5, n)), chosen


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_grown_in_one_call_is_that_of_the_grower(seed, monkeypatch):
    dataset, chosen = draw_problem(seed)
    at_once = train(dataset, chosen, n_threads=1)
    monkeypatch.setattr(PairRows, "grow", lambda *arguments: None)
    step_by_step = train(dataset, chosen, n_threads=1)
    assert at_once.ensemble.trees == step_by_step.ensemble.trees
    assert at_once.data == step_by_step.data
