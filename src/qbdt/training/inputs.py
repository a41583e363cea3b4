"""Inputs of both methods: rules of the splits of features, draws for each tree, a record of the events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from qbdt.arrays import Indices
from qbdt.data import Dataset, Tally
from qbdt.training.kernels.weights import ALL_ROWS, splitmix
from qbdt.training.settings import Settings
from qbdt.trees import Binning
from qbdt.trees.growth import FeatureRules


def make_feature_rules(binning: Binning, settings: Settings) -> FeatureRules:
    """Categories and monotonic constraints of the features, in the order of the binning."""
    names = binning.features
    directions = np.array([settings.monotonic_constraints.get(name, 0) for name in names], dtype=np.int64)
    return FeatureRules(binning.n_cuts, frozenset(names.index(name) for name in binning.categories), directions)


def draw_rows(settings: Settings, tree: int) -> tuple[int, int]:
    """Draw of rows for one tree: seed, and threshold below which the 53 random bits of a row must be (`drop_rows`).

    It depends on the training's seed and the tree's number alone.
    """
    with np.errstate(over="ignore"):
        seed = int(splitmix(settings.random_state, tree))
    return seed, ALL_ROWS if settings.row_fraction >= 1 else int(settings.row_fraction * 2**53)


def draw_features(settings: Settings, tree: int, n_features: int) -> Indices:
    """Features that one tree may cut on, in increasing order.

    Examples
    --------
    >>> draw_features(Settings(), 0, 3)
    array([0, 1, 2])
    >>> len(draw_features(Settings(feature_fraction=0.5), 0, 8))
    4
    """
    if settings.feature_fraction >= 1:
        return np.arange(n_features, dtype=np.int64)
    count = max(1, round(n_features * settings.feature_fraction))
    random = np.random.default_rng([settings.random_state, tree])
    return np.sort(random.choice(n_features, count, replace=False)).astype(np.int64)


def describe_events(dataset: Dataset, tallies: Iterable[Tally] | None = None) -> dict[str, Any]:
    """Rows and yields of the samples, to six digits, which no order of rows changes, and names of the sources.

    `tallies` are rows and yields of the samples, where the events themselves are elsewhere.
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
