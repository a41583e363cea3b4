"""What both methods take from their events and settings: rules for features, categories, a description."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Tally
from qbdt.training.settings import Settings
from qbdt.trees import Binning
from qbdt.trees.growth import FeatureRules

__all__ = ["categories_by_number", "described", "feature_rules"]


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
