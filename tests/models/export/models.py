"""Random models of every kind, for tests of exports."""

import numpy as np
from hypothesis import strategies as st

from qbdt.data.events import Events
from qbdt.data.folds import HashFolds, ModuloFolds, SplitFolds
from qbdt.models.export.probes import make_probes
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.trees.ensemble import Ensemble
from tests.trees.test_ensemble import random_tree

LARGEST = float(np.finfo(np.float32).max)
EXTREMES = np.array([5e-324, 1e-310, -1e-40, 0.0, 0.1, 1 / 3, 16777217.0, LARGEST, -LARGEST])
"""Cuts at which single and double precision differ the most, within the range of single precision."""


def random_sum(rng, names, most_trees=5, categories=None):
    thresholds = np.concatenate([rng.normal(size=8), rng.choice(EXTREMES, 3)])
    trees = (
        random_tree(rng, len(names), int(rng.integers(1, 10)), thresholds, categories)
        for _ in range(rng.integers(most_trees))
    )
    return Ensemble(names, tuple(trees))


def random_single(rng, names, profiled, categories=None):
    if not profiled:
        return random_sum(rng, names, categories=categories)
    ratio, shift = random_sum(rng, names, 5, categories), random_sum(rng, names, 4, categories)
    return ProfiledEnsemble(ratio, shift, float(rng.normal(-1, 2)), ("a",), (0.5,))


def random_categorical_model(seed):
    """Make a model with categorical features: few small numbers, or many up to the largest that XGBoost knows."""
    rng = np.random.default_rng(seed)
    names = tuple(f"x{i}" for i in range(rng.integers(1, 5)))
    values = [np.arange(40.0), np.array([0.0, 1.0, 10.0, 11.0]), np.unique(rng.integers(0, 2**24, 70)).astype(float)]
    categories = {i: values[rng.integers(3)] for i in range(len(names)) if i == 0 or rng.random() < 0.5}
    if rng.random() < 0.5:
        return random_single(rng, names, bool(rng.random() < 0.5), categories)
    singles = tuple(random_single(rng, names, False, categories) for _ in range(2))
    return FoldedEnsemble(singles, ModuloFolds(2, "event"))


def random_model(seed):
    """Make one of: paper or profiled, single or cross-trained by any rule."""
    rng = np.random.default_rng(seed)
    names = tuple(f"x{i}" for i in range(rng.integers(1, 5)))
    profiled, k = bool(rng.random() < 0.5), int(rng.integers(2, 4))
    rules = [None, ModuloFolds(k, "event"), HashFolds(k, ("run", "event"), int(rng.integers(9))), SplitFolds(k, "part")]
    rule = rules[rng.integers(len(rules))]
    if rule is None:
        return random_single(rng, names, profiled)
    return FoldedEnsemble(tuple(random_single(rng, names, profiled) for _ in range(k)), rule)


models = st.integers(0, 2**32).map(random_model)
categorical_models = st.integers(0, 2**32).map(random_categorical_model)


def rows_of(model):
    """All probe rows, with the model's own score and average."""
    batches = list(make_probes(model))
    values = np.concatenate([batch.values for batch in batches])
    ids = {name: np.concatenate([b.identifiers[name] for b in batches]) for name in batches[0].identifiers}
    events = Events(dict(zip(model.features, values.T, strict=True)), np.ones(len(values)), ids)
    average = model.average(events, 1) if isinstance(model, FoldedEnsemble) else None
    return values, ids, model.score(events, 1), average


def is_profiled(model):
    return bool(model.members[0].constants)
