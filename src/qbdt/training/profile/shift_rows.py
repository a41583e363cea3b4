"""`ShiftRows`: rows of one partition on which the relative shifts r_k = Δ_k/n of all sources are learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats, Rows
from qbdt.data import Events
from qbdt.threads import Workers
from qbdt.training.kernels.residuals import add_outputs, shift_pairs, sum_nominal, sum_weights
from qbdt.training.profile.pair_rows import PairRows
from qbdt.training.profile.segments import ShiftSegment, variance
from qbdt.trees import Binning
from qbdt.trees.kernels import exact_sum
from qbdt.trees.rows import Memory, in_memory


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


def sum_products(events: Events, ratio: Floats) -> Fixed:
    """Exact sums of n f g over events, for pairs f, g of each r₀ and 1: the upper triangle, row by row."""
    f, yields = [*ratio, np.ones(events.n_rows)], variance(events)
    pairs = zip(*np.triu_indices(len(f)), strict=True)
    return np.array([exact_sum(yields * (f[a] * f[b])) for a, b in pairs])


class _RowNumbers(NamedTuple):
    """Numbers of some rows of a nominal segment, flat: f_k so far, r₀ of each strength, shifts given row by row."""

    current: Floats
    ratio: Floats
    columns: Floats


class _Nominal:
    """State of one nominal segment: f_k so far, r₀ of each strength, and shifts given row by row."""

    def __init__(self, segment: ShiftSegment, n_sources: int, n_ratios: int, memory: Memory) -> None:
        n_rows, n_columns = segment.segment.events.n_rows, len(segment.columns)
        self.current: Floats = memory("current", n_rows * n_sources, np.float64)
        self.ratio: Floats = memory("ratio", n_rows * n_ratios, np.float64)
        self.columns: Floats = memory("shift_columns", n_rows * n_columns, np.float64)
        for j, (_, column) in enumerate(segment.columns):
            self.columns.reshape(n_rows, n_columns)[:, j] = column()
        self.sources = [source for source, _ in segment.columns]
        self._widths = (n_sources, n_ratios, n_columns)

    def of_rows(self, first: int, count: int) -> _RowNumbers:
        """Numbers of some rows."""
        arrays = zip((self.current, self.ratio, self.columns), self._widths, strict=True)
        return _RowNumbers(*(one[first * width : (first + count) * width] for one, width in arrays))


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
        self._gram = self._integrate(held, shares)

    def _integrate(self, held: Sequence[ShiftSegment], shares: Callable[[Events], Floats]) -> Fixed:
        """Keep each r₀ of nominal rows that are held out; returns the exact sums of n f g over them, see `gram`."""
        found = []
        for i, one in enumerate(held):
            if one.segment.nominal:
                ratio = shares(one.segment.events)
                self._nominal[self._n_trained + i].ratio[:] = ratio.T.ravel()
                found.append(sum_products(one.segment.events, ratio))
        return np.asarray(np.sum(found, axis=0))

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
        own, chosen = self._of_rows(segment, low, high), self._coefficients[self._nominal[segment].sources]
        mean = float(self._means @ self._coefficients)
        shift_pairs(weight, own.columns, own.current, common, chosen, self._coefficients, mean, *scales, out)

    def sums(self, leaves: Sequence[int], scales: SumScales) -> Fixed:
        """Sums over the rows of each leaf, in units, as `SumSlots.pack` has them."""
        n_segments = self.layout.n_segments
        n_columns = max(len(state.sources) for state in self._nominal.values())
        slots = SumSlots(self.n_sources, n_columns, self._n_ratios)
        totals = np.zeros((n_segments, len(leaves), slots.columns.stop), dtype=np.int64)
        first, fitted = np.array(scales.first), np.array(scales.fitted)  # may be read-only, as received
        columns = {i: np.array(scales.columns[i % self._n_trained]) for i in self._nominal}
        leaf_of = self._number_leaves(leaves)

        def sum_range(segment: int, low: int, high: int) -> tuple[int, Fixed]:
            out = np.zeros(totals.shape[1:], dtype=np.int64)
            if segment in self._nominal:
                of_segment = (first, fitted, columns[segment])
                self._sum_nominal(segment, low, high, leaf_of[low:high], of_segment, out)
            else:
                weights = np.zeros(len(leaves), dtype=np.int64)
                sum_weights(self._weight[low:high], leaf_of[low:high], first[slots.weight], weights)
                out[:, slots.weight] = weights
            return segment, out

        for segment, found in self._over(self.layout.whole, sum_range):
            totals[segment] += found
        return slots.pack(totals.transpose(1, 0, 2), list(self._nominal))

    def add(self, leaves: Sequence[int], outputs: Floats) -> None:
        """Add one output per leaf and source to the f_k."""
        own, leaf_of = np.array(outputs), self._number_leaves(leaves)

        def add_range(segment: int, low: int, high: int) -> None:
            if segment in self._nominal:
                add_outputs(self._of_rows(segment, low, high).current, leaf_of[low:high], own)

        self._over(self.layout.whole, add_range)

    def _sum_nominal(
        self, segment: int, low: int, high: int, leaf_of: Rows, scales: tuple[Floats, Floats, Floats], out: Fixed
    ) -> None:
        own = self._of_rows(segment, low, high)
        sum_nominal(self._weight[low:high], own.ratio, own.current, own.columns, leaf_of, *scales, out)

    def _of_rows(self, segment: int, low: int, high: int) -> _RowNumbers:
        return self._nominal[segment].of_rows(low - int(self.layout.starts[segment]), high - low)
