"""All rows on which the relative shifts r_k = Δ_k/n of all sources are learnt together, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.training.partitions.calls import Call, Hosts, Together
from qbdt.training.profile.pair_rows import PairStore, fixed_scale
from qbdt.training.profile.shift_rows import N_SUMS, ShiftSegment, SumScales
from qbdt.trees.kernels import rounded
from qbdt.trees.rows import Side

__all__ = ["LeafSums", "ShiftBounds", "ShiftStore"]


class LeafSums(NamedTuple):
    """Sums over the rows of each leaf: yields n, shifts (leaf, source), n f_k (leaf, source), signal s, and n r₀."""

    n: Floats
    shifts: Floats
    fitted: Floats
    signal: Floats
    ratio: Floats


@dataclass(frozen=True, eq=False)
class ShiftBounds:
    """What no number of any row passes: rows in all, absolute weights, and columns of each nominal segment."""

    n_rows: int
    weight: float
    columns: tuple[Floats, ...]


class ShiftStore(PairStore):
    """Rows of all processes and variations, trained on or held out.

    Parameters
    ----------
    hosts
        What holds their partitions: `ShiftRows`.
    segments
        The segments, nominal ones first; they may be those of no rows. There are as many that are held out.
    means
        Mean relative shift m_k of each source, which trees do not have to learn.
    bounds
        Bounds on the rows' numbers.
    """

    def __init__(self, hosts: Hosts, segments: Sequence[ShiftSegment], means: Floats, bounds: ShiftBounds) -> None:
        super().__init__(hosts)
        self._segments = segments
        self._nominal = [i for i, one in enumerate(segments) if one.segment.nominal]
        self._signal = [i for i in self._nominal if segments[i].segment.side is Side.SIGNAL]
        self._sources = [[source for source, _ in segments[i].columns] for i in self._nominal]
        self._means = means
        self._bounds = bounds
        self._largest_n = bounds.weight * (1.0 + bounds.weight)
        self._coefficients: Floats = np.zeros(len(means))
        self._reach: Floats = np.zeros(len(means))

    def direct(self, coefficients: Floats) -> None:
        """Let the next trees fit Σ_k c_k r_k."""
        self._coefficients = np.ascontiguousarray(coefficients)
        self._tell("direct", self._coefficients)

    def gram(self) -> Floats:
        """∫ n f g over the events held out, for f and g of r₀ and a constant."""
        squares, products, ones = rounded(self._ask(Call("gram", (), Together.SUM))[0])
        return np.array([[squares, products], [products, ones]])

    def _scales(self) -> tuple[float, float]:
        bounds, size = self._bounds, np.abs(self._coefficients)
        fitted = self._largest_n * float(size @ (self._reach + np.abs(self._means)))
        common = max(float(np.abs(one.factors @ self._coefficients)) for one in self._segments) * bounds.weight
        columns = max(float(size[own] @ most) for own, most in zip(self._sources, bounds.columns, strict=True))
        return (
            fixed_scale(fitted + common + columns, bounds.n_rows),
            fixed_scale(self._largest_n, bounds.n_rows),
        )

    def sums(self, leaves: Sequence[int]) -> tuple[LeafSums, LeafSums]:
        """Sums over the leaves' trained rows, and over those held out."""
        scales = self._sum_scales()
        found = self._ask(Call("sums", (tuple(leaves), scales), Together.SUM))[0]
        n_segments, n_nominal = 2 * len(self._segments), 2 * len(self._nominal)
        weights = found[:, :n_segments].reshape(len(leaves), 2, -1)
        nominal = found[:, n_segments:].reshape(len(leaves), 2, n_nominal // 2, -1)
        trained, held = (self._collect(weights[:, i], nominal[:, i], scales) for i in range(2))
        return trained, held

    def add(self, leaves: Sequence[int], outputs: Floats) -> None:
        """Add one output per leaf and source to the f_k."""
        self._reach = self._reach + np.abs(outputs).max(axis=0)
        self._tell("add", tuple(leaves), outputs)

    def _sum_scales(self) -> SumScales:
        n_rows = self._bounds.n_rows
        of_n = fixed_scale(self._largest_n, n_rows)
        first = np.array([fixed_scale(self._bounds.weight, n_rows), of_n, of_n])
        fitted = np.array([fixed_scale(self._largest_n * reach, n_rows) for reach in self._reach])
        columns = [np.array([fixed_scale(one, n_rows) for one in most]) for most in self._bounds.columns]
        return SumScales(first, fitted, tuple(columns))

    def _collect(self, weights: Fixed, nominal: Fixed, scales: SumScales) -> LeafSums:
        """Sums in events, from integers (leaf, segment) and (leaf, nominal segment, what is summed)."""
        k = len(self._means)
        shifts = np.zeros((len(weights), k))
        for i, one in enumerate(self._segments):
            shifts += (weights[:, i] / scales.first[0])[:, None] * one.factors
        for i, own in enumerate(self._sources):
            for j, source in enumerate(own):
                shifts[:, source] += nominal[:, i, N_SUMS + k + j] / scales.columns[i][j]
        own = nominal.sum(axis=1)
        return LeafSums(
            own[:, 0] / scales.first[1],
            shifts,
            own[:, N_SUMS : N_SUMS + k] / scales.fitted,
            weights[:, self._signal].sum(axis=1) / scales.first[0],
            own[:, 1] / scales.first[2],
        )
