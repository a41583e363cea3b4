"""Established classifiers at the paper's settings, and tuned ones: each trains on a dataset and returns a scorer.

They see nominal events only, signal and background scaled to the same total weight, as the paper's GradBDT does. All
run on one thread: their barriers make two threads slower than one where anything else runs on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role
from qbdt.errors import require

__all__ = ["Scorer", "adaptive", "gradient", "lightgbm", "with_few_cuts", "xgboost"]

Scorer: TypeAlias = Callable[[Events], Floats]

CUTS = 20
"""TMVA's default number of cuts per variable, equally spaced between the smallest and the largest value."""

LEARNING_RATE, DEPTH = 0.1, 3
"""The paper's settings of GradBDT, with 1000 trees."""

CANDIDATES = ((0.1, 4), (0.05, 8), (0.05, 16))
"""Learning rate and leaves that are tried; the number of trees is found by early stopping."""

PATIENCE = 50


def gradient(data: Dataset, n_trees: int, seed: int) -> Scorer:
    """Train scikit-learn's HistGradientBoostingClassifier: learning rate 0.1, depth 3, 255 bins, log loss."""
    return _trained_gradient(table_of(data), n_trees, seed)


def with_few_cuts(data: Dataset, n_trees: int, seed: int) -> Scorer:
    """Train the same with variables cut at 20 equally spaced places only."""
    X, y, weight = table_of(data)
    edges = [np.linspace(column.min(), column.max(), CUTS + 2)[1:-1] for column in X.T]

    def coarse(values: Floats) -> Floats:
        columns = [np.searchsorted(cuts, column, side="right") for cuts, column in zip(edges, values.T, strict=True)]
        return np.stack(columns, axis=1).astype(np.float64)

    scorer = _trained_gradient((coarse(X), y, weight), n_trees, seed)
    return lambda events: scorer(
        Events(dict(zip(events.features, coarse(_matrix(events)).T, strict=True)), events.weight)
    )


def adaptive(data: Dataset, n_trees: int, seed: int) -> Scorer:
    """Train scikit-learn's AdaBoostClassifier over trees of depth 3, learning rate 0.1."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=seed)
    model = AdaBoostClassifier(tree, n_estimators=n_trees, learning_rate=LEARNING_RATE, random_state=seed)
    X, y, weight = table_of(data)
    model.fit(X, y, weight)

    def score(events: Events) -> Floats:
        """Σ α k / Σ α, which lies in (−1, 1), on the scale where the paper's scan of c works: times ten."""
        return np.asarray(10.0 * model.decision_function(_matrix(events)), dtype=np.float64)

    return score


def lightgbm(data: Dataset, n_trees: int, seed: int) -> Scorer:
    """Train LightGBM, tuned on the training events: learning rate, leaves and number of trees."""
    library = require("lightgbm", "the LightGBM baseline")
    fixed = {"objective": "binary", "min_data_in_leaf": 20, "num_threads": 1, "verbose": -1, "seed": seed}
    fixed |= {"deterministic": True, "force_col_wise": True}

    def train(table: Table, rate: float, leaves: int, trees: int, validation: Table | None) -> Any:
        rows = library.Dataset(table[0], table[1], weight=table[2])
        options: dict[str, Any] = {}
        if validation is not None:
            options["valid_sets"] = [rows.create_valid(validation[0], validation[1], weight=validation[2])]
            options["callbacks"] = [library.early_stopping(PATIENCE, verbose=False)]
        return library.train({**fixed, "learning_rate": rate, "num_leaves": leaves}, rows, trees, **options)

    def outcome(model: Any) -> tuple[float, int]:
        return float(model.best_score["valid_0"]["binary_logloss"]), int(model.best_iteration)

    model = _tuned(data, n_trees, train, outcome)
    return lambda events: np.asarray(model.predict(_matrix(events), raw_score=True, num_threads=1))


def xgboost(data: Dataset, n_trees: int, seed: int) -> Scorer:
    """Train XGBoost, tuned on the training events: learning rate, leaves and number of trees."""
    library = require("xgboost", "the XGBoost baseline")

    def train(table: Table, rate: float, leaves: int, trees: int, validation: Table | None) -> Any:
        model = library.XGBClassifier(
            n_estimators=trees,
            learning_rate=rate,
            max_leaves=leaves,
            max_depth=0,
            grow_policy="lossguide",
            tree_method="hist",
            n_jobs=1,
            random_state=seed,
            early_stopping_rounds=None if validation is None else PATIENCE,
        )
        options: dict[str, Any] = {}
        if validation is not None:
            options = {"eval_set": [validation[:2]], "sample_weight_eval_set": [validation[2]], "verbose": False}
        return model.fit(table[0], table[1], sample_weight=table[2], **options)

    def outcome(model: Any) -> tuple[float, int]:
        return float(model.best_score), int(model.best_iteration) + 1

    model = _tuned(data, n_trees, train, outcome)
    return lambda events: np.asarray(model.predict(_matrix(events), output_margin=True), dtype=np.float64)


Table: TypeAlias = tuple[Floats, NDArray[np.int8], Floats]


def table_of(data: Dataset) -> Table:
    """Rows, labels and weights of the nominal events; both classes have the same total, the mean weight is one."""
    rows, labels, weights = [], [], []
    for role in (Role.BACKGROUND, Role.SIGNAL):
        samples = data.of_role(role)
        total = sum(sample.events.total for sample in samples)
        for sample in samples:
            rows.append(_matrix(sample.events))
            labels.append(np.full(sample.events.n_rows, role is Role.SIGNAL, dtype=np.int8))
            weights.append(sample.events.weight / total)
    weight = np.concatenate(weights)
    return np.concatenate(rows), np.concatenate(labels), weight * (len(weight) / weight.sum())


def _matrix(events: Events) -> Floats:
    return np.asarray(events.matrix(), dtype=np.float64)


def _trained_gradient(table: Table, n_trees: int, seed: int) -> Scorer:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingClassifier(
        max_iter=n_trees, learning_rate=LEARNING_RATE, max_depth=DEPTH, early_stopping=False, random_state=seed
    )
    with threadpool_limits(1):
        model.fit(*table)

    def score(events: Events) -> Floats:
        with threadpool_limits(1):
            return np.asarray(model.decision_function(_matrix(events)), dtype=np.float64)

    return score


def _tuned(
    data: Dataset,
    n_trees: int,
    train: Callable[[Table, float, int, int, Table | None], Any],
    outcome: Callable[[Any], tuple[float, int]],
) -> Any:
    """Choose among `CANDIDATES` with every second training row held back, then train on all rows."""
    table = table_of(data)
    inner, held = (tuple(column[start::2] for column in table) for start in (0, 1))
    found: Mapping[tuple[float, int], tuple[float, int]] = {
        choice: outcome(train(inner, *choice, n_trees, held))  # type: ignore[arg-type]  # slices keep their types
        for choice in CANDIDATES
    }
    best = min(CANDIDATES, key=lambda choice: found[choice][0])
    return train(table, *best, max(found[best][1], 1), None)
