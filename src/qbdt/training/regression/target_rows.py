"""`TargetRows`: rows of a partition on which the prediction is learnt by the gradient of a loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.data import TARGET, Events
from qbdt.threads import Workers
from qbdt.training.profile.pair_rows import PairRows
from qbdt.training.regression.losses import Loss
from qbdt.trees import Binning
from qbdt.trees.rows import Memory, Segment, Side, in_memory


class TargetRows(PairRows):
    """Rows with weights, targets y and the prediction f so far; those held out only follow the trees."""

    def __init__(
        self,
        trained: Events,
        held: Events,
        binning: Binning,
        workers: Workers,
        loss: Loss,
        start: float,
        memory: Memory = in_memory,
    ) -> None:
        segments = [Segment(name, Side.BACKGROUND, one) for name, one in (("trained", trained), ("held", held))]
        super().__init__(segments, binning, workers, 1, memory)
        self._loss, self._first_held = loss, trained.n_rows
        self._weight: Floats = np.concatenate([trained.weight, held.weight])
        self._target: Floats = np.concatenate([one.identifier(TARGET) for one in (trained, held)])
        self._current: Floats = np.full(len(self._weight), start)

    def _residual(self, low: int, high: int) -> Floats:
        return np.asarray(self._target[low:high] - self._current[low:high])

    def _terms(self, low: int, high: int) -> tuple[Floats, Floats]:
        """Numerators w ψ and denominators of some rows."""
        residual, weight = self._residual(low, high), self._weight[low:high]
        return weight * self._loss.gradient(residual), weight * self._loss.slope(residual)

    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], out: Fixed) -> None:
        for place, (values, scale) in enumerate(zip(self._terms(low, high), scales, strict=True)):
            out[place::2] = np.rint(values * scale).astype(np.int64)

    def largest_terms(self) -> Floats:
        """Largest absolute numerator and denominator of a trained row."""
        return np.array([np.abs(values).max(initial=0.0) for values in self._terms(0, self._first_held)])

    def best_outputs(self, leaves: Sequence[int]) -> Floats:
        """Constant of each leaf with the smallest loss of its trained rows."""
        residual = self._residual(0, self._first_held)
        found = np.zeros(len(leaves))
        for i, leaf in enumerate(leaves):
            _, low, high = self._nodes[leaf][0]
            own = self._rows[low:high]
            if low < high:
                found[i] = self._loss.best_constant(residual[own], self._weight[own])
        return found

    def add(self, leaves: Sequence[int], outputs: Floats) -> None:
        """Add one output per leaf to f."""
        self._current += np.asarray(outputs)[self._number_leaves(leaves)]

    def held_loss(self) -> Floats:
        """Sum of the loss over the rows held out."""
        first, last = self._first_held, len(self._target)
        return np.atleast_1d(self._weight[first:] @ self._loss.value(self._residual(first, last)))
