"""Scale of the weights: one power of two per side, agreed on by all rows of a training wherever they are.

Trees add up integers, since sums of floats depend on their order. A weight w becomes the integer round(w · 2^SUM_BITS),
and no sum may pass 2^SUM_BITS: so the absolute weights of each side, signal and background with its variations, must
sum to at most one. Boosting multiplies weights by exp(∓p W), so after each tree all weights of a side are multiplied by
a power of two, which changes no mantissa: results do not depend on it, nor on how rows are divided. The normalisation
to one event (see `PaperCriterion.normalise`) is done on the integers' sums, not on the weights.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from qbdt.arrays import COLUMN_BITS, SUM_BITS, Fixed, Floats
from qbdt.errors import DataError
from qbdt.trees.rows import Side

LEAST_SUM = 2.0**-4
"""Where a side's absolute weights sum to less than this, they are scaled up: at most four bits stay unused."""


class Weighted(Protocol):
    """All rows of a training, in one place or many. Arrays have one entry per side."""

    def count_weights(self) -> Fixed:
        """Return how many weights there are."""

    def largest_weights(self) -> Floats:
        """Return the largest absolute weights."""

    def rescale(self, factors: Floats) -> None:
        """Multiply all weights."""

    def quantise(self, units: tuple[float, float], seed: int, threshold: int) -> Fixed:
        """Begin a tree; return the sums of absolute weights in units of 2^−SUM_BITS."""

    def largest_columns(self) -> Floats:
        """Return the largest further column, and the largest weight whose square is one, as loaded."""

    def largest_quantised(self) -> Floats:
        """Return the largest column and the largest square of the tree that was begun, in units."""


class WeightScaling:
    """Keeps the absolute weights of each side summing to between LEAST_SUM and one.

    It does not hold the rows: an owner of both is no circle of references.
    """

    def __init__(self, rows: Weighted) -> None:
        self._sums: list[float] = [0.0] * len(Side)
        self._largest = np.array(rows.largest_columns(), dtype=np.float64)
        self._found: Floats = np.zeros(2)
        self._rescale(rows, _bounds(rows))

    @property
    def units(self) -> tuple[float, float]:
        """Value of one unit of a boosted column and of a squared weight in this tree; a weight's is 2^−SUM_BITS."""
        column, weight = (math.frexp(largest)[1] for largest in self._largest)
        return math.ldexp(1.0, column - COLUMN_BITS), math.ldexp(1.0, 2 * weight - COLUMN_BITS)

    def quantise(self, rows: Weighted, seed: int, threshold: int) -> None:
        """Turn the weights of the next tree into integers, in the range that uses their bits best."""
        self._quantise(rows, seed, threshold)
        # The bound kept by boosting is not tight: where weights became small, scale them up and round them anew. A sum
        # of zero says nothing about their size; rows × largest does.
        while min(self._sums) < LEAST_SUM:
            bounds = _bounds(rows) if min(self._sums) == 0 else self._sums
            self._rescale(rows, [total or bound for total, bound in zip(self._sums, bounds, strict=True)])
            self._quantise(rows, seed, threshold)

    def limit(self, factors: Floats) -> Floats:
        """Return leaves' factors exp(∓p W) (one row each), with powers of two that keep each side's sum below one.

        To be called once for each tree: the rows' columns grow by what is returned.
        """
        # No weight grows by more than the largest factor, so neither does their sum.
        scaled = factors * [_shrink(total * float(factors[:, side].max())) for side, total in enumerate(self._sums)]
        # The same bound for the largest column and squared weight, whose units follow it (see `units`). Half a unit was
        # lost to rounding.
        found = (self._found + 0.5 * (self._found > 0)) * self.units
        self._largest = np.array([found[0], math.sqrt(found[1])]) * scaled[:, Side.BACKGROUND].max()
        return np.asarray(scaled)

    def _quantise(self, rows: Weighted, seed: int, threshold: int) -> None:
        self._sums = [math.ldexp(int(total), -SUM_BITS) for total in rows.quantise(self.units, seed, threshold)]
        self._found = np.array(rows.largest_quantised(), dtype=np.float64)

    def _rescale(self, rows: Weighted, sums: list[float]) -> None:
        """Bring the absolute sum of each side to between a half and one, by a power of two."""
        for side, total in zip(Side, sums, strict=True):
            if not 0 < total < math.inf:
                raise DataError(f"the absolute weights of the {side.name.lower()} sum to {total}: cannot be trained on")
        factors = np.array([_shrink(total) for total in sums])
        rows.rescale(factors)
        self._largest = self._largest * factors[Side.BACKGROUND]


def _bounds(rows: Weighted) -> list[float]:
    """Upper bound on the sum of absolute weights of each side: rows × largest, which no order of rows changes."""
    pairs = zip(rows.count_weights(), rows.largest_weights(), strict=True)
    return [int(count) * float(largest) for count, largest in pairs]


def _shrink(total: float) -> float:
    """Return the power of two that brings a number to between a half and one."""
    return math.ldexp(1.0, -math.frexp(total)[1])
