"""Rows on which the ratio of signal to background is learnt, by a logistic loss.

`RatioRows` are those of one partition, `RatioStore` asks all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbdt._kernels.residuals import add_outputs, logistic_pairs, sum_weights
from qbdt.binning import Binning
from qbdt.dtypes import Fixed, Yields
from qbdt.store.calls import Call, Hosts, Together
from qbdt.store.layout import Segment, Side
from qbdt.store.pairs import PairRows, PairStore
from qbdt.store.rows import Memory, in_memory
from qbdt.workers import Workers

__all__ = ["RatioRows", "RatioStore"]


class RatioRows(PairRows):
    """Nominal rows of a partition with weights, and F = ln of the ratio of densities so far.

    Parameters
    ----------
    segments
        Signal and background processes.
    binning, workers, memory
        As for `RowStore`.
    factors
        What the weights of each side are multiplied by, so that both have the same sum: F = 0 is no preference.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        binning: Binning,
        workers: Workers,
        factors: Sequence[float],
        memory: Memory = in_memory,
    ) -> None:
        super().__init__(segments, binning, workers, len(segments), memory)
        self._weight: Yields = memory("weight", self.layout.n_rows, np.float64)
        self._log_ratio: Yields = memory("log_ratio", self.layout.n_rows, np.float64)
        for (_, low, high), segment in zip(self.layout.whole, segments, strict=True):
            np.multiply(segment.events.weight, factors[segment.side], out=self._weight[low:high])

    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], out: Fixed) -> None:
        is_signal = self.layout.sides[segment] is Side.SIGNAL
        logistic_pairs(self._weight[low:high], self._log_ratio[low:high], is_signal, *scales, out)

    def add(self, leaves: Sequence[int], outputs: Yields) -> None:
        """Add one output per leaf to F."""
        own = np.array(outputs)  # may have travelled

        def add_range(label: int, low: int, high: int) -> None:
            leaf = label // self.layout.n_segments
            add_outputs(self._log_ratio, 1, self._rows, low, high, 0, own[leaf : leaf + 1])

        self._over(self._leaf_ranges(leaves), add_range)

    def yields(self, leaves: Sequence[int], scale: float) -> Fixed:
        """Sums of weights as (leaf, side), in units."""
        sums = np.zeros((len(leaves), len(Side)), dtype=np.int64)

        def add_range(label: int, low: int, high: int) -> tuple[int, int]:
            return label, int(sum_weights(self._weight, self._rows, low, high, 0, scale))

        for label, total in self._over(self._leaf_ranges(leaves), add_range):
            leaf, segment = divmod(label, self.layout.n_segments)
            sums[leaf, self.layout.sides[segment]] += total
        return sums


class RatioStore(PairStore):
    """All nominal rows of a training.

    Parameters
    ----------
    hosts
        What holds their partitions: `RatioRows`.
    scale
        What weights are multiplied by before they are rounded, see `fixed_scale`.
    """

    def __init__(self, hosts: Hosts, scale: float) -> None:
        super().__init__(hosts)
        self._scale = scale

    def _scales(self) -> tuple[float, float]:
        return self._scale, self._scale

    def add(self, leaves: Sequence[int], outputs: Yields) -> None:
        """Add one output per leaf to F."""
        self._tell("add", tuple(leaves), outputs)

    def yields(self, leaves: Sequence[int]) -> Yields:
        """Sums of weights as (leaf, side)."""
        return self._ask(Call("yields", (tuple(leaves), self._scale), Together.SUM))[0] / self._scale
