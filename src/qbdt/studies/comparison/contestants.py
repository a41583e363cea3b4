"""Who takes part: peers and our own methods, each with the settings that tuning may choose from.

The first settings of every contestant are ones that are known to be good, from small to large models; the others are
drawn once, with a fixed seed, from ranges. All run on one thread: the barriers of the peers make two slower than one
where anything else runs.

To add a contestant, add a line to `CONTESTANTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import packages_distributions
from inspect import signature
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np

from qbdt.data import Dataset
from qbdt.errors import ConfigError, DataError, QBDTError, require
from qbdt.studies.trainers import (
    Method,
    Parameters,
    Trained,
    fit_adaboost,
    fit_classifier,
    fit_hist_gradient_boosting,
    fit_lightgbm,
    fit_on_table,
    fit_qbdt,
    fit_xgboost,
)

Ranges: TypeAlias = Mapping[str, Sequence[Any]]

LEAVE_OUT = "compare without it"
"""What to do about a method that these events do not suit, at the end of messages."""


@dataclass(frozen=True)
class Contestant(Method):
    """A method and the settings that tuning may choose from."""

    known: tuple[Parameters, ...] = ({},)  # Settings that are tried first
    # Values from which further settings are drawn, each with the same probability; empty where a training is too slow
    # for more
    ranges: Ranges = field(default_factory=dict)
    # Method of this package that it is, which may use the systematic sources; empty for a peer
    method: str = field(default="", kw_only=True)
    on_gpu: bool = field(default=False, kw_only=True)  # Whether a GPU gives it other results than a CPU

    @property
    def ours(self) -> bool:
        """Whether it belongs to this package."""
        return bool(self.method)

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

    @property
    def release(self) -> str:
        """Package and version, and whether on a GPU where results are others there."""
        return super().release + " on a GPU" * self.on_gpu

    def train(self, data: Dataset, settings: Parameters, seed: int) -> Trained:
        """Train; where another library refuses the events, that is one message."""
        try:
            return self.fit(data, settings, seed)
        except (QBDTError, MemoryError):
            raise
        except Exception as error:
            if self.ours:
                raise
            reason = str(error).strip().split("\n", 1)[0]
            raise DataError(f"{self.name} cannot be trained on these events: {reason}; {LEAVE_OUT}") from error

    def on_device(self, device: str | None) -> Contestant:
        """Return the same contestant where it works: ours and XGBoost on a device, all others on the CPU.

        Results of ours are the same there, bit by bit; XGBoost's are not.
        """
        if device is not None and self.ours:
            return replace(self, fit=partial(_fit_ours, method=self.method, device=device))
        if device is not None and self.name == "XGBoost":
            return replace(self, fit=fit_on_table(partial(fit_xgboost, device=device)), on_gpu=True)
        return self

    def restrict_to(self, sources: Sequence[str]) -> Contestant:
        """Return the same contestant, told of some sources only when it trains."""

        def fit(data: Dataset, settings: Parameters, seed: int) -> Trained:
            return self.fit(data.with_systematics(sources), settings, seed)

        return replace(self, fit=fit)


CODE = ("statistics", "training", "trees")
"""Code that scores of our own methods depend on: cached scores of other code are not used."""


def _fit_ours(data: Dataset, settings: Parameters, seed: int, *, method: str, device: str | None = None) -> Trained:
    return fit_qbdt(data, {"method": method, **settings}, seed, device)


PEER_SIZES = (
    (300, 0.05, 8, 20),
    (500, 0.1, 16, 50),
    (500, 0.1, 31, 50),
    (1000, 0.1, 8, 20),
    (300, 0.05, 4, 100),
    (2000, 0.05, 8, 100),
    (1000, 0.05, 31, 100),
    (300, 0.05, 63, 100),
    (1000, 0.05, 63, 500),
    (2000, 0.05, 4, 20),
    (500, 0.05, 16, 500),
    (100, 0.1, 31, 20),
)
"""Trees, learning rate, leaves and least events of a leaf that peers are tuned over before anything is drawn, in an
order that lets a small budget span them too."""

CONTESTANTS: tuple[Contestant, ...] = (
    Contestant(
        "LightGBM",
        fit_on_table(fit_lightgbm),
        tuple(
            {"n_trees": trees, "learning_rate": rate, "num_leaves": leaves, "min_data_in_leaf": least}
            for trees, rate, leaves, least in PEER_SIZES
        ),
        {
            "n_trees": (100, 300, 1000, 2000),
            "learning_rate": (0.05, 0.1, 0.2),
            "num_leaves": (4, 8, 16, 31, 63),
            "min_data_in_leaf": (20, 100, 500),
            "feature_fraction": (0.5, 1.0),
            "bagging_fraction": (0.5, 1.0),
            "lambda_l2": (0.0, 10.0),
        },
        package="lightgbm",
    ),
    Contestant(
        "XGBoost",
        fit_on_table(fit_xgboost),
        tuple(
            {
                "n_estimators": trees,
                "learning_rate": rate,
                "max_depth": (leaves - 1).bit_length() + 1,
                "min_child_weight": least / 10,
            }
            for trees, rate, leaves, least in PEER_SIZES
        ),
        {
            "n_estimators": (100, 300, 1000, 2000),
            "learning_rate": (0.05, 0.1, 0.2),
            "max_depth": (2, 3, 4, 5, 6, 8),
            "min_child_weight": (1.0, 10.0, 50.0),
            "colsample_bytree": (0.5, 1.0),
            "subsample": (0.5, 1.0),
            "reg_lambda": (1.0, 10.0),
        },
        package="xgboost",
    ),
    Contestant(
        "scikit-learn HGB",
        fit_on_table(fit_hist_gradient_boosting),
        tuple(
            {"max_iter": trees, "learning_rate": rate, "max_leaf_nodes": leaves, "min_samples_leaf": least}
            for trees, rate, leaves, least in PEER_SIZES
        ),
        {
            "max_iter": (100, 300, 1000, 2000),
            "learning_rate": (0.05, 0.1, 0.2),
            "max_leaf_nodes": (4, 8, 16, 31, 63),
            "min_samples_leaf": (20, 100, 500),
            "max_features": (0.5, 1.0),
            "l2_regularization": (0.0, 10.0),
        },
        package="scikit-learn",
    ),
    Contestant(
        "AdaBoost",
        fit_on_table(fit_adaboost),
        ({"n_trees": 50, "learning_rate": 0.5, "max_depth": 4, "min_samples_leaf": 100},),
        package="scikit-learn",
    ),
    Contestant(
        "QBDT (paper)",
        partial(_fit_ours, method="paper"),
        ({}, {"n_trees": 200}, {"n_trees": 200, "mc_stat": True, "min_leaf_entries": 20.0}),
        method="paper",
        code=CODE,
    ),
    Contestant("qbdt profile", partial(_fit_ours, method="profile"), ({},), method="profile", code=CODE),
)
"""Peers, the paper's method, and the profiled method, which is not tuned: at its defaults."""

OURS = "qbdt profile"
"""The contestant that the marks are about."""


def get_contestant(name: str) -> Contestant:
    """Return one contestant, whose package is installed: of the table, or a scikit-learn classifier by import path."""
    for contestant in CONTESTANTS:
        if contestant.name == name:
            if not contestant.available:
                require(contestant.package, f"the method {name}")
            return contestant
    if "." in name:
        return _import_classifier(name)
    known = ", ".join(c.name for c in CONTESTANTS)
    raise ConfigError(f"no contestant {name}; there are: {known}, and import paths of scikit-learn classifiers")


def _import_classifier(path: str) -> Contestant:
    """Contestant of a scikit-learn classifier, at the settings that it has without arguments."""
    module, _, name = path.rpartition(".")
    try:
        kind: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"contestant {path}: cannot be imported: {error}") from error
    scores = any(hasattr(kind, method) for method in ("decision_function", "predict_proba"))
    if (
        not isinstance(kind, type)
        or not scores
        or "sample_weight" not in signature(getattr(kind, "fit", kind)).parameters
    ):
        raise ConfigError(
            f"contestant {path}: a class with fit(X, y, sample_weight) and decision_function or predict_proba is needed"
        )
    package = _find_package(path.partition(".")[0])
    return Contestant(path, fit_on_table(partial(fit_classifier, kind)), package=package)


@cache
def _find_package(module: str) -> str:
    """Name of the package that a module comes from; cached, since all installed ones are looked through."""
    return packages_distributions().get(module, [module])[0]


def select_contestants(names: Sequence[str] | None, device: str | None = None) -> list[Contestant]:
    """Return the contestants with these names, or all whose packages are installed, see `Contestant.on_device`."""
    found = [c for c in CONTESTANTS if c.available] if names is None else [get_contestant(name) for name in names]
    return [contestant.on_device(device) for contestant in found]
