"""`ShiftRows`: rows of one partition on which the relative shifts r_k = Δ_k/n of all sources are learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.data import Events
from qbdt.threads import Workers
from qbdt.training.kernels.residuals import add_outputs, shift_pairs, sum_nominal, sum_weights
from qbdt.training.profile.pair_rows import PairRows
from qbdt.training.profile.segments import ShiftSegment, variance
from qbdt.trees import Binning
from qbdt.trees.kernels import LIMBS, exact_sum
from qbdt.trees.rows import Memory, in_memory

__all__ = ["ShiftRows", "SumScales", "SumSlots"]


class SumScales(NamedTuple):
    """Scales of w, n and each n r₀ (by slot); of n f_k; and of the columns of each nominal segment."""

    first: Floats
    fitted: Floats
    columns: tuple[Floats, ...]


@dataclass(frozen=True)
class SumSlots:
    """Where the sums over a leaf's rows of one segment are: as the kernel `sum_nominal` writes them.

    Segments of variations have that of w only, so all others are sent for nominal segments alone.
    """

    n_sources: int
    n_columns: int
    n_ratios: int = 1

    weight: ClassVar = 0
    """Σ w."""
    n: ClassVar = 1
    """Σ n, n = w + w²."""

    @property
    def n_ratio(self) -> slice:
        """Σ n r₀ of every strength."""
        return slice(2, 2 + self.n_ratios)

    @property
    def fitted(self) -> slice:
        """Σ n f_k of every source."""
        return slice(2 + self.n_ratios, 2 + self.n_ratios + self.n_sources)

    @property
    def columns(self) -> slice:
        """Sums of the shifts given row by row."""
        return slice(self.fitted.stop, self.fitted.stop + self.n_columns)

    def pack(self, sums: Fixed, nominal: Sequence[int]) -> Fixed:
        """Array (leaf, number) to be sent, of sums (leaf, segment, slot)."""
        others = sums[:, list(nominal), 1:].reshape(len(sums), -1)
        return np.concatenate([sums[:, :, self.weight], others], axis=1)

    def unpack(self, sent: Fixed, n_segments: int, nominal: Sequence[int]) -> Fixed:
        """Inverse of `pack`, with zeros where nothing was sent."""
        sums = np.zeros((len(sent), n_segments, self.columns.stop), dtype=np.int64)
        sums[:, :, self.weight] = sent[:, :n_segments]
        sums[:, list(nominal), 1:] = sent[:, n_segments:].reshape(len(sent), len(nominal), -1)
        return sums


class _Nominal:
    """State of one nominal segment: f_k so far, r₀ of each strength, and shifts given row by row."""

    def __init__(self, segment: ShiftSegment, n_sources: int, n_ratios: int, memory: Memory) -> None:
        n_rows, n_columns = segment.segment.events.n_rows, len(segment.columns)
        self.current: Floats = memory("current", n_rows * n_sources, np.float64)
        self.ratio: Floats = memory("ratio", n_rows * n_ratios, np.float64)
        self.columns: Floats = memory("shift_columns", n_rows * n_columns, np.float64).reshape(n_rows, n_columns)
        for j, (_, column) in enumerate(segment.columns):
            self.columns[:, j] = column()
        self.sources = [source for source, _ in segment.columns]


class ShiftRows(PairRows):
    """Rows of all processes and variations, with their shifts and the f_k = r_k − m_k so far.

    As many segments are `held` out as are `trained` on, nominal ones first; they only follow the trees. `means` are the
    mean relative shifts m_k, `shares` gives r₀ of every strength, as (strength, event).
    """

    def __init__(
        self,
        trained: Sequence[ShiftSegment],
        held: Sequence[ShiftSegment],
        binning: Binning,
        workers: Workers,
        means: Floats,
        shares: Callable[[Events], Floats],
        n_ratios: int,
        memory: Memory = in_memory,
    ) -> None:
        segments = [*trained, *held]
        super().__init__([one.segment for one in segments], binning, workers, len(trained), memory)
        self.n_sources, self._n_ratios = len(means), n_ratios
        self._means = np.array(means)
        self._factors = [one.factors for one in segments]
        self._weight: Floats = memory("weight", self.layout.n_rows, np.float64)
        for (_, low, high), one in zip(self.layout.whole, segments, strict=True):
            self._weight[low:high] = one.segment.events.weight
        self._nominal = {
            i: _Nominal(one, self.n_sources, n_ratios, memory) for i, one in enumerate(segments) if one.segment.nominal
        }
        self._coefficients: Floats = np.zeros(self.n_sources)
        self._gram = self._integrated(held, shares)

    def _integrated(self, held: Sequence[ShiftSegment], shares: Callable[[Events], Floats]) -> Fixed:
        """Keep each r₀ of nominal rows that are held out; returns the exact sums of n f g over them, see `gram`."""
        pairs = np.triu_indices(self._n_ratios + 1)
        found = np.zeros((len(pairs[0]), LIMBS), dtype=np.int64)
        for i, one in enumerate(held):
            if one.segment.nominal:
                r, yields = shares(one.segment.events), variance(one.segment.events)
                self._nominal[self._n_trained + i].ratio[:] = r.T.ravel()
                f = [*r, np.ones(r.shape[1])]
                for j, (a, b) in enumerate(zip(*pairs, strict=True)):
                    found[j] += exact_sum(yields * (f[a] * f[b]))
        return found

    def gram(self) -> Fixed:
        """Exact sums of n f g over held-out rows, for pairs f, g of each r₀ and 1: the upper triangle, row by row."""
        return self._gram

    def direct(self, coefficients: Floats) -> None:
        """Let the next trees fit Σ_k c_k r_k."""
        self._coefficients = np.array(coefficients)  # may be read-only, as received over the network

    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], out: Fixed) -> None:
        common = float(self._factors[segment] @ self._coefficients)
        weight = self._weight[low:high]
        if segment not in self._nominal:
            out[::2] = np.rint(weight * (common * scales[0])).astype(np.int64)
            return
        state, first, k = self._nominal[segment], int(self.layout.starts[segment]), self.n_sources
        own = slice(low - first, high - first)
        columns = state.columns[own].ravel()
        current = state.current[own.start * k : own.stop * k]
        chosen = self._coefficients[state.sources]
        mean = float(self._means @ self._coefficients)
        shift_pairs(weight, columns, current, common, chosen, self._coefficients, mean, *scales, out)

    def sums(self, leaves: Sequence[int], scales: SumScales) -> Fixed:
        """Sums over the rows of each leaf, in units, as `SumSlots.pack` has them."""
        n_segments = self.layout.n_segments
        n_columns = max(len(state.sources) for state in self._nominal.values())
        slots = SumSlots(self.n_sources, n_columns, self._n_ratios)
        totals = np.zeros((len(leaves), n_segments, slots.columns.stop), dtype=np.int64)
        first, fitted = np.array(scales.first), np.array(scales.fitted)  # may be read-only, as received
        columns = {i: np.array(scales.columns[i % self._n_trained]) for i in self._nominal}

        def sum_range(label: int, low: int, high: int) -> tuple[int, Fixed]:
            segment = label % n_segments
            out = np.zeros(totals.shape[2], dtype=np.int64)
            if segment in self._nominal:
                self._sum_nominal(segment, low, high, (first, fitted, columns[segment]), out)
            else:
                out[slots.weight] = sum_weights(self._weight, self._rows, low, high, 0, first[slots.weight])
            return label, out

        for label, found in self._over(self._leaf_ranges(leaves), sum_range):
            totals[label // n_segments, label % n_segments] += found
        return slots.pack(totals, list(self._nominal))

    def add(self, leaves: Sequence[int], outputs: Floats) -> None:
        """Add one output per leaf and source to the f_k."""
        k, own = self.n_sources, np.array(outputs)

        def add_range(label: int, low: int, high: int) -> None:
            leaf, segment = divmod(label, self.layout.n_segments)
            if segment in self._nominal:
                current = self._nominal[segment].current
                add_outputs(current, k, self._rows, low, high, int(self.layout.starts[segment]), own[leaf])

        self._over(self._leaf_ranges(leaves), add_range)

    def _sum_nominal(
        self, segment: int, low: int, high: int, scales: tuple[Floats, Floats, Floats], out: Fixed
    ) -> None:
        state, start = self._nominal[segment], int(self.layout.starts[segment])
        weight = self._weight[start:]
        arrays = (weight, state.ratio, state.current, state.columns.reshape(-1))
        sum_nominal(*arrays, self._rows, low, high, start, *scales, out)
