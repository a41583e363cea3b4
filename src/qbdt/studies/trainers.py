"""Methods to compare: LightGBM, XGBoost, scikit-learn's boosted trees and our own, each called in the same way.

In: a dataset, settings and a seed. Out: `Trained`, with a function from events to scores. The other libraries see
nominal events only, signal and background scaled to the same total weight, as the paper's GradBDT does. All train on
one thread: the barriers of these libraries make two threads slower than one where anything else runs on the machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import qbdt
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role
from qbdt.errors import require
from qbdt.models import place_model
from qbdt.training import Settings, TrainedModel, smooth_nominal, train

Scorer: TypeAlias = Callable[[Events], Floats]
Parameters: TypeAlias = Mapping[str, Any]

PATIENCE = 50
"""Trees without improvement of the validation loss after which early stopping ends a training."""


class EventTable(NamedTuple):
    """Rows of features, labels (1 for signal) and weights."""

    X: Floats
    y: NDArray[np.int8]
    weight: Floats


@dataclass(frozen=True)
class Trained:
    """A trained method."""

    score: Scorer  # From events to scores; larger is more signal-like
    training: TrainedModel | None = None  # The QBDT training, where it is one
    # n_trees, loss: best number of trees and its log loss on the validation events, where there were any
    n_trees: int = 0
    loss: float = math.inf


@dataclass(frozen=True)
class Method:
    """One way to train."""

    name: str  # As tables print it
    # Trains: (dataset, settings, seed) to `Trained`
    fit: Callable[[Dataset, Parameters, int], Trained] = field(repr=False)
    package: str = field(default="qbdt", kw_only=True)  # Distribution that does the work
    # For our own methods: files and folders of this package that scores depend on
    code: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def available(self) -> bool:
        """Whether its package is installed."""
        return find_spec(self.package.replace("scikit-learn", "sklearn")) is not None

    @property
    def release(self) -> str:
        """Package and version; for our own methods a digest of the code instead of the version."""
        return f"{self.package} {_digest_code(self.code) if self.code else version(self.package)}"


@cache
def _digest_code(names: tuple[str, ...]) -> str:
    root = Path(qbdt.__file__).parent
    digest = hashlib.sha256()
    for name in names:
        for path in sorted((root / name).rglob("*.py")) if (root / name).is_dir() else [root / name]:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def make_event_table(data: Dataset) -> EventTable:
    """Nominal events as a table; both classes have the same total weight, the mean weight is one.

    Where weights are negative, which XGBoost refuses, they are smoothed as those of our own methods are.
    """
    data = smooth_nominal(data)
    rows, labels, weights = [], [], []
    for role in (Role.BACKGROUND, Role.SIGNAL):
        samples = data.of_role(role)
        total = sum(sample.events.total for sample in samples)
        for sample in samples:
            rows.append(_matrix(sample.events))
            labels.append(np.full(sample.events.n_rows, role is Role.SIGNAL, dtype=np.int8))
            weights.append(sample.events.weight / total)
    weight = np.concatenate(weights)
    return EventTable(np.concatenate(rows), np.concatenate(labels), weight * (len(weight) / weight.sum()))


def fit_on_table(
    fit: Callable[[EventTable, Parameters, int], Trained],
) -> Callable[[Dataset, Parameters, int], Trained]:
    """Make a function that trains on a dataset of one that trains on a table of its nominal events."""
    return lambda data, settings, seed: fit(make_event_table(data), settings, seed)


def _matrix(events: Events) -> Floats:
    return np.asarray(events.matrix(), dtype=np.float64)


def fit_lightgbm(table: EventTable, settings: Parameters, seed: int, validation: EventTable | None = None) -> Trained:
    """Train LightGBM; `settings` are its own names and `n_trees`."""
    library = require("lightgbm", "the method LightGBM")
    fixed = {"objective": "binary", "num_threads": 1, "verbose": -1, "seed": seed, "deterministic": True}
    options = {**fixed, "force_col_wise": True, "bagging_freq": 1, **settings}
    n_trees = options.pop("n_trees")
    rows = library.Dataset(table.X, table.y, weight=table.weight)
    stopping: dict[str, Any] = {}
    if validation is not None:
        stopping["valid_sets"] = [rows.create_valid(validation.X, validation.y, weight=validation.weight)]
        stopping["callbacks"] = [library.early_stopping(PATIENCE, verbose=False)]
    model = library.train(options, rows, n_trees, **stopping)

    def score(events: Events) -> Floats:
        return np.asarray(model.predict(_matrix(events), raw_score=True, num_threads=1))

    if validation is None:
        return Trained(score)
    loss = float(model.best_score["valid_0"]["binary_logloss"])
    return Trained(score, n_trees=int(model.best_iteration), loss=loss)


def fit_xgboost(
    table: EventTable,
    settings: Parameters,
    seed: int,
    validation: EventTable | None = None,
    device: str | None = None,
) -> Trained:
    """Train XGBoost; `settings` are the arguments of its `XGBClassifier`. With a device it scores there as well."""
    library = require("xgboost", "the method XGBoost")
    model = library.XGBClassifier(
        tree_method="hist",
        n_jobs=1,
        random_state=seed,
        early_stopping_rounds=None if validation is None else PATIENCE,
        device=device,
        **settings,
    )
    stopping: dict[str, Any] = {}
    if validation is not None:
        stopping = {"eval_set": [validation[:2]], "sample_weight_eval_set": [validation.weight], "verbose": False}
    model.fit(table.X, table.y, sample_weight=table.weight, **stopping)

    def score(events: Events) -> Floats:
        if device is not None:  # the classifier warns of each table that is not on the device yet
            rows = library.DMatrix(_matrix(events))
            return np.asarray(model.get_booster().predict(rows, output_margin=True), dtype=np.float64)
        return np.asarray(model.predict(_matrix(events), output_margin=True), dtype=np.float64)

    if validation is None:
        return Trained(score)
    return Trained(score, n_trees=int(model.best_iteration) + 1, loss=float(model.best_score))


def fit_hist_gradient_boosting(table: EventTable, settings: Parameters, seed: int) -> Trained:
    """Train scikit-learn's HistGradientBoostingClassifier; `settings` are its arguments."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed, **settings)
    with threadpool_limits(1):
        model.fit(table.X, table.y, sample_weight=table.weight)

    def score(events: Events) -> Floats:
        with threadpool_limits(1):
            return np.asarray(model.decision_function(_matrix(events)), dtype=np.float64)

    return Trained(score)


def fit_adaboost(table: EventTable, settings: Parameters, seed: int) -> Trained:
    """Train scikit-learn's AdaBoostClassifier; `settings` are n_trees, learning_rate, max_depth, min_samples_leaf.

    The score is Σ α_t k_t / Σ α_t, which lies in (−1, 1).
    """
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(
        max_depth=settings["max_depth"], min_samples_leaf=settings["min_samples_leaf"], random_state=seed
    )
    model = AdaBoostClassifier(
        tree, n_estimators=settings["n_trees"], learning_rate=settings["learning_rate"], random_state=seed
    )
    model.fit(table.X, table.y, sample_weight=table.weight)
    return Trained(lambda events: np.asarray(model.decision_function(_matrix(events)), dtype=np.float64))


def fit_classifier(kind: type, table: EventTable, settings: Parameters, seed: int) -> Trained:
    """Train a scikit-learn classifier of some class; `settings` are its arguments."""
    model = kind(**settings)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    model.fit(table.X, table.y, sample_weight=table.weight)

    def score(events: Events) -> Floats:
        matrix = _matrix(events)
        found = model.decision_function(matrix) if hasattr(model, "decision_function") else model.predict_proba(matrix)
        return np.asarray(found, dtype=np.float64).reshape(len(matrix), -1)[:, -1]

    return Trained(score)


def fit_qbdt(data: Dataset, settings: Parameters, seed: int, device: str | None = None) -> Trained:
    """Train this package, with all sources of the dataset; `settings` are those of `Settings`, `method` too."""
    n_threads = 1 if device is None else None  # all threads prepare rows for a device, which the others leave to us
    training = train(data, Settings(random_state=seed, **settings), n_threads=n_threads, device=device)
    model = place_model(training.ensemble, device)
    return Trained(lambda events: np.asarray(model.score(events, 1), dtype=np.float64), training)


def fit_with_early_stopping(
    fit: Callable[..., Trained], table: EventTable, candidates: Sequence[Parameters], trees: str, seed: int
) -> Trained:
    """Choose settings and number of trees with every second row held back, then train on all rows.

    `fit` is `fit_lightgbm` or `fit_xgboost`; `candidates` are settings with the largest number of trees, whose name in
    them is `trees`.
    """
    X, y, weight = table
    inner, held_back = (EventTable(X[start::2], y[start::2], weight[start::2]) for start in (0, 1))
    tried = [fit(inner, settings, seed, held_back) for settings in candidates]
    best = int(np.argmin([trained.loss for trained in tried]))
    return fit(table, {**candidates[best], trees: max(tried[best].n_trees, 1)}, seed)
