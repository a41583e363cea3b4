"""What each tree may look at: its draws of rows and features, from the seed and its number alone."""

from __future__ import annotations

import numpy as np

from qbdt.arrays import Fixed
from qbdt.training.kernels.weights import splitmix
from qbdt.training.settings import Settings

__all__ = ["drawn_features", "row_seed"]


def row_seed(settings: Settings, tree: int) -> int:
    """Seed of the draw of rows for one tree."""
    with np.errstate(over="ignore"):
        return int(splitmix(settings.random_state, tree))


def drawn_features(settings: Settings, tree: int, n_features: int) -> Fixed:
    """Features that one tree may cut on, in increasing order.

    Examples
    --------
    >>> drawn_features(Settings(), 0, 3)
    array([0, 1, 2])
    >>> len(drawn_features(Settings(feature_fraction=0.5), 0, 8))
    4
    """
    if settings.feature_fraction >= 1:
        return np.arange(n_features, dtype=np.int64)
    count = max(1, round(n_features * settings.feature_fraction))
    random = np.random.default_rng([settings.random_state, tree])
    return np.sort(random.choice(n_features, count, replace=False)).astype(np.int64)
