"""`WeightedRows`: rows of one partition with the paper's weights.

Weights are held twice: as floats, which boosting multiplies, and as 64-bit integers, which trees add up. The floats are
kept in a range that all rows of a training agree on (`BoostedRows`), so one scale serves all trees. Further columns
of background rows are 32-bit integers; their scale follows the largest of them from tree to tree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qbdt.arrays import SUM_BITS, Columns, Fixed, Floats
from qbdt.threads import Workers, share_ranges
from qbdt.training.kernels.weights import (
    ALL_ROWS,
    boost_rows,
    drop_rows,
    quantise_columns,
    quantise_squares,
    quantise_weights,
)
from qbdt.training.partitions.rows import PartitionRows
from qbdt.trees import Binning
from qbdt.trees.kernels import add_rows, add_systematics, aligned_zeros
from qbdt.trees.rows import Memory, Segment, Side, in_memory, sum_shares


class WeightedRows(PartitionRows):
    """Binned rows of one partition, their weights, and the nodes they are in."""

    def __init__(
        self, segments: Sequence[Segment], binning: Binning, workers: Workers, memory: Memory = in_memory
    ) -> None:
        super().__init__(segments, binning, workers, memory)
        self._floats: Floats = memory("floats", self.layout.n_rows, np.float64)
        self._extra_floats: Floats = memory("extra_floats", self.layout.boosted_size, np.float64)
        self._growth: Floats = memory("growth", self.layout.growth_size, np.float64)
        self._fixed: Fixed = memory("fixed", self.layout.n_rows, np.int64)
        self._columns: Columns = memory("columns", self.layout.extra_size, np.int32)
        self._largest: Floats = np.zeros(2)  # bounds on a column and on a weight whose square is one, as loaded
        self._found: Floats = np.zeros(2)  # the largest column and square of this tree, in units
        self._growth[:] = 1.0
        self._load_weights(segments)

    def histogram(self, node: int) -> Fixed:
        """Sums of weights of a node's nominal rows for every feature and bin: `Layout.place` says where."""
        layout = self.layout
        shares = share_ranges(self._nodes[node][: layout.n_nominal], self._workers.n_threads)
        sums = np.zeros((len(shares), layout.histogram_size), dtype=np.int64)
        arguments = (self._words, self._fixed, layout.n_features, self._rows, node == 0)
        self._workers.run(add_rows, [(*arguments, share, sums[i]) for i, share in enumerate(shares)])
        return sum_shares(sums)

    def systematic_histograms(self, node: int, words: Fixed) -> Fixed:
        """Sums of all other weights of a node for some words, one row each: `Layout.place` says where."""
        layout = self.layout
        has_systematics = (layout.widths > 0) | (np.arange(layout.n_segments) >= layout.n_nominal)
        shares = share_ranges(self._nodes[node][has_systematics], self._workers.n_threads)
        sums: Fixed = aligned_zeros((len(shares), len(words), layout.systematic_size), np.int64)
        weights = (self._words, words, layout.n_features, self._fixed, self._columns)
        places = (layout.starts, layout.extra_offsets, layout.widths, layout.systematic_bases)
        arguments = (*weights, *places, self._rows, node == 0)
        self._workers.run(add_systematics, [(*arguments, share, sums[i]) for i, share in enumerate(shares)])
        return sum_shares(sums)

    def multiply(self, leaves: Sequence[int], factors: Floats) -> None:
        """Multiply the weights of each leaf's rows by its factors (one row per leaf: signal, background)."""
        layout = self.layout
        ends = np.stack([self._nodes[leaf][:, 1:] for leaf in leaves])

        def boost_share(share: Fixed) -> None:
            for segment, low, high in share:
                factor = np.ascontiguousarray(factors[:, layout.sides[segment]])
                leaf = (self._rows, ends[:, segment], factor, low, high)
                boost_rows(self._floats, 0, *leaf)
                if layout.boosted[segment]:
                    own = self._growth[layout.growth_offsets[segment] :]
                    boost_rows(own, layout.starts[segment], *leaf)

        self._workers.run(boost_share, [(share,) for share in share_ranges(layout.whole, self._workers.n_threads)])

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

    def _extra_of(self, segment: int, low: int, high: int) -> tuple[Floats, Floats, Columns]:
        """Views of the further columns of a segment's rows low … high − 1: initial floats, their growth, integers."""
        layout = self.layout
        n, before = high - low, low - int(layout.starts[segment])
        n_boosted, width = int(layout.boosted[segment]), int(layout.widths[segment])
        floats = self._extra_floats[int(layout.boosted_offsets[segment]) + before * n_boosted :]
        columns = self._columns[int(layout.extra_offsets[segment]) + before * width :]
        growth = self._growth[int(layout.growth_offsets[segment]) + before :][: n if n_boosted else 0]
        return floats[: n * n_boosted].reshape(n, n_boosted), growth, columns[: n * width].reshape(n, width)

    def count_weights(self) -> Fixed:
        """Return how many rows each side has."""
        sizes = self.layout.whole[:, 2] - self.layout.whole[:, 1]
        return np.array(
            [sum(int(n) for n, own in zip(sizes, self.layout.sides, strict=True) if own is side) for side in Side],
            dtype=np.int64,
        )

    def largest_weights(self) -> Floats:
        """Return the largest absolute weight of each side."""
        found = np.zeros(len(Side))
        for j, low, high in self.layout.whole:
            side = self.layout.sides[j]
            found[side] = max(found[side], _magnitude(self._floats[low:high]))
        return found

    def largest_columns(self) -> Floats:
        """Return the largest further column, and the largest weight whose square is one, as loaded."""
        return self._largest

    def largest_quantised(self) -> Floats:
        """Return the largest column and the largest square of this tree, in units."""
        return self._found

    def _weights_of(self, side: Side) -> list[Floats]:
        """Weights of a side, and the growth of its columns."""
        found: list[Floats] = []
        for j, low, high in self.layout.whole:
            if self.layout.sides[j] is side:
                found += [self._floats[low:high], self._extra_of(j, low, high)[1]]
        return found

    def rescale(self, factors: Floats) -> None:
        """Multiply all weights of each side by a power of two."""
        for side, factor in zip(Side, factors, strict=True):
            for weights in self._weights_of(side):
                weights *= factor

    def quantise(self, units: tuple[float, float], seed: int, threshold: int) -> Fixed:
        """Begin a tree: fixed point of all weights and further columns, and node 0 holds all rows.

        `units` are the values of one unit of a boosted column and of a squared weight; `seed` and `threshold` say which
        rows count. Returned is the sum of the absolute weights of each side, in units of 2^−SUM_BITS, whatever the draw
        of rows.
        """

        def quantise_share(share: Fixed) -> list[tuple[Side, int, int, int]]:
            return [
                (self.layout.sides[segment], *self._quantise_rows(segment, low, high, units, seed, threshold))
                for segment, low, high in share
            ]

        shares = share_ranges(self.layout.whole, self._workers.n_threads)
        found = [entry for part in self._workers.run(quantise_share, [(share,) for share in shares]) for entry in part]
        self._found = np.array([entry[2:] for entry in found], dtype=np.float64).max(axis=0)
        self._gather_rows()
        return np.array([sum(total for where, total, *_ in found if where is side) for side in Side], dtype=np.int64)

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
            first = int(self.layout.starts[segment]) - int(self.layout.firsts[segment])
            with np.errstate(over="ignore"):
                drop_rows(fixed, 1, 1, seed, threshold, low - first, high - first)
                drop_rows(columns.ravel(), width, n_boosted + square, seed, threshold, low - first, high - first)
        return int(total), int(column), int(heaviest)


def _magnitude(values: Floats) -> float:
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
