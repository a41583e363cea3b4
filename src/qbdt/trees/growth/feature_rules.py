"""Rules of features for splits: a direction of the outputs (monotonic constraint), or a division by category.

Categories of a node are put in the order of the ratio of their contents (signal to background, numerator to
denominator), and the scan for the best cut then finds the best division: for a gain that is convex in that ratio no
other division of the categories is better (W. Fisher, 1958).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS, Fixed, Floats, Indices


class Limits(NamedTuple):
    """Limits of the output of a node."""

    low: float
    high: float

    def clip(self, value: float) -> float:
        """Return the output within the limits that is nearest to a value."""
        return min(max(value, self.low), self.high)

    def split(self, left: float, right: float, direction: int) -> tuple[Limits, Limits]:
        """Limits of the children of a node, from their outputs.

        Where the cut has a direction they end half-way between the outputs, so that all nodes below stay in order.

        Examples
        --------
        >>> FREE.split(1.0, 3.0, 1)
        (Limits(low=-inf, high=2.0), Limits(low=2.0, high=inf))
        """
        if direction == 0:
            return self, self
        middle = 0.5 * self.clip(left) + 0.5 * self.clip(right)
        below, above = Limits(self.low, middle), Limits(middle, self.high)
        return (below, above) if direction > 0 else (above, below)


FREE = Limits(-np.inf, np.inf)
"""No limits."""


CategoryYields: TypeAlias = Callable[[int, int], tuple[Floats, Floats, NDArray[np.bool_]]]
"""From a feature and its number of categories to two yields of each, and whether the node has it."""


@dataclass(frozen=True, eq=False)
class FeatureRules:
    """Rules of all features."""

    n_cuts: Indices  # Number of cuts of every feature; of a categorical one, one less than it has categories
    categorical: frozenset[int]  # Numbers of the categorical features
    # Of every feature +1 where the output must not fall when it rises, −1 for the opposite, 0 for neither
    directions: Indices

    @property
    def constrained(self) -> bool:
        """Whether a feature has a direction."""
        return bool(self.directions.any())

    def without_directions(self) -> FeatureRules:
        """Return the rules of features that are free to go either way."""
        return replace(self, directions=np.zeros_like(self.directions))

    def arrange(
        self, histogram: Fixed, features: Indices, channels: Sequence[tuple[int, int]], yields: CategoryYields
    ) -> Arranged:
        """Put the categories of a node in the order of the ratio of two yields.

        `channels` are those of the node's histogram, by first bin and distance of bins; `yields` gives the two yields
        of each category.
        """
        to_order = (
            [f for f in features.tolist() if f in self.categorical and self.n_cuts[f]] if self.categorical else []
        )
        if not to_order:
            return Arranged(histogram, self.n_cuts, {})
        found = Arranged(histogram.copy(), self.n_cuts.copy(), {})
        for feature in to_order:
            top, bottom, present = yields(feature, int(self.n_cuts[feature]) + 1)
            found.orders[feature] = category_order(top, bottom, present)
            found.n_cuts[feature] = max(int(present.sum()) - 1, 0)
            permute_bins(found.histogram, channels, feature, found.orders[feature])
        return found


class Arranged(NamedTuple):
    """A histogram whose categories are in order: number of cuts of every feature, and the codes in their new order.

    Categories that a node does not have come last, where no cut is tried: they go right.
    """

    histogram: Fixed
    n_cuts: Indices
    orders: dict[int, NDArray[np.intp]]

    def left_codes(self, feature: int, cut: int) -> NDArray[np.intp] | None:
        """Codes that a cut sends left; None where the feature is not categorical."""
        return self.orders[feature][:cut] if feature in self.orders else None


def category_order(top: Floats, bottom: Floats, present: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Codes by increasing ratio of two yields, equal ones by code; those that are not present come last.

    The order is that of the angle of (bottom, top), so that negative yields have their place too; it is found by
    divisions alone, which round alike everywhere.

    Examples
    --------
    >>> category_order(np.array([3.0, 0.0, 1.0]), np.array([1.0, 0.0, 2.0]), np.array([True, False, True]))
    array([2, 0, 1])
    """
    size = np.abs(top) + np.abs(bottom)
    share = np.divide(top, size, out=np.zeros_like(top), where=size > 0)
    angle = np.where(bottom >= 0, share, np.where(top >= 0, 2.0 - share, -2.0 - share))
    return np.argsort(np.where(present, angle, np.inf), kind="stable")


def permute_bins(flat: Fixed, starts: Sequence[tuple[int, int]], slot: int, order: NDArray[np.intp]) -> None:
    """Put the bins of one feature into another order, in channels given by their first bin and distance of bins."""
    for base, stride in starts:
        at = base + slot * BINS * stride
        bins = flat[at : at + len(order) * stride : stride]
        bins[:] = bins[order]
