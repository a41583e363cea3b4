"""`RatioRows`: rows of one partition on which F is learnt, by a logistic loss, and rows that judge it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.threads import Workers
from qbdt.training.kernels.residuals import add_outputs, logistic_pairs, sum_weights
from qbdt.training.profile.pair_rows import PairRows
from qbdt.training.profile.score_rows import ScoredSegment, ScoreRows
from qbdt.training.profile.segments import ShiftSegment
from qbdt.trees import Binning
from qbdt.trees.rows import Memory, Segment, Side, in_memory


class RatioRows(PairRows):
    """Nominal rows of a partition with weights, and F = ln of the ratio of densities so far.

    The weights of trained rows are multiplied by a factor for each side, so that both have the same sum: F = 0 is no
    preference. Rows held out keep their own (`scale` is for rounding them); they are binned in the sum of the F's after
    each tree so far, which orders them as their mean does.
    """

    def __init__(
        self,
        trained: Sequence[Segment],
        held: Sequence[ShiftSegment],
        binning: Binning,
        workers: Workers,
        factors: Sequence[float],
        scale: float,
        memory: Memory = in_memory,
    ) -> None:
        segments = [*trained, *(one.segment for one in held)]
        super().__init__(segments, binning, workers, len(trained), memory)
        self._weight: Floats = memory("weight", int(self._trained[-1, 2]), np.float64)
        for (_, low, high), segment in zip(self._trained, trained, strict=True):
            np.multiply(segment.events.weight, factors[segment.side], out=self._weight[low:high])
        self._log_ratio: Floats = memory("log_ratio", self.layout.n_rows, np.float64)
        first = len(self._weight)
        self._total: Floats = memory("total", self.layout.n_rows - first, np.float64)
        ranges = zip(held, self.layout.whole[len(trained) :] - first, strict=True)
        scored = [
            ScoredSegment(i, one, self._total[low:high], np.broadcast_to(0.0, (high - low,)))
            for i, (one, (_, low, high)) in enumerate(ranges)
        ]
        self._held = ScoreRows(scored, held, (0.0,), scale, workers, memory)

    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], out: Fixed) -> None:
        is_signal = self.layout.sides[segment] is Side.SIGNAL
        logistic_pairs(self._weight[low:high], self._log_ratio[low:high], is_signal, *scales, out)

    def add(self, leaves: Sequence[int], outputs: Floats) -> None:
        """Add one output per leaf to F."""
        own = np.array(outputs)[:, None]  # may be a read-only array received over the network
        leaf_of = self._number_leaves(leaves)

        def add_range(segment: int, low: int, high: int) -> None:
            add_outputs(self._log_ratio[low:high], leaf_of[low:high], own)

        self._over(self.layout.whole, add_range)
        self._total += self._log_ratio[len(self._weight) :]

    def yields(self, leaves: Sequence[int], scale: float) -> Fixed:
        """Sums of the weights of trained rows as (leaf, side), in units."""
        sums = np.zeros((len(leaves), len(Side)), dtype=np.int64)
        leaf_of = self._number_leaves(leaves)

        def sum_range(segment: int, low: int, high: int) -> tuple[Side, Fixed]:
            own = np.zeros(len(leaves), dtype=np.int64)
            sum_weights(self._weight[low:high], leaf_of[low:high], scale, own)
            return self.layout.sides[segment], own

        for side, own in self._over(self._trained, sum_range):
            sums[:, side] += own
        return sums

    def signal_up_to(self, keys: Fixed) -> Fixed:
        """Absolute signal held out up to some keys, see `ScoreRows`."""
        return self._held.signal_up_to(keys)

    def fill(self, edges: Floats) -> Fixed:
        """Exact sums over rows held out, see `ScoreRows`."""
        return self._held.fill(edges)
