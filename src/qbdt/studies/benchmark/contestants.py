"""Who takes part: peers and our own methods, each with the settings that tuning may choose from.

The first settings of every contestant are ones that are known to be good, from small to large models; the others are
drawn once, with a fixed seed, from ranges. All run on one thread: the barriers of the peers make two slower than one
where anything else runs.

To add a contestant, add a line to `CONTESTANTS`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

import qbdt
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events
from qbdt.errors import ConfigError, require
from qbdt.studies.peers import Scorer, table_of
from qbdt.training import Settings, train

__all__ = ["CONTESTANTS", "OURS", "Contestant", "Parameters", "chosen", "named"]

Parameters: TypeAlias = Mapping[str, Any]
Ranges: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Contestant:
    """One way to train.

    Attributes
    ----------
    name
        As tables print it.
    fit
        Trains on a dataset: (dataset, settings, seed) to a scorer.
    known
        Settings that are tried first.
    ranges
        Values from which further settings are drawn, each with the same probability; empty where a training is too
        slow for more.
    package
        Distribution that does the work; its version is part of what a cached result depends on.
    ours
        Whether it belongs to this package and may use the systematic sources.
    sources
        For our own: files and folders whose change makes cached scores invalid.
    """

    name: str
    fit: Callable[[Dataset, Parameters, int], Scorer] = field(repr=False)
    known: tuple[Parameters, ...]
    ranges: Ranges = field(default_factory=dict)
    package: str = "qbdt"
    ours: bool = False
    sources: tuple[str, ...] = ()

    def candidates(self, budget: int) -> list[Parameters]:
        """Return the settings that tuning chooses from: the same ones in every run, the first of them in a small one.

        Examples
        --------
        >>> peer = Contestant("a", None, ({"rate": 0.1},), {"rate": (0.05, 0.2), "leaves": (4, 8)})
        >>> peer.candidates(3)[:1], len(peer.candidates(3)), peer.candidates(3) == peer.candidates(4)[:3]
        ([{'rate': 0.1}], 3, True)
        """
        found = list(self.known[:budget])
        random = np.random.default_rng(crc32(self.name.encode()))
        possible = int(np.prod([len(values) for values in self.ranges.values()])) if self.ranges else 0
        while len(found) < min(budget, possible):
            drawn = {name: values[int(random.integers(len(values)))] for name, values in self.ranges.items()}
            if drawn not in found:
                found.append(drawn)
        return found

    def restricted_to(self, sources: Sequence[str]) -> Contestant:
        """Return the same contestant, told of some sources only when it trains."""

        def fit(data: Dataset, settings: Parameters, seed: int) -> Scorer:
            return self.fit(data.with_systematics(sources), settings, seed)

        return replace(self, fit=fit)

    @property
    def available(self) -> bool:
        """Whether what it needs is installed."""
        return find_spec(self.package.replace("scikit-learn", "sklearn")) is not None

    @property
    def release(self) -> str:
        """What does the work: package and version; for our own methods a digest of the code."""
        return f"{self.package} {_digest(self.sources) if self.sources else version(self.package)}"


PAPER_SOURCES = (
    *("statistics.py", "training/draws.py", "training/paper", "training/settings.py"),
    *("trees/binning.py", "trees/growth.py", "trees/growth_rules.py", "trees/splits.py", "trees/tree.py"),
)
"""What scores of the paper's method depend on: its rules. Kernels and stores are held to them by tests."""

PROFILE_SOURCES = (
    *("statistics.py", "training/draws.py", "training/kernels", "training/profile", "training/settings.py", "trees"),
)
"""What scores of the profiled method depend on: everything that its training runs through."""


@cache
def _digest(sources: tuple[str, ...]) -> str:
    """Digest of source files, given by the names of files and folders of the package."""
    root = Path(qbdt.__file__).parent
    digest = hashlib.sha256()
    for name in sources:
        for path in sorted((root / name).rglob("*.py")) if (root / name).is_dir() else [root / name]:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _lightgbm(data: Dataset, settings: Parameters, seed: int) -> Scorer:
    library = require("lightgbm", "the peer LightGBM")
    X, y, weight = table_of(data)
    fixed = {"objective": "binary", "num_threads": 1, "verbose": -1, "seed": seed, "deterministic": True}
    rows = library.Dataset(X, y, weight=weight)
    options = {**fixed, "force_col_wise": True, "bagging_freq": 1, **settings}
    model = library.train({k: v for k, v in options.items() if k != "n_trees"}, rows, settings["n_trees"])
    return lambda events: np.asarray(model.predict(_matrix(events), raw_score=True, num_threads=1))


def _xgboost(data: Dataset, settings: Parameters, seed: int) -> Scorer:
    library = require("xgboost", "the peer XGBoost")
    X, y, weight = table_of(data)
    model = library.XGBClassifier(tree_method="hist", n_jobs=1, random_state=seed, **settings)
    model.fit(X, y, sample_weight=weight)
    return lambda events: np.asarray(model.predict(_matrix(events), output_margin=True), dtype=np.float64)


def _histogram_boosting(data: Dataset, settings: Parameters, seed: int) -> Scorer:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingClassifier(early_stopping=False, random_state=seed, **settings)
    X, y, weight = table_of(data)
    with threadpool_limits(1):
        model.fit(X, y, sample_weight=weight)

    def score(events: Events) -> Floats:
        with threadpool_limits(1):
            return np.asarray(model.decision_function(_matrix(events)), dtype=np.float64)

    return score


def _adaboost(data: Dataset, settings: Parameters, seed: int) -> Scorer:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(
        max_depth=settings["max_depth"], min_samples_leaf=settings["min_samples_leaf"], random_state=seed
    )
    model = AdaBoostClassifier(
        tree, n_estimators=settings["n_trees"], learning_rate=settings["learning_rate"], random_state=seed
    )
    X, y, weight = table_of(data)
    model.fit(X, y, sample_weight=weight)
    return lambda events: np.asarray(model.decision_function(_matrix(events)), dtype=np.float64)


def _own(data: Dataset, settings: Parameters, seed: int, *, method: str) -> Scorer:
    training = train(data, Settings(method=method, random_state=seed, **settings), n_threads=1)
    return lambda events: np.asarray(training.ensemble.score(events, 1), dtype=np.float64)


def _matrix(events: Events) -> Floats:
    return np.asarray(events.matrix(), dtype=np.float64)


CONTESTANTS: tuple[Contestant, ...] = (
    Contestant(
        "LightGBM",
        _lightgbm,
        (
            {"n_trees": 300, "learning_rate": 0.05, "num_leaves": 8},
            {"n_trees": 1000, "learning_rate": 0.1, "num_leaves": 8},
            {"n_trees": 500, "learning_rate": 0.1, "num_leaves": 16, "min_data_in_leaf": 50, "feature_fraction": 0.7},
        ),
        {
            "n_trees": (200, 400, 800),
            "learning_rate": (0.05, 0.1, 0.2),
            "num_leaves": (4, 8, 16, 32),
            "min_data_in_leaf": (20, 100),
            "feature_fraction": (0.5, 1.0),
            "bagging_fraction": (0.5, 1.0),
            "lambda_l2": (0.0, 10.0),
        },
        "lightgbm",
    ),
    Contestant(
        "XGBoost",
        _xgboost,
        (
            {"n_estimators": 300, "learning_rate": 0.1, "max_depth": 4},
            {"n_estimators": 800, "learning_rate": 0.1, "max_depth": 4},
            {"n_estimators": 500, "learning_rate": 0.05, "max_depth": 3},
            {"n_estimators": 400, "learning_rate": 0.1, "max_depth": 6, "min_child_weight": 10.0, "subsample": 0.7},
        ),
        {
            "n_estimators": (200, 400, 800),
            "learning_rate": (0.05, 0.1, 0.2),
            "max_depth": (2, 3, 4, 5, 6),
            "min_child_weight": (1.0, 10.0, 50.0),
            "colsample_bytree": (0.5, 1.0),
            "subsample": (0.5, 1.0),
            "reg_lambda": (1.0, 10.0),
        },
        "xgboost",
    ),
    Contestant(
        "scikit-learn HGB",
        _histogram_boosting,
        (
            {"max_iter": 300, "learning_rate": 0.05, "max_leaf_nodes": 8},
            {"max_iter": 500, "learning_rate": 0.1, "max_leaf_nodes": 8},
            {"max_iter": 500, "learning_rate": 0.1, "max_leaf_nodes": 16, "min_samples_leaf": 50},
        ),
        {
            "max_iter": (200, 400, 800),
            "learning_rate": (0.05, 0.1, 0.2),
            "max_leaf_nodes": (4, 8, 16, 32),
            "min_samples_leaf": (20, 100),
            "max_features": (0.5, 1.0),
            "l2_regularization": (0.0, 10.0),
        },
        "scikit-learn",
    ),
    Contestant(
        "AdaBoost",
        _adaboost,
        ({"n_trees": 50, "learning_rate": 0.5, "max_depth": 4, "min_samples_leaf": 100},),
        package="scikit-learn",
    ),
    Contestant(
        "QBDT (paper)",
        partial(_own, method="paper"),
        ({}, {"n_trees": 200}, {"n_trees": 200, "mc_stat": True, "min_leaf_entries": 20.0}),
        ours=True,
        sources=PAPER_SOURCES,
    ),
    Contestant("qbdt profile", partial(_own, method="profile"), ({},), ours=True, sources=PROFILE_SOURCES),
)
"""Peers, the paper's method, and the profiled method, which is not tuned: at its defaults."""

OURS = "qbdt profile"
"""The contestant that the marks are about."""


def named(name: str) -> Contestant:
    """Return one contestant."""
    for contestant in CONTESTANTS:
        if contestant.name == name:
            return contestant
    raise ConfigError(f"no contestant {name}; there are: {', '.join(c.name for c in CONTESTANTS)}")


def chosen(names: Sequence[str] | None) -> list[Contestant]:
    """Return the contestants with these names, or all whose packages are installed."""
    return [c for c in CONTESTANTS if c.available] if names is None else [named(name) for name in names]
