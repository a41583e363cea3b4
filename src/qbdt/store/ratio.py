"""`RatioStore`: rows on which the ratio of signal to background is learnt, by a logistic loss."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qbdt._kernels.residuals import add_outputs, logistic_pairs, sum_weights
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
        Signal and background processes.
    binning, workers
        As for `RowStore`.
    strength
        What the weights of each side sum to: the number of events that their statistical power is worth.
    """

    def __init__(self, segments: Sequence[Segment], binning: Binning, workers: Workers, strength: float) -> None:
        super().__init__(segments, binning, workers, len(segments))
        self._weight = _balanced(segments, strength)
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
        """Sums of weights as (leaf, side)."""
        sums = np.zeros((len(leaves), len(Side)), dtype=np.int64)

        def add_range(label: int, low: int, high: int) -> tuple[int, int]:
            return label, int(sum_weights(self._weight, self._rows, low, high, 0, self._scale))

        for label, total in self._over(self._leaf_ranges(leaves), add_range):
            leaf, segment = divmod(label, self.layout.n_segments)
            sums[leaf, self.layout.sides[segment]] += total
        return sums / self._scale


def _balanced(segments: Sequence[Segment], strength: float) -> Yields:
    """Weights of all rows, with those of each side scaled to the same sum."""
    weights = [np.array(segment.events.weight) for segment in segments]
    for side in Side:
        own = [weight for weight, segment in zip(weights, segments, strict=True) if segment.side is side]
        total = math.fsum(math.fsum(weight) for weight in own)  # exact: no order of rows changes it
        for weight in own:
            weight *= strength / total
    return np.concatenate(weights)
