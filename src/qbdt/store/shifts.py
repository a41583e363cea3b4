"""`ShiftStore`: rows on which the relative shifts r_k = Δ_k/n of all sources are learnt together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qbdt._kernels.residuals import add_outputs, shift_pairs, sum_nominal, sum_weights
from qbdt.binning import Binning
from qbdt.dtypes import Fixed, Yields
from qbdt.store.layout import Segment, Side
from qbdt.store.pairs import PairStore, fixed_scale
from qbdt.workers import Workers

__all__ = ["LeafSums", "ShiftSegment", "ShiftStore"]


@dataclass(frozen=True, eq=False)
class ShiftSegment:
    """Rows and what they add to the shifts of the sources.

    Parameters
    ----------
    segment
        The rows. Nominal ones carry the yield n = w + w² (expected events and their MC variance); rows of variations
        only shifts.
    factors
        Per source k the a_k of a shift a_k w.
    columns
        Shifts given row by row: the source, and what makes the column.
    """

    segment: Segment
    factors: Yields
    columns: tuple[tuple[int, Callable[[], Yields]], ...] = ()


class LeafSums(NamedTuple):
    """Sums over the rows of each leaf: yields n, shifts (leaf, source), n f_k (leaf, source), signal s, and n r₀."""

    n: Yields
    shifts: Yields
    fitted: Yields
    signal: Yields
    ratio: Yields


class _Nominal:
    """State of one nominal segment: f_k so far, r₀, and shifts given row by row."""

    def __init__(self, segment: ShiftSegment, n_sources: int) -> None:
        n_rows = segment.segment.events.n_rows
        self.current: Yields = np.zeros(n_rows * n_sources)
        self.ratio: Yields = np.zeros(n_rows)
        self.columns: Yields = np.empty((n_rows, len(segment.columns)))
        for j, (_, column) in enumerate(segment.columns):
            self.columns[:, j] = column()
        self.largest: Yields = np.abs(self.columns).max(axis=0, initial=0.0)
        self.sources = [source for source, _ in segment.columns]


class ShiftStore(PairStore):
    """Rows of all processes and variations, trained on or held out, with their shifts and the f_k = r_k − m_k so far.

    Parameters
    ----------
    segments
        Those to train on first.
    binning, workers
        As for `RowStore`.
    n_trained
        Number of segments to train on.
    means
        Mean relative shift m_k of each source, which trees do not have to learn.
    """

    def __init__(
        self, segments: Sequence[ShiftSegment], binning: Binning, workers: Workers, n_trained: int, means: Yields
    ) -> None:
        super().__init__([one.segment for one in segments], binning, workers, n_trained)
        n_sources = self.n_sources = len(means)
        self._means = means
        self._factors = [one.factors for one in segments]
        self._weight: Yields = np.concatenate([one.segment.events.weight for one in segments])
        self._nominal = {i: _Nominal(one, n_sources) for i, one in enumerate(segments) if one.segment.nominal}
        self._coefficients: Yields = np.zeros(n_sources)
        self._reach: Yields = np.zeros(n_sources)
        self._largest = float(np.abs(self._weight).max())
        self._largest_n = self._largest * (1.0 + self._largest)

    def set_ratio(self, ratios: Sequence[Yields]) -> None:
        """Take r₀ of the rows of each segment that is held out, in order."""
        for segment, state in self._nominal.items():
            if segment >= self._n_trained:
                state.ratio[:] = ratios[segment - self._n_trained]

    def direct(self, coefficients: Yields) -> None:
        """Let the next trees fit Σ_k c_k r_k."""
        self._coefficients = np.ascontiguousarray(coefficients)

    def _scales(self) -> tuple[float, float]:
        n_rows = self.layout.n_rows
        size = np.abs(self._coefficients)
        fitted = self._largest_n * float(size @ (self._reach + np.abs(self._means)))
        common = max(float(np.abs(factors @ self._coefficients)) for factors in self._factors) * self._largest
        columns = max((float(size[s.sources] @ s.largest) for s in self._nominal.values()), default=0.0)
        return fixed_scale(fitted + common + columns, n_rows), fixed_scale(self._largest_n, n_rows)

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

    def sums(self, leaves: Sequence[int]) -> tuple[LeafSums, LeafSums]:
        """Sums over the leaves' trained rows, and over those held out."""
        n_segments, k = self.layout.n_segments, self.n_sources
        n_columns = max((len(s.sources) for s in self._nominal.values()), default=0)
        scales = self._sum_scales()
        totals = np.zeros((len(leaves), n_segments, 3 + k + n_columns), dtype=np.int64)

        def sum_range(label: int, low: int, high: int) -> tuple[int, Fixed]:
            segment = label % n_segments
            out = np.zeros(totals.shape[2], dtype=np.int64)
            if segment in self._nominal:
                self._sum_nominal(segment, low, high, scales, out)
            else:
                out[0] = sum_weights(self._weight, self._rows, low, high, 0, scales[0][0])
            return label, out

        for label, part in self._over(self._leaf_ranges(leaves), sum_range):
            totals[label // n_segments, label % n_segments] += part
        trained, held = range(self._n_trained), range(self._n_trained, n_segments)
        return self._collect(totals, trained, scales), self._collect(totals, held, scales)

    def add(self, leaves: Sequence[int], outputs: Yields) -> None:
        """Add one output per leaf and source to the f_k."""
        k = self.n_sources
        self._reach = self._reach + np.abs(outputs).max(axis=0)

        def add_range(label: int, low: int, high: int) -> None:
            leaf, segment = divmod(label, self.layout.n_segments)
            if segment in self._nominal:
                current = self._nominal[segment].current
                add_outputs(current, k, self._rows, low, high, int(self.layout.starts[segment]), outputs[leaf])

        self._over(self._leaf_ranges(leaves), add_range)

    def _sum_scales(self) -> tuple[Yields, Yields, dict[int, Yields]]:
        """Scales of w, n and n r₀; of n f_k; and of the columns of each nominal segment."""
        n_rows = self.layout.n_rows
        first = [fixed_scale(self._largest, n_rows)] + 2 * [fixed_scale(self._largest_n, n_rows)]
        fitted = [fixed_scale(self._largest_n * reach, n_rows) for reach in self._reach]
        columns = {
            i: np.array([fixed_scale(largest, n_rows) for largest in state.largest])
            for i, state in self._nominal.items()
        }
        return np.array(first), np.array(fitted), columns

    def _sum_nominal(
        self, segment: int, low: int, high: int, scales: tuple[Yields, Yields, dict[int, Yields]], out: Fixed
    ) -> None:
        state, start = self._nominal[segment], int(self.layout.starts[segment])
        weight = self._weight[start:]
        arrays = (weight, state.ratio, state.current, state.columns.reshape(-1))
        sum_nominal(*arrays, self._rows, low, high, start, scales[0], scales[1], scales[2][segment], out)

    def _collect(self, totals: Fixed, segments: range, scales: tuple[Yields, Yields, dict[int, Yields]]) -> LeafSums:
        """Sums of some segments, in events."""
        k = self.n_sources
        n_leaves = len(totals)
        shifts = np.zeros((n_leaves, k))
        nominal = [i for i in segments if i in self._nominal]
        for i in segments:
            weight = totals[:, i, 0] / scales[0][0]
            shifts += weight[:, None] * self._factors[i]
        for i in nominal:
            for j, source in enumerate(self._nominal[i].sources):
                shifts[:, source] += totals[:, i, 3 + k + j] / scales[2][i][j]
        own = totals[:, nominal].sum(axis=1)
        signal = [i for i in nominal if self.layout.sides[i] is Side.SIGNAL]
        return LeafSums(
            own[:, 1] / scales[0][1],
            shifts,
            own[:, 3 : 3 + k] / scales[1],
            totals[:, signal, 0].sum(axis=1) / scales[0][0],
            own[:, 2] / scales[0][2],
        )
