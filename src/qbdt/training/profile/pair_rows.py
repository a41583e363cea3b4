"""`PairRows`: rows with a numerator and a denominator each, and how the next tree of a sum is grown on them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from qbdt.arrays import BINS, SUM_BITS, Codes, Fixed, Floats, Indices, Nodes, Rows, Words
from qbdt.threads import LIGHT_ROWS_PER_SHARE, Workers, share_ranges
from qbdt.training.device_growth import DeviceGrowth, grow_pairs
from qbdt.training.grown_records import PairJudge, make_pair_tree
from qbdt.training.inputs import draw_features, draw_rows
from qbdt.training.kernels.growth import N_FIELDS, NodeRows, PairRules, grow_pair_tree
from qbdt.training.kernels.pairs import RowWords, add_pairs
from qbdt.training.kernels.residuals import number_leaves
from qbdt.training.kernels.weights import ALL_ROWS, drop_rows
from qbdt.training.partitions.protocol import Call, Partitions
from qbdt.training.partitions.rows import DevicePartitionRows, PartitionRows
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.settings import Settings
from qbdt.trees import Binning
from qbdt.trees.growth import Grown, LeafGrowth, TreeGrower
from qbdt.trees.rows import Memory, Segment, in_memory, sum_shares

Result = TypeVar("Result")

STEP = 0.2
"""Share of a tree's best output that is added to a sum, for a learning rate of one. It was 0.1 until measured
on the physics benchmark (P2 and P3)."""

MOST_BYTES = 1 << 28
"""Most memory for the histograms of a tree that grows in one call: 256 MB, those of 500 leaves and 128 features."""


def fixed_scale(largest: float, n_rows: int) -> float:
    """Power of two by which numbers of at most this size are multiplied, so that no sum of `n_rows` passes 2^61.

    Examples
    --------
    >>> fixed_scale(1.0, 1) == 2.0**60, fixed_scale(0.0, 5)
    (True, 1.0)
    """
    bound = largest * n_rows
    return math.ldexp(1.0, SUM_BITS - math.frexp(bound)[1]) if bound > 0 else 1.0


class PairRows(PartitionRows, ABC):
    """Binned rows of a partition; the first `n_trained` segments are trained on, the others only follow the trees."""

    def __init__(
        self,
        segments: Sequence[Segment],
        binning: Binning,
        workers: Workers,
        n_trained: int,
        memory: Memory = in_memory,
    ) -> None:
        super().__init__(segments, binning, workers, memory)
        self._n_trained = n_trained
        self._trained = self.layout.whole[:n_trained]
        self._pairs: Fixed = memory("pairs", 2 * int(self._trained[-1, 2]), np.int64)
        self._room: Fixed = np.empty((0, 0), dtype=np.int64)  # for histograms of nodes
        self._codes: Codes | None = None  # of each feature, where trees grow in one call
        # Leaves whose places are in `_scratch`, where no other partition has the same memory for it
        self._numbered: tuple[int, ...] = ()
        self._keeps_numbers = memory is in_memory

    @abstractmethod
    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], out: Fixed) -> None:
        """Write the pairs of some trained rows."""

    def begin_tree(self, scales: tuple[float, float], seed: int, threshold: int) -> None:
        """Fix the pairs of the next tree; node 0 holds all rows.

        Numerators and denominators are multiplied by `scales`. Rows are drawn by position; others have pairs of zero.
        """

        def fill(segment: int, low: int, high: int) -> None:
            out = self._pairs[2 * low : 2 * high]
            self._fill_pairs(segment, low, high, scales, out)
            if threshold != ALL_ROWS:
                first = int(self.layout.starts[segment]) - int(self.layout.firsts[segment])
                with np.errstate(over="ignore"):
                    drop_rows(out, 2, 2, seed, threshold, low - first, high - first)

        self._over(self._trained, fill)
        self._gather_rows()

    def _gather_rows(self) -> None:
        super()._gather_rows()
        self._numbered = ()

    def histogram(self, node: int) -> Fixed:
        """Sums of the pairs of a node's trained rows, as (feature, bin, pair)."""
        n_features = self.layout.n_features
        shares = share_ranges(self._nodes[node][: self._n_trained], self._workers.n_threads)
        found = np.zeros((len(shares), 2 * n_features * BINS), dtype=np.int64)
        arguments = (self._row_words(), self._pairs, n_features, self._rows, node == 0)
        self._workers.run(add_pairs, [(*arguments, share, found[i]) for i, share in enumerate(shares)])
        return sum_shares(found)

    def grow(self, judge: PairJudge, features: Indices, n_cuts: Indices, n_leaves: int, depth: int) -> Grown | None:
        """Grow the tree that was begun, in one compiled call; None where threads share its rows, or it is too large."""
        n_features, n_nodes = self.layout.n_features, 2 * n_leaves - 1
        if self._workers.n_threads > 1 or 16 * n_features * BINS * n_leaves > MOST_BYTES:
            return None
        factor = np.array([judge.of_numerator, judge.of_denominator])
        rules = PairRules(features, n_cuts, factor, judge.ridge, judge.least, n_leaves, depth)
        ranges = np.empty((n_nodes, *self.layout.whole.shape), dtype=np.int64)
        ranges[0] = self.layout.whole
        if self._room.shape[0] != n_leaves:
            self._room = np.empty((n_leaves, 2 * n_features * BINS), dtype=np.int64)
        record, depths = np.zeros((n_nodes, N_FIELDS), dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
        codes, table = self._arrange_codes(), np.empty(BINS, dtype=np.uint8)
        given = NodeRows(self._row_words(), codes, self._pairs, self._rows, self._scratch, table)
        noted = record.view(np.float64)
        n = grow_pair_tree(given, n_features, self._n_trained, rules, ranges, self._room, record, noted, depths)
        self._nodes = list(ranges[:n])
        return make_pair_tree(record[:n], judge, depths[:n])

    def _arrange_codes(self) -> Codes:
        """Codes of each feature, (feature, row); once they are made the words of a row lie side by side."""
        if self._codes is None:
            views = [super(PairRows, self)._codes_of(feature) for feature in range(self.layout.n_features)]
            self._codes = np.array([codes[::step] for codes, step in views])
            words: Words = in_memory("words", self._words.size, np.uint64).reshape(self._words.shape[::-1])
            words[:] = self._words.T
            self._words = words.T
        return self._codes

    def _row_words(self) -> RowWords:
        n_words, n_rows = self._words.shape
        if self._codes is None:
            return RowWords(self._words.ravel(), 1, n_rows)
        return RowWords(self._words.T.ravel(), n_words, 1)

    def _codes_of(self, feature: int) -> tuple[Codes, int]:
        return super()._codes_of(feature) if self._codes is None else (self._codes[feature], 1)

    def _number_leaves(self, leaves: Sequence[int]) -> Rows:
        """Place of every row's leaf among those of the finished tree, in memory that splits and partitions reuse."""
        if self._numbered and self._numbered == tuple(leaves):
            return self._scratch
        found = np.concatenate([self._nodes[leaf] for leaf in leaves])
        found[:, 0] = np.repeat(np.arange(len(leaves)), self.layout.n_segments)
        number_leaves(self._rows, found, self._scratch)
        self._numbered = tuple(leaves) if self._keeps_numbers else ()
        return self._scratch

    def _over(self, ranges: Fixed, work: Callable[[int, int, int], Result]) -> list[Result]:
        """Do some work for all ranges (label, begin, end), cut into shares; results in no particular order."""

        def do_share(share: Fixed) -> list[Result]:
            return [work(*one) for one in share.tolist()]

        if self._workers.n_threads == 1:
            return do_share(ranges)
        shares = share_ranges(ranges, self._workers.n_threads, LIGHT_ROWS_PER_SHARE)
        return [one for found in self._workers.run(do_share, [(share,) for share in shares]) for one in found]


def grow_next(
    rows: Partitions,
    scales: tuple[float, float],
    criterion: NewtonCriterion,
    allowed: Fixed,
    settings: Settings,
    number: int,
) -> Grown | None:
    """Grow the tree with this number by allowed features; None where no split gains anything.

    `rows` are `PairRows`; `scales` are the powers of two that their numerators and denominators are multiplied by.
    """
    _, nodes = rows.begin_tree(Call(PairRows.begin_tree, (scales, *draw_rows(settings, number))))
    features = allowed[draw_features(settings, number, len(allowed))]
    n_leaves, depth = settings.n_leaves, settings.max_depth or settings.n_leaves
    factor, grown = 1.0 / np.array(scales), None
    if criterion.is_plain:  # where the rows are in one place, nobody needs to be asked between splits
        criterion.scale(factor)
        if isinstance(nodes, PairRows):
            grown = nodes.grow(criterion.judge, features, criterion.n_cuts, n_leaves, depth)
        elif isinstance(nodes, DevicePartitionRows) and DeviceGrowth.fits(nodes, n_leaves):
            if nodes.growth is None:
                nodes.growth = DeviceGrowth(nodes, criterion.n_cuts, n_leaves, depth)
            grown = grow_pairs(nodes.growth, criterion.judge, features)
    if grown is None:
        root = nodes.histogram(0)
        sums = criterion.start_tree(root, factor)
        grown = TreeGrower(nodes, criterion, LeafGrowth(n_leaves), features, depth).grow(root, sums)
    return grown if len(grown.leaves) > 1 else None


def with_yields(nodes: Nodes, s: Floats, b: Floats) -> Nodes:
    """Write s and b into every node of a tree, from those of its leaves."""
    is_leaf = nodes["feature"] < 0
    left, right = nodes["left"].tolist(), nodes["right"].tolist()
    for name, of_leaves in (("s", s), ("b", b)):
        nodes[name][is_leaf] = of_leaves
        sums = nodes[name].tolist()
        for i in np.flatnonzero(~is_leaf)[::-1].tolist():
            sums[i] = sums[left[i]] + sums[right[i]]
        nodes[name] = sums
    return nodes
