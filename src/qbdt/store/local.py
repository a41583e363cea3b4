"""`LocalStore`: all rows of a training in this process.

Weights are held twice: as floats, which boosting multiplies, and as 64-bit integers, which trees add up. The floats are
kept, by powers of two, such that the absolute weights of each side sum to at most one, so one scale serves all trees.
Further columns of background rows are 32-bit integers; their scale follows the largest of them from tree to tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qbdt._kernels.histogram import add_details, add_rows
from qbdt._kernels.lanes import aligned_zeros
from qbdt._kernels.weights import boost_rows, drop_rows, quantise_columns, quantise_squares, quantise_weights
from qbdt.binning import Binning
from qbdt.dtypes import COLUMN_BITS, SUM_BITS, Columns, Fixed, Yields
from qbdt.errors import DataError
from qbdt.store.layout import Segment, Side
from qbdt.store.rows import RowStore, joined
from qbdt.workers import Workers, share_ranges

__all__ = ["LocalStore"]

ALL_ROWS = -1
"""Subsample threshold that takes every row."""

LEAST_SUM = 2.0**-4
"""Where a side's absolute weights sum to less than this (at most one), they are scaled up, so that no bits are lost."""


class LocalStore(RowStore):
    """Binned rows, their weights and the nodes they are in.

    Parameters
    ----------
    segments
        What the rows are.
    binning
        Where features may be cut.
    workers
        Threads.
    """

    def __init__(self, segments: Sequence[Segment], binning: Binning, workers: Workers) -> None:
        super().__init__(segments, binning, workers)
        self._floats: Yields = np.empty(self.layout.n_rows)
        self._extra_floats: Yields = np.empty(self.layout.boosted_size)
        self._growth: Yields = np.ones(self.layout.growth_size)
        self._fixed: Fixed = np.empty(self.layout.n_rows, dtype=np.int64)
        self._columns: Columns = aligned_zeros((self.layout.extra_size,), np.int32)
        self._largest: Yields = np.zeros(2)  # bounds on a column and on a weight whose square is one
        self._found: Yields = np.zeros(2)  # the largest column and square of this tree, in units
        self._sums = dict.fromkeys(Side, 0.0)
        self._load_weights(segments)

    def start_tree(self, seed: int = 0, fraction: float = 1.0) -> None:
        """Fix the weights of the next tree; node 0 holds all rows.

        Parameters
        ----------
        seed, fraction
            Share of rows that count in this tree, drawn by position; the others have weight zero.
        """
        threshold = ALL_ROWS if fraction >= 1 else int(fraction * 2**53)
        self._quantise(seed, threshold)
        while min(self._sums.values()) < LEAST_SUM:
            self._rescale({side: total or self._bound(side) for side, total in self._sums.items()})
            self._quantise(seed, threshold)
        self._gather_rows()

    def histogram(self, node: int) -> Fixed:
        """Sums of weights of a node's nominal rows for every feature and bin: `Layout.main` says where."""
        layout = self.layout
        shares = share_ranges(self._nodes[node][: layout.n_nominal], self._workers.n_threads)
        parts = np.zeros((len(shares), layout.histogram_size), dtype=np.int64)
        arguments = (self._words, self._fixed, layout.n_features, self._rows, node == 0)
        self._workers.run(add_rows, [(*arguments, share, parts[i]) for i, share in enumerate(shares)])
        return joined(parts)

    def details(self, node: int, words: Fixed) -> Fixed:
        """Sums of all other weights of a node for some words, one row each: `Layout.detail` says where."""
        layout = self.layout
        with_detail = (layout.widths > 0) | (np.arange(layout.n_segments) >= layout.n_nominal)
        shares = share_ranges(self._nodes[node][with_detail], self._workers.n_threads)
        parts: Fixed = aligned_zeros((len(shares), len(words), layout.detail_size), np.int64)
        weights = (self._words, words, layout.n_features, self._fixed, self._columns)
        places = (layout.starts, layout.extra_offsets, layout.widths, layout.detail_bases)
        arguments = (*weights, *places, self._rows, node == 0)
        self._workers.run(add_details, [(*arguments, share, parts[i]) for i, share in enumerate(shares)])
        return joined(parts)

    def boost(self, leaves: Sequence[int], factors: Yields) -> None:
        """Multiply the weights of each leaf's rows by its factors (one row per leaf: signal, background)."""
        layout = self.layout
        ends = np.stack([self._nodes[leaf][:, 1:] for leaf in leaves])
        scaled = factors * [self._grown(side, float(factors[:, side].max())) for side in Side]

        def boost_share(share: Fixed) -> None:
            for segment, low, high in share:
                factor = np.ascontiguousarray(scaled[:, layout.sides[segment]])
                leaf = (self._rows, ends[:, segment], factor, low, high)
                boost_rows(self._floats, 0, *leaf)
                if layout.boosted[segment]:
                    own = self._growth[layout.growth_offsets[segment] :]
                    boost_rows(own, layout.starts[segment], *leaf)

        self._workers.run(boost_share, [(share,) for share in share_ranges(layout.whole, self._workers.n_threads)])
        found = (self._found + 0.5 * (self._found > 0)) * self.units
        self._largest = np.array([found[0], math.sqrt(found[1])]) * scaled[:, Side.BACKGROUND].max()

    @property
    def units(self) -> tuple[float, float]:
        """Value of one unit of a boosted column and of a squared weight in this tree; a weight's is 2^−SUM_BITS."""
        column, weight = (math.frexp(largest)[1] for largest in self._largest)
        return math.ldexp(1.0, column - COLUMN_BITS), math.ldexp(1.0, 2 * weight - COLUMN_BITS)

    def _grown(self, side: Side, largest: float) -> float:
        """Return the power of two that keeps a side's absolute weights below one when all grow by at most `largest`."""
        return math.ldexp(1.0, -math.frexp(self._sums[side] * largest)[1])

    def _load_weights(self, segments: Sequence[Segment]) -> None:
        for (j, low, high), segment in zip(self.layout.whole, segments, strict=True):
            weights = self._floats[low:high]
            weights[:] = segment.events.weight
            boosted, _, columns = self._extra_of(j, low, high)
            for c, change in enumerate(segment.extras.boosted):
                boosted[:, c] = change()
                self._largest[0] = max(self._largest[0], _magnitude(boosted[:, c]))
            for c, integers in enumerate(segment.extras.static):
                columns[:, segment.extras.size - len(segment.extras.static) + c] = integers()
            if segment.extras.square:
                self._largest[1] = max(self._largest[1], _magnitude(weights))
        self._rescale({side: self._bound(side) for side in Side})

    def _extra_of(self, segment: int, low: int, high: int) -> tuple[Yields, Yields, Columns]:
        """Views of the further columns of a segment's rows low … high − 1: initial floats, their growth, integers."""
        layout = self.layout
        n, before = high - low, low - int(layout.starts[segment])
        n_boosted, width = int(layout.boosted[segment]), int(layout.widths[segment])
        floats = self._extra_floats[int(layout.boosted_offsets[segment]) + before * n_boosted :]
        columns = self._columns[int(layout.extra_offsets[segment]) + before * width :]
        growth = self._growth[int(layout.growth_offsets[segment]) + before :][: n if n_boosted else 0]
        return floats[: n * n_boosted].reshape(n, n_boosted), growth, columns[: n * width].reshape(n, width)

    def _bound(self, side: Side) -> float:
        """Return what the absolute weights of a side cannot pass: rows × largest, which no order of rows changes."""
        parts = [self._floats[low:high] for j, low, high in self.layout.whole if self.layout.sides[j] is side]
        return sum(part.size for part in parts) * max(map(_magnitude, parts), default=0.0)

    def _parts(self, side: Side) -> list[Yields]:
        """Return a side's weights with what grows with them."""
        found: list[Yields] = []
        for j, low, high in self.layout.whole:
            if self.layout.sides[j] is side:
                found += [self._floats[low:high], self._extra_of(j, low, high)[1]]
        return found

    def _rescale(self, sums: dict[Side, float]) -> None:
        """Bring the absolute sum of each side to between a half and one, by a power of two."""
        for side, total in sums.items():
            if not 0 < total < math.inf:
                raise DataError(f"the absolute weights of the {side.name.lower()} sum to {total}: cannot be trained on")
            self._sums[side] = total
            factor = self._grown(side, 1.0)
            for part in self._parts(side):
                part *= factor
            if side is Side.BACKGROUND:
                self._largest *= factor

    def _quantise(self, seed: int, threshold: int) -> None:
        """Fix all weights and further columns; note the sums of both sides and the largest of the columns."""
        units = self.units

        def quantise_share(share: Fixed) -> list[tuple[Side, int, int, int]]:
            return [
                (self.layout.sides[segment], *self._quantise_rows(segment, low, high, units, seed, threshold))
                for segment, low, high in share
            ]

        shares = share_ranges(self.layout.whole, self._workers.n_threads)
        found = [entry for part in self._workers.run(quantise_share, [(share,) for share in shares]) for entry in part]
        for side in Side:
            self._sums[side] = math.ldexp(sum(total for where, total, *_ in found if where is side), -SUM_BITS)
        self._found = np.array([entry[2:] for entry in found], dtype=np.float64).max(axis=0)

    def _quantise_rows(
        self, segment: int, low: int, high: int, units: tuple[float, float], seed: int, threshold: int
    ) -> tuple[int, int, int]:
        """Fixed point of some rows; returns the sum of their absolute weights, the largest column and square."""
        square = self.layout.squares[segment]
        floats, fixed = self._floats[low:high], self._fixed[low:high]
        boosted, growth, columns = self._extra_of(segment, low, high)
        n_boosted, width = boosted.shape[1], columns.shape[1]
        total = quantise_weights(floats, fixed, math.ldexp(1.0, SUM_BITS))
        column = quantise_columns(boosted.ravel(), growth, columns.ravel(), width, 1 / units[0]) if n_boosted else 0
        heaviest = quantise_squares(floats, columns.ravel(), width, n_boosted, 1 / units[1]) if square else 0
        if threshold != ALL_ROWS:
            first = int(self.layout.starts[segment])
            with np.errstate(over="ignore"):
                drop_rows(fixed, 1, 1, seed, threshold, low - first, high - first)
                drop_rows(columns.ravel(), width, n_boosted + square, seed, threshold, low - first, high - first)
        return int(total), int(column), int(heaviest)


def _magnitude(values: Yields) -> float:
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
