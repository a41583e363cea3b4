"""Where a training's rows come from, and what the boosting loop starts with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role, Tally, categories_of, require_categories
from qbdt.threads import Workers
from qbdt.training.paper.channels import make_plan
from qbdt.training.paper.criterion import PaperCriterion
from qbdt.training.paper.weighted_rows import LocalStore
from qbdt.training.settings import Settings
from qbdt.trees import Binning, make_binning
from qbdt.trees.growth import FeatureRules, RowStore

__all__ = [
    "BoostedStore",
    "InMemory",
    "Start",
    "TrainingRows",
    "binning_of",
    "categories_by_number",
    "described",
    "feature_rules",
]


class BoostedStore(RowStore, Protocol):
    """A store whose weights are boosted."""

    def boost(self, leaves: Sequence[int], factors: Floats) -> None:
        """Multiply the weights of each leaf's rows by its factors."""


class Start(NamedTuple):
    """What a training begins with: names, what it is trained on, bins, rows, and what a good split is."""

    features: tuple[str, ...]
    data: Mapping[str, Any]
    binning: Binning
    store: BoostedStore
    criterion: PaperCriterion


class TrainingRows(Protocol):
    """Events to train on, wherever they are."""

    def start(self, settings: Settings, workers: Workers) -> Start:
        """Check and bin them."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Events in this process."""

    dataset: Dataset

    def start(self, settings: Settings, workers: Workers) -> Start:
        """Check and bin them."""
        dataset = self.dataset.require_usable()
        binning = binning_of(dataset, settings, workers)
        features = feature_rules(binning, settings)
        plan = make_plan(dataset, settings.mc_stat, settings.min_leaf_entries)
        store = LocalStore(plan.segments, binning, workers)
        criterion = plan.criterion(store.layout, features, settings.min_leaf_entries, workers)
        return Start(dataset.features, described(dataset), binning, store, criterion)


def binning_of(dataset: Dataset, settings: Settings, workers: Workers) -> Binning:
    """Bin edges and categories of events in memory; refuses settings and values that do not go with each other."""
    settings.require_features(dataset.features)
    require_categories(dataset, settings.categorical_features)
    categories = categories_of(dataset, settings.categorical_features)
    signal, background = (
        [sample.events for sample in dataset.of_role(role)] for role in (Role.SIGNAL, Role.BACKGROUND)
    )
    return make_binning(settings.binning, settings.max_bins, dataset.features, signal, background, workers, categories)


def feature_rules(binning: Binning, settings: Settings) -> FeatureRules:
    """What the features of a training ask of splits."""
    names = binning.features
    directions = np.array([settings.monotonic_constraints.get(name, 0) for name in names], dtype=np.int64)
    return FeatureRules(binning.n_cuts, frozenset(names.index(name) for name in binning.categories), directions)


def categories_by_number(binning: Binning) -> dict[int, Floats]:
    """Categories by number of the feature, as trees have them."""
    return {binning.features.index(name): values for name, values in binning.categories.items()}


def described(dataset: Dataset, tallies: Iterable[Tally] | None = None) -> dict[str, Any]:
    """Rows and yields of the samples, to six digits, which no order of rows changes, and names of the sources.

    Parameters
    ----------
    dataset
        The events.
    tallies
        Rows and yields of its samples, where the events themselves are elsewhere.
    """
    if tallies is None:
        tallies = [Tally.of(s.name, s.role, s.events) for s in dataset.samples]
    return {
        "samples": [
            {"name": s.name, "role": str(s.role), "rows": tally.n_rows, "yield": float(f"{tally.total:.6g}")}
            for s, tally in zip(dataset.samples, tallies, strict=True)
        ],
        "systematics": [source.name for source in dataset.systematics],
    }
