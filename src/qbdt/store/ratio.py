"""`RatioStore`: rows on which the ratio of signal to background is learnt, by a logistic loss."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qbdt._kernels.residuals import add_outputs, logistic_loss, logistic_pairs, sum_weights
from qbdt.binning import Binning
from qbdt.dtypes import Fixed, Yields
from qbdt.store.layout import Segment, Side
from qbdt.store.pairs import PairStore, fixed_scale
from qbdt.workers import Workers

__all__ = ["RatioStore"]


class RatioStore(PairStore):
    """Nominal rows with weights, and F = ln of the ratio of densities so far.

    Signal and background are each scaled to the same sum, so F = 0 is no preference.

    Parameters
    ----------
    segments
        Signal and background processes; those to train on first, those to judge on after them.
    binning, workers
        As for `RowStore`.
    n_trained
        Number of segments to train on.
    strength
        What the weights of each side's trained rows sum to: the number of events that their statistical power is worth.
    """

    def __init__(
        self, segments: Sequence[Segment], binning: Binning, workers: Workers, n_trained: int, strength: float
    ) -> None:
        super().__init__(segments, binning, workers, n_trained)
        self._weight: Yields = np.concatenate([segment.events.weight for segment in segments])
        for part in (slice(None, n_trained), slice(n_trained, None)):
            _balance(self.layout.whole[part], self.layout.sides[part], self._weight, strength)
        self._log_ratio: Yields = np.zeros(self.layout.n_rows)
        self._scale = fixed_scale(float(np.abs(self._weight).max()), self.layout.n_rows)

    def _scales(self) -> tuple[float, float]:
        return self._scale, self._scale

    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], out: Fixed) -> None:
        is_signal = self.layout.sides[segment] is Side.SIGNAL
        logistic_pairs(self._weight[low:high], self._log_ratio[low:high], is_signal, *scales, out)

    def add(self, leaves: Sequence[int], outputs: Yields) -> None:
        """Add one output per leaf to F."""

        def add_range(label: int, low: int, high: int) -> None:
            output = outputs[label // self.layout.n_segments : label // self.layout.n_segments + 1]
            add_outputs(self._log_ratio, 1, self._rows, low, high, 0, output)

        self._over(self._leaf_ranges(leaves), add_range)

    def yields(self, leaves: Sequence[int]) -> Yields:
        """Sums of the trained rows' weights as (leaf, side)."""
        sums = np.zeros((len(leaves), len(Side)), dtype=np.int64)

        def add_range(label: int, low: int, high: int) -> tuple[int, int]:
            return label, int(sum_weights(self._weight, self._rows, low, high, 0, self._scale))

        for label, total in self._over(self._leaf_ranges(leaves), add_range):
            leaf, segment = divmod(label, self.layout.n_segments)
            if segment < self._n_trained:
                sums[leaf, self.layout.sides[segment]] += total
        return sums / self._scale

    def loss(self) -> float:
        """Logistic loss of the rows that are not trained on."""
        scale = self._scale / 64

        def of_range(segment: int, low: int, high: int) -> int:
            is_signal = self.layout.sides[segment] is Side.SIGNAL
            return int(logistic_loss(self._weight[low:high], self._log_ratio[low:high], is_signal, scale))

        return sum(self._over(self.layout.whole[self._n_trained :], of_range)) / scale


def _balance(ranges: Fixed, sides: Sequence[Side], weight: Yields, strength: float) -> None:
    """Scale the weights of each side to the same sum."""
    for side in Side:
        rows = [slice(low, high) for (_, low, high), own in zip(ranges, sides, strict=True) if own is side]
        total = math.fsum(math.fsum(weight[part]) for part in rows)  # exact: no order of rows changes it
        for part in rows:
            weight[part] *= strength / total
