"""Answers of a criterion: the best split of a node, and its yields."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed, Floats, Indices
from qbdt.trees.growth.feature_rules import FREE, Arranged, FeatureRules, Limits
from qbdt.trees.growth.systematic_histograms import NodeSystematics


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
        """Return the split with the categories and the direction of its feature."""
        if self.feature < 0:
            return self
        codes = arranged.left_codes(self.feature, self.cut)
        return self._replace(codes=codes, direction=int(rules.directions[self.feature]))

    def rank(self) -> tuple[float, int]:
        """Sorting key: larger gains, then lower features are better."""
        return self.gain, -self.feature


class NodeYields(NamedTuple):
    """Yields of a node, with signal and nominal background each scaled to one event; `value` is its output."""

    s: float
    b: float
    sigma2: float
    q: float
    value: float


class Criterion(Protocol):
    """Judges splits on histograms, and describes nodes."""

    @property
    def has_systematics(self) -> bool:
        """Whether splits are judged on systematic histograms too."""

    def describe(self, sums: Fixed) -> NodeYields:
        """Yields and output of a node, from its quantities."""

    def upper_bounds(self, histogram: Fixed, sums: Fixed, q: float, features: Indices) -> Floats:
        """Upper bound on the gain of each feature, without systematic histograms."""

    def best_split(
        self,
        histogram: Fixed,
        systematics: NodeSystematics,
        sums: Fixed,
        q: float,
        features: Indices,
        upper_bounds: Floats | None = None,
        limits: Limits = FREE,
    ) -> Split:
        """Return the best split, with feature −1 where none is allowed.

        `upper_bounds` where they are known already; `limits` are those of the children's outputs.
        """
