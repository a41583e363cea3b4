"""Trees that a device grows by itself, without asking the CPU before they are done.

A node is judged on two sums: s and b of the paper's method (`grow_plain`), N and D of the profiled one (`grow_pairs`).
Gains N²/(D + λ) are those of the CPU to the last bit. Those of the paper differ from the CPU's by the rounding of
logarithms; the device marks trees where two choices are so close that this could matter, and the CPU repeats all
choices from the device's notes, a few integers for each node, with gains of its own. Where both agree the rows are
divided already; otherwise the caller grows the tree anew. So every number of a tree is the CPU's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from qbdt.arrays import BINS, Fixed, Floats, Indices
from qbdt.training.grown_records import LEFT, SUMS, PairJudge, make_pair_tree, make_tree
from qbdt.training.kernels.growth import FEATURE, GAIN, LEFT_CHILD, N_FIELDS
from qbdt.training.partitions.rows import DevicePartitionRows
from qbdt.trees.device import DeviceArray
from qbdt.trees.growth import Grown

SOURCE = Path(__file__).parent / "kernels" / "growth.cu"

MOST_BYTES = 1 << 30
"""Most memory for the histograms of all nodes of a tree."""

TASK, SMALLER, MARKED, N_STATE = slice(0, 6), slice(4, 5), 9, 12
"""`State` in growth.cu."""

CUT_BYTES = 40
"""Size of a `Cut` in growth.cu."""

CACHED = 64
"""Features below which the cuts of all are kept in shared memory, as in growth.cu."""

THREADS = 256


PLAIN = PairJudge(0.0, 0.0, 0.0, 0.0)
"""Judgement in Q, whose units are those of the root."""


class PlainCriterion(Protocol):
    """Judge of cuts on s and b alone."""

    def scale_plain(self, sums: Fixed) -> bool:
        """Scale signal and background of a root to one event each; False without yield."""

    def judge_plain(self, sums: Fixed, lefts: Fixed) -> tuple[Floats, Floats]:
        """Numbers (s, b, Q, output) of nodes, and the ΔQ of one cut of each."""


class DeviceGrowth:
    """Memory of trees that grow on a device, and the kernels that grow them.

    `n_cuts` are the cuts of every feature, `n_leaves` and `depth` the most leaves, and the most cuts above one. What is
    summed of the rows is made ready before each tree.
    """

    def __init__(self, rows: DevicePartitionRows, n_cuts: Indices, n_leaves: int, depth: int) -> None:
        self.rows, self.n_leaves, self.depth = rows, n_leaves, depth
        device, layout, n_nodes = rows.device, rows.layout, 2 * n_leaves - 1
        self._kernels = device.compile(SOURCE)
        self._n_cuts, self._sides = device.upload(n_cuts), device.upload(np.array(layout.sides, dtype=np.int32))
        self._histograms = device.zeros(rows.histogram_size * n_nodes, np.int64)
        # The record of nodes, then the state of the growth: they come back together.
        self._notes = device.zeros(8 * N_FIELDS * n_nodes + 4 * N_STATE, np.uint8)
        self._state = self._notes[-4 * N_STATE :].view(np.int32)
        record, gains = self._notes[: -4 * N_STATE].view(np.int64), device.zeros(2 * n_nodes, np.float64)
        numbers = device.zeros(2 * n_nodes, np.int32)
        self._nodes = (record, gains[:n_nodes], gains[n_nodes:], numbers[:n_nodes], numbers[n_nodes:])
        self._goes_right = device.zeros(BINS, np.uint8)
        self._cuts = device.zeros(2 * layout.n_features * CUT_BYTES, np.uint8)
        self._features: Indices = np.empty(0, dtype=np.int64)
        self._chosen: DeviceArray = None
        self._known: tuple[PairJudge, int] | None = None
        self._again: Callable[[], None] | None = None
        rows.make_room(n_nodes)

    @staticmethod
    def fits(rows: DevicePartitionRows, n_leaves: int) -> bool:
        """Whether the histograms of all nodes fit the memory that they may use."""
        return 8 * rows.histogram_size * (2 * n_leaves - 1) <= MOST_BYTES

    def record(self, features: Indices, judge: PairJudge = PLAIN) -> Fixed | None:
        """Have a tree grown by some features, in increasing order, and return the record of its nodes.

        None where two choices were too close.
        """
        if not np.array_equal(features, self._features):
            self._features, self._chosen = features, self.rows.device.upload(features.astype(np.int32))
            self._known = None
        self._launch(judge)
        found = self.rows.device.download(self._notes)
        is_marked = found[-4 * N_STATE :].view(np.int32)[MARKED]
        return None if is_marked else found[: -4 * N_STATE].view(np.int64).reshape(-1, N_FIELDS)

    def _launch(self, judge: PairJudge) -> None:
        """Launch all kernels of a tree; those of the last tree again, in one launch, where nothing is new."""
        known = (judge, self.rows.room)
        if known != self._known:
            self._known, self._again = known, None
            self._launch_each(judge)
            return
        if self._again is None:
            self._again = self.rows.device.join(partial(self._launch_each, judge))
        self._again()

    def _launch_each(self, judge: PairJudge) -> None:
        rows, size = self.rows, self.rows.histogram_size
        n_sums = np.int64(size * (2 * self.n_leaves - 1))
        begun = (np.int32(self.n_leaves), n_sums, self._histograms, self._state, *self._nodes)
        self._kernels.launch("begin_tree", (2 * rows.device.n_units, 1, 1), begun)
        rows.fill_histogram(rows.number(0), self._histograms, size)
        self._scan(1, judge)
        for step in range(self.n_leaves - 1):
            rows.divide(self._state[TASK], self._goes_right)
            if step < self.n_leaves - 2:  # the last two leaves are not divided
                rows.fill_histogram(self._state[SMALLER], self._histograms, size)
                self._scan(2, judge)

    def _scan(self, n_nodes: int, judge: PairJudge) -> None:
        """Find the best cuts of one or two new nodes, and the node that is divided next."""
        layout, n = self.rows.layout, len(self._features)
        rules = (self._chosen, self._n_cuts, np.int32(self.depth), np.int32(layout.n_features))
        judged = (np.int32(judge is not PLAIN), *(np.float64(one) for one in judge))
        given = (np.int32(n), np.int32(layout.n_nominal), self._sides, *rules, *judged)
        arguments = (*given, self._histograms, self._cuts, self._state, self._goes_right, *self._nodes)
        shared = max(THREADS, 2 * n if n < CACHED else 0) * CUT_BYTES
        self._kernels.launch("scan_nodes", (n, n_nodes, 1), arguments, shared, THREADS)

    def depths(self, record: Fixed, gains: Floats) -> list[int] | None:
        """Repeat the choice of nodes by some gains; return the depths of nodes, or None where it is another."""
        own, left = gains.tolist(), record[:, LEFT_CHILD].tolist()
        may = (record[:, FEATURE] >= 0).tolist()
        depths, open_nodes = [0], [0] if may[0] and own[0] > 0 else []
        for n_left in range(self.n_leaves - 2, -1, -1):
            if not open_nodes:
                break
            node = max(open_nodes, key=lambda one: (own[one], -one))
            if left[node] != len(depths):
                return None
            open_nodes.remove(node)
            depths += [depths[node] + 1] * 2
            if n_left and depths[-1] < self.depth:
                open_nodes += [one for one in (left[node], left[node] + 1) if may[one] and own[one] > 0]
        return depths if len(depths) == 1 + 2 * sum(one >= 0 for one in left) else None


def grow_plain(growth: DeviceGrowth, criterion: PlainCriterion, features: Indices) -> Grown | None:
    """Grow a tree of the paper's method, of cuts judged on s and b alone; None where the CPU must decide."""
    record = growth.record(features)
    if record is not None and criterion.scale_plain(record[0, SUMS]):
        values, gains = criterion.judge_plain(record[:, SUMS], record[:, LEFT])
        depths = growth.depths(record, gains)
        if depths is not None:
            growth.rows.adopt_children(record[:, LEFT_CHILD])
            return make_tree(record, values, gains, depths)
    growth.rows.repeat_tree()
    return None


def grow_pairs(growth: DeviceGrowth, judge: PairJudge, features: Indices) -> Grown | None:
    """Grow a tree of cuts judged by N²/(D + λ); None where the CPU must decide."""
    record = growth.record(features, judge)
    if record is None:
        growth.rows.repeat_tree()
        return None
    gains = np.ascontiguousarray(record[:, GAIN]).view(np.float64)
    depths = growth.depths(record, gains)
    assert depths is not None
    growth.rows.adopt_children(record[:, LEFT_CHILD])
    return make_pair_tree(record, judge, depths)
