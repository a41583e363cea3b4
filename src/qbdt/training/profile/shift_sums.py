"""`ShiftSums`: sums over all rows on which the relative shifts r_k = Δ_k/n are learnt, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.training.partitions.protocol import Partitions, total
from qbdt.training.profile.pair_rows import fixed_scale
from qbdt.training.profile.segments import ShiftSegment, join_strengths, sum_signals
from qbdt.training.profile.shift_rows import ShiftRows, SumScales, SumSlots
from qbdt.trees.kernels import round_sums


class LeafSums(NamedTuple):
    """Sums over the rows of each leaf: yields n, shifts (leaf, source), n f_k (leaf, source), signal s, and n r₀.

    With several strengths the last two are (strength, leaf).
    """

    n: Floats
    shifts: Floats
    fitted: Floats
    signal: Floats
    ratio: Floats


@dataclass(frozen=True, eq=False)
class ShiftBounds:
    """Upper bounds: rows in all, absolute weights, and columns of each nominal segment."""

    n_rows: int
    weight: float
    columns: tuple[Floats, ...]


class ShiftSums:
    """Rows of all processes and variations, trained on or held out, and the scales that keep their sums exact.

    `rows` are partitions of `ShiftRows`; `segments`, nominal ones first, may be those of no rows, and as many are held
    out; `signals` are the numbers of those that each strength multiplies. Trees need not learn the mean relative shifts
    m_k, `means`.
    """

    def __init__(
        self,
        rows: Partitions,
        segments: Sequence[ShiftSegment],
        signals: Sequence[Sequence[int]],
        means: Floats,
        bounds: ShiftBounds,
    ) -> None:
        self.rows = rows
        self._segments, self._signals = segments, signals
        self._nominal = [i for i, one in enumerate(segments) if one.segment.nominal]
        n_columns = max(len(segments[i].columns) for i in self._nominal)
        self._slots = SumSlots(len(means), n_columns, len(signals))
        self.means = means
        self._bounds = bounds
        self._largest_n = bounds.weight * (1.0 + bounds.weight)
        self._coefficients: Floats = np.zeros(len(means))
        self._reach: Floats = np.zeros(len(means))  # bounds on |f_k| so far

    def direct(self, coefficients: Floats) -> None:
        """Let the next trees fit Σ_k c_k r_k."""
        self._coefficients = np.ascontiguousarray(coefficients)
        self.rows.tell(ShiftRows.direct, self._coefficients)

    def gram(self) -> Floats:
        """∫ n f g over the events held out, for f and g of each r₀ and a constant."""
        found = np.zeros((len(self._signals) + 1,) * 2)
        found[np.triu_indices_from(found)] = round_sums(self.rows.ask(total(ShiftRows.gram))[0])
        return np.asarray(found + np.triu(found, 1).T)

    def pair_scales(self) -> tuple[float, float]:
        """Scales of Σ_k c_k (Δ_k − n (m_k + f_k)) and of n, from bounds on both."""
        bounds, size = self._bounds, np.abs(self._coefficients)
        fitted = self._largest_n * float(size @ (self._reach + np.abs(self.means)))
        common = max(float(np.abs(one.factors @ self._coefficients)) for one in self._segments) * bounds.weight
        own = [[source for source, _ in self._segments[i].columns] for i in self._nominal]
        columns = max(float(size[sources] @ most) for sources, most in zip(own, bounds.columns, strict=True))
        return (
            fixed_scale(fitted + common + columns, bounds.n_rows),
            fixed_scale(self._largest_n, bounds.n_rows),
        )

    def sums(self, leaves: Sequence[int]) -> tuple[LeafSums, LeafSums]:
        """Sums over the leaves' trained rows, and over those held out."""
        scales, n = self._sum_scales(), len(self._segments)
        nominal = [*self._nominal, *(n + i for i in self._nominal)]  # trained segments, then those held out
        sent = self.rows.ask(total(ShiftRows.sums, tuple(leaves), scales))[0]
        sums = self._slots.unpack(sent, 2 * n, nominal)
        return self._collect(sums[:, :n], scales), self._collect(sums[:, n:], scales)

    def add(self, leaves: Sequence[int], outputs: Floats) -> None:
        """Add one output per leaf and source to the f_k."""
        self._reach = self._reach + np.abs(outputs).max(axis=0)
        self.rows.tell(ShiftRows.add, tuple(leaves), outputs)

    def _sum_scales(self) -> SumScales:
        n_rows = self._bounds.n_rows
        of_n = fixed_scale(self._largest_n, n_rows)
        ratios = [of_n] * len(self._signals)  # r₀ ≤ 1
        first = np.array([fixed_scale(self._bounds.weight, n_rows), of_n, *ratios])
        fitted = np.array([fixed_scale(self._largest_n * reach, n_rows) for reach in self._reach])
        columns = [np.array([fixed_scale(one, n_rows) for one in most]) for most in self._bounds.columns]
        return SumScales(first, fitted, tuple(columns))

    def _collect(self, sums: Fixed, scales: SumScales) -> LeafSums:
        """Sums in events, from integers (leaf, segment, slot)."""
        slots = self._slots
        weights = sums[:, :, slots.weight]
        # ∫ Δ_k = Σ_segments a_k Σ w: variations with their sign, nominal rows with −1 or a normalisation's size …
        shifts = np.zeros((len(sums), slots.n_sources))
        for i, one in enumerate(self._segments):
            shifts += (weights[:, i] / scales.first[slots.weight])[:, None] * one.factors
        # … + the sums of columns, for sources given as weights of the nominal rows
        for i, scale in zip(self._nominal, scales.columns, strict=True):
            columns = sums[:, i, slots.columns]
            for j, (source, _) in enumerate(self._segments[i].columns):
                shifts[:, source] += columns[:, j] / scale[j]
        nominal = sums[:, self._nominal].sum(axis=1)
        return LeafSums(
            nominal[:, slots.n] / scales.first[slots.n],
            shifts,
            nominal[:, slots.fitted] / scales.fitted,
            sum_signals(weights.T, self._signals) / scales.first[slots.weight],
            join_strengths((nominal[:, slots.n_ratio] / scales.first[slots.n_ratio]).T),
        )
