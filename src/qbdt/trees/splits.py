"""What a criterion says of a node: its best split, its yields, and the order of splits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed
from qbdt.trees.feature_rules import Arranged, FeatureRules

__all__ = ["Split", "Yield", "by_gain"]


class Split(NamedTuple):
    """A cut on one feature: codes below `cut` go left. Feature −1: no cut is allowed.

    `missing` says where missing values go (see the scan kernel), open where the node has none; `left` are the
    quantities of the left child; `codes` those that go left where the feature is categorical; `direction` that of a
    feature with a monotonic constraint.
    """

    gain: float
    feature: int
    cut: int
    missing: int
    left: Fixed
    codes: NDArray[np.intp] | None = None
    direction: int = 0

    def under(self, rules: FeatureRules, arranged: Arranged) -> Split:
        """Return the split with what the rules of its feature add."""
        if self.feature < 0:
            return self
        codes = arranged.left_codes(self.feature, self.cut)
        return self._replace(codes=codes, direction=int(rules.directions[self.feature]))


class Yield(NamedTuple):
    """Yields of a node, with signal and nominal background each scaled to one event."""

    s: float
    b: float
    sigma2: float
    q: float
    value: float


def by_gain(split: Split) -> tuple[float, int]:
    """Larger gains first, then lower features."""
    return split.gain, -split.feature
