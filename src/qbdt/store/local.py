"""Rows with the paper's weights: `WeightedRows`, and `LocalStore` where these are all rows of a training.

Weights are held twice: as floats, which boosting multiplies, and as 64-bit integers, which trees add up. The floats are
kept in a range that all rows of a training agree on (`Balance`), so one scale serves all trees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qbdt._kernels.histogram import add_details, add_rows
from qbdt._kernels.weights import boost_rows, drop_rows, quantise_columns, quantise_squares, quantise_weights
from qbdt.binning import Binning
from qbdt.dtypes import SUM_BITS, Fixed, Yields
from qbdt.store.balance import ALL_ROWS, Balance
from qbdt.store.layout import Segment, Side
from qbdt.store.rows import Memory, RowStore, in_memory, joined
from qbdt.workers import Workers, share_ranges

__all__ = ["LocalStore", "WeightedRows"]


class WeightedRows(RowStore):
    """Binned rows, their weights and the nodes they are in: all rows of a training, or some of them.

    Parameters
    ----------
    segments
        What the rows are.
    binning
        Where features may be cut.
    workers
        Threads.
    memory
        Where the arrays are kept.
    """

    def __init__(
        self, segments: Sequence[Segment], binning: Binning, workers: Workers, memory: Memory = in_memory
    ) -> None:
        super().__init__(segments, binning, workers, memory)
        self._floats: Yields = memory("floats", self.layout.n_rows, np.float64)
        self._extra_floats: Yields = memory("extra_floats", self.layout.boosted_size, np.float64)
        self._growth: Yields = memory("growth", self.layout.growth_size, np.float64)
        self._fixed: Fixed = memory("fixed", self.layout.n_rows, np.int64)
        self._extra_fixed: Fixed = memory("extra_fixed", self.layout.extra_size, np.int64)
        self._asked: tuple[int, bytes, Fixed] | None = None
        self._growth[:] = 1.0
        self._load_weights(segments)

    def histogram(self, node: int) -> Fixed:
        """Sums of weights of a node's nominal rows for every feature and bin: `Layout.main` says where."""
        layout = self.layout
        shares = share_ranges(self._nodes[node][: layout.n_nominal], self._workers.n_threads)
        parts = np.zeros((len(shares), layout.histogram_size), dtype=np.int64)
        arguments = (self._words, self._fixed, layout.n_features, self._rows, node == 0)
        self._workers.run(add_rows, [(*arguments, share, parts[i]) for i, share in enumerate(shares)])
        return joined(parts)

    def details(self, node: int, features: Fixed) -> Fixed:
        """Sums of all other weights of a node for some features, one row each: `Layout.detail` says where.

        The last answer is kept: a tree's first split is judged on what fixed its units.
        """
        layout = self.layout
        asked = (node, features.tobytes())
        if self._asked is not None and self._asked[:2] == asked:
            return self._asked[2]
        with_detail = (layout.widths > 0) | (np.arange(layout.n_segments) >= layout.n_nominal)
        shares = share_ranges(self._nodes[node][with_detail], self._workers.n_threads)
        parts = np.zeros((len(shares), len(features), layout.detail_size), dtype=np.int64)
        weights = (self._words, self._fixed, self._extra_fixed)
        places = (layout.starts, layout.extra_offsets, layout.widths, layout.detail_bases)
        arguments = (*weights, *places, features, self._rows, node == 0)
        self._workers.run(add_details, [(*arguments, share, parts[i]) for i, share in enumerate(shares)])
        self._asked = (*asked, joined(parts))
        return self._asked[2]

    def multiply(self, leaves: Sequence[int], factors: Yields) -> None:
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
            self._floats[low:high] = segment.events.weight
            boosted, _, extra = self._extra_of(j, low, high)
            for c, weight in enumerate(segment.extras.boosted):
                boosted[:, c] = weight()
            for c, integers in enumerate(segment.extras.static):
                extra[:, segment.extras.size - len(segment.extras.static) + c] = integers()

    def _extra_of(self, segment: int, low: int, high: int) -> tuple[Yields, Yields, Fixed]:
        """Views of the further columns of a segment's rows low … high − 1: initial floats, their growth, integers."""
        layout = self.layout
        n, before = high - low, low - int(layout.starts[segment])
        n_boosted, width = int(layout.boosted[segment]), int(layout.widths[segment])
        floats = self._extra_floats[int(layout.boosted_offsets[segment]) + before * n_boosted :]
        fixed = self._extra_fixed[int(layout.extra_offsets[segment]) + before * width :]
        growth = self._growth[int(layout.growth_offsets[segment]) + before :][: n if n_boosted else 0]
        return floats[: n * n_boosted].reshape(n, n_boosted), growth, fixed[: n * width].reshape(n, width)

    def count_weights(self) -> Fixed:
        """Return how many weights each side has, the further columns among them."""
        counts = [sum(part.size for part in self._parts(side, with_extras=True)) for side in Side]
        return np.array(counts, dtype=np.int64)

    def largest_weights(self) -> Yields:
        """Return the largest absolute weight of each side."""
        parts = [[part for part in self._parts(side, with_extras=True) if part.size] for side in Side]
        return np.array([max((float(max(p.max(), -p.min())) for p in side), default=0.0) for side in parts])

    def _parts(self, side: Side, with_extras: bool = False) -> list[Yields]:
        """Return a side's weights with what grows with them, or with the further columns themselves."""
        found: list[Yields] = []
        for j, low, high in self.layout.whole:
            if self.layout.sides[j] is side:
                initial, growth, _ = self._extra_of(j, low, high)
                extras = (initial * growth[:, None]).ravel() if with_extras and growth.size else growth
                found += [self._floats[low:high], extras]
        return found

    def rescale(self, factors: Yields) -> None:
        """Multiply all weights of each side by a power of two."""
        for side, factor in zip(Side, factors, strict=True):
            for part in self._parts(side):
                part *= factor

    def quantise(self, seed: int, threshold: int) -> Fixed:
        """Begin a tree: fixed point of all weights, and node 0 holds all rows.

        Returns
        -------
        array
            Sum of the absolute weights of each side, in units of 2^−SUM_BITS, whatever the draw of rows.
        """

        def quantise_share(share: Fixed) -> list[tuple[Side, int]]:
            return [
                (self.layout.sides[segment], self._quantise_rows(segment, low, high, seed, threshold))
                for segment, low, high in share
            ]

        shares = share_ranges(self.layout.whole, self._workers.n_threads)
        sums = [entry for part in self._workers.run(quantise_share, [(share,) for share in shares]) for entry in part]
        self._gather_rows()
        return np.array([sum(total for where, total in sums if where is side) for side in Side], dtype=np.int64)

    def _gather_rows(self) -> None:
        super()._gather_rows()
        self._asked = None

    def _quantise_rows(self, segment: int, low: int, high: int, seed: int, threshold: int) -> int:
        """Fixed point of some rows' weights; returns the sum of absolute values of all of them, drawn or not."""
        scale, square = math.ldexp(1.0, SUM_BITS), self.layout.squares[segment]
        floats, fixed = self._floats[low:high], self._fixed[low:high]
        boosted, growth, extra = self._extra_of(segment, low, high)
        n_boosted, width = boosted.shape[1], extra.shape[1]
        total = int(quantise_weights(floats, fixed, scale))
        if n_boosted:
            total += int(quantise_columns(boosted.ravel(), growth, extra.ravel(), width, scale))
        if square:
            quantise_squares(floats, extra.ravel(), width, n_boosted, scale)
        if threshold != ALL_ROWS:
            first = int(self.layout.starts[segment]) - int(self.layout.firsts[segment])
            with np.errstate(over="ignore"):
                drop_rows(fixed, 1, 1, seed, threshold, low - first, high - first)
                drop_rows(extra.ravel(), width, n_boosted + square, seed, threshold, low - first, high - first)
        return total


class LocalStore(WeightedRows):
    """All rows of a training in this process.

    Parameters
    ----------
    segments, binning, workers, memory
        As for `WeightedRows`.
    """

    def __init__(
        self, segments: Sequence[Segment], binning: Binning, workers: Workers, memory: Memory = in_memory
    ) -> None:
        super().__init__(segments, binning, workers, memory)
        self._balance = Balance(self)

    def start_tree(self, seed: int = 0, fraction: float = 1.0) -> None:
        """Fix the weights of the next tree; node 0 holds all rows.

        Parameters
        ----------
        seed, fraction
            Share of rows that count in this tree, drawn by position; the others have weight zero.
        """
        self._balance.start_tree(self, seed, fraction)

    def boost(self, leaves: Sequence[int], factors: Yields) -> None:
        """Multiply the weights of each leaf's rows by its factors (one row per leaf: signal, background)."""
        self.multiply(leaves, self._balance.kept_small(factors))
