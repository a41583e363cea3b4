"""The p-value is uniform where training makes no difference, whatever the weights, and small where it does."""

import numpy as np
import pytest
from scipy import stats

from qbdt.analysis.diagnosis.overtraining import check_over_training, permutation_p
from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.methods import train
from qbdt.training.settings import Settings
from qbdt.trees.ensemble import Ensemble


def toy(rng, k, n=120):
    """Scores by models that know nothing of the folds; weights of both signs that depend on the score."""
    x = rng.normal(size=n)
    scores = np.column_stack([x + 0.3 * rng.normal(size=n) for _ in range(k)])
    weight = rng.exponential(1.0, n) * np.exp(0.5 * x)
    weight[rng.random(n) < 0.15] *= -1
    return scores, weight, rng.integers(0, k, n), rng.integers(0, 2, n)


@pytest.mark.parametrize("k", [2, 3])
def test_uniform_if_training_makes_no_difference(k):
    rng = np.random.default_rng(7 * k)
    p = []
    for _ in range(200):
        scores, weight, folds, group = toy(rng, k)
        p.append(permutation_p(scores, weight, folds, group, 19, rng)[2])
    # values are multiples of 1/20; a uniform number within the step makes them continuous
    assert stats.kstest(np.array(p) - rng.random(200) / 20, "uniform").pvalue > 0.01


def test_unweighted_distance_is_that_of_scipy():
    rng = np.random.default_rng(3)
    scores, _, folds, group = toy(rng, 2)
    distance, _, _ = permutation_p(scores, np.ones(len(folds)), folds, group, 1, rng)
    expected = [stats.ks_2samp(scores[folds == m, m], scores[folds != m, m]).statistic for m in range(2)]
    assert distance == pytest.approx(np.mean(expected), rel=1e-12)


def test_scaling_all_weights_changes_nothing():
    scores, weight, folds, group = toy(np.random.default_rng(5), 2)
    results = [permutation_p(scores, f * weight, folds, group, 50, np.random.default_rng(1)) for f in (1.0, 2.0**-30)]
    assert results[0] == results[1]


def test_ties_are_one_value():
    weight, folds, group = np.ones(40), np.arange(40) % 2, np.zeros(40, dtype=int)
    distance, _, p = permutation_p(np.zeros((40, 2)), weight, folds, group, 20, np.random.default_rng(1))
    assert (distance, p) == (0.0, 1.0)


def noise_only(n=600):
    rng = np.random.default_rng(11)
    events = {
        role: Events(
            {f"x{i}": rng.normal(size=n) for i in range(4)}, np.full(n, 1.0 + (role == "b")), {"event": np.arange(n)}
        )
        for role in ("s", "b")
    }
    samples = [Sample("s", Role.SIGNAL, events["s"]), Sample("b", Role.BACKGROUND, events["b"])]
    return Dataset(samples, folds=ModuloFolds(2, "event"))


def test_memorised_noise_is_found():
    dataset = noise_only()
    settings = Settings(method="paper", n_trees=40, n_leaves=12)
    models = FoldedEnsemble(
        tuple(train(dataset.without_fold(i), settings, n_threads=1).ensemble for i in range(2)), dataset.folds
    )
    tests = check_over_training(dataset, models, n_permutations=99)
    assert [test.role for test in tests] == ["signal", "background"]
    assert all(test.p == 0.01 and test.distance > 3 * test.expected for test in tests)


def test_a_model_that_knows_nothing_is_not_over_trained():
    dataset = noise_only()
    empty = Ensemble(dataset.features, ())
    for test in check_over_training(dataset, FoldedEnsemble((empty, empty), dataset.folds), n_permutations=19):
        assert test.p == 1.0
