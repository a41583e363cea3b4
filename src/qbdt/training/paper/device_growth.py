"""A tree that a device grows by itself, and the CPU's word on it: every number of the tree is the CPU's.

The device decides by gains that differ from the CPU's by the rounding of logarithms, and marks trees where two choices
are so close that this could matter. The CPU repeats the choices from the device's notes, a few integers for each node,
with gains of its own. Where both agree the rows are divided already; otherwise the caller grows the tree anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from qbdt.arrays import BINS, MISSING_LEFT, NODE, NONE_MISSING, Fixed, Floats, Indices, Nodes
from qbdt.training.paper.criterion import PaperCriterion
from qbdt.training.paper.device_rows import DeviceWeightedRows
from qbdt.trees.device import DeviceArray
from qbdt.trees.growth import Grown

__all__ = ["DeviceGrowth"]

SOURCE = Path(__file__).parents[1] / "kernels" / "growth.cu"

MOST_BYTES = 1 << 30
"""Most memory for the histograms of all nodes of a tree."""

FEATURE, CUT, MISSING_SIDE, LEFT_CHILD = 0, 1, 2, 5
LEFT, SUMS = slice(3, 5), slice(6, 8)
N_FIELDS = 8
"""Fields of the record of a node: `Record` in growth.cu."""

TASK, SMALLER, MARKED, N_STATE = slice(0, 6), slice(4, 5), 9, 12
"""`State` in growth.cu."""

CUT_BYTES = 40
"""Size of a `Cut` in growth.cu."""

CACHED = 64
"""Features below which the cuts of all are kept in shared memory, as in growth.cu."""

THREADS = 256


class DeviceGrowth:
    """Growth of trees of cuts that are judged on s and b alone, on the device that the rows are on.

    Parameters
    ----------
    rows
        The rows; their weights are quantised before each tree.
    criterion
        Judge of splits, for the CPU's numbers.
    n_cuts
        Cuts of every feature.
    n_leaves, depth
        Most leaves, and most cuts above one.
    """

    def __init__(
        self, rows: DeviceWeightedRows, criterion: PaperCriterion, n_cuts: Indices, n_leaves: int, depth: int
    ) -> None:
        self._rows, self._criterion = rows, criterion
        self._n_leaves, self._depth = n_leaves, depth
        self._n_nodes = 2 * n_leaves - 1
        self._kernels = rows.device.compile(SOURCE)
        self._n_cuts = rows.device.upload(n_cuts)
        self._allocate()

    @staticmethod
    def fits(rows: DeviceWeightedRows, n_leaves: int) -> bool:
        """Whether the histograms of all nodes fit the memory that they may use."""
        return 8 * rows.layout.histogram_size * (2 * n_leaves - 1) <= MOST_BYTES

    def _allocate(self) -> None:
        device, n_nodes, layout = self._rows.device, self._n_nodes, self._rows.layout
        self._histograms = device.zeros(layout.histogram_size * n_nodes, np.int64)
        # The record of nodes, then the state of the growth: they come back together.
        self._notes = device.zeros(8 * N_FIELDS * n_nodes + 4 * N_STATE, np.uint8)
        record = self._notes[: -4 * N_STATE].view(np.int64)
        self._state = self._notes[-4 * N_STATE :].view(np.int32)
        self._goes_right = device.zeros(BINS, np.uint8)
        gains = [device.zeros(n_nodes, np.float64) for _ in range(2)]
        self._nodes = (record, *gains, *(device.zeros(n_nodes, np.int32) for _ in range(2)))
        self._cuts = device.zeros(2 * layout.n_features * CUT_BYTES, np.uint8)
        self._features: Indices = np.empty(0, dtype=np.int64)
        self._chosen: DeviceArray = None
        self._rows.make_room(n_nodes)

    def grow(self, features: Indices) -> Grown | None:
        """Grow a tree by some features, in increasing order; None where the CPU must decide."""
        record = self._record_of(features)
        if record is not None and self._criterion.scale_plain(record[0, SUMS]):
            values, gains = self._criterion.judge_plain(record[:, SUMS], record[:, LEFT])
            depths = self._repeat(record, gains)
            if depths is not None:
                self._rows.adopt_children(record[:, LEFT_CHILD])
                return _tree_of(record[: len(depths)], values, gains, depths)
        self._rows.repeat_tree()
        return None

    def _record_of(self, features: Indices) -> Fixed | None:
        """Have the tree grown; return the record of its nodes, or None where two choices were too close."""
        rows, device, size = self._rows, self._rows.device, self._rows.layout.histogram_size
        if not np.array_equal(features, self._features):
            self._features, self._chosen = features, device.upload(features.astype(np.int32))
        begun = (np.int32(self._n_leaves), np.int64(size * self._n_nodes), self._histograms, self._state)
        self._kernels.launch("begin_tree", (2 * device.n_units, 1, 1), (*begun, *self._nodes))
        rows.fill_weights(rows.number(0), self._histograms, size)
        self._scan(1)
        for step in range(self._n_leaves - 1):
            rows.divide(self._state[TASK], self._goes_right)
            if step < self._n_leaves - 2:  # the last two leaves are not divided
                rows.fill_weights(self._state[SMALLER], self._histograms, size)
                self._scan(2)
        found = device.download(self._notes)
        is_marked = found[-4 * N_STATE :].view(np.int32)[MARKED]
        return None if is_marked else found[: -4 * N_STATE].view(np.int64).reshape(-1, N_FIELDS)

    def _scan(self, n_nodes: int) -> None:
        """Find the best cuts of one or two new nodes, and the node that is divided next."""
        layout, n = self._rows.layout, len(self._features)
        rules = (self._chosen, self._n_cuts, np.int32(self._depth), np.int32(layout.n_features))
        given = (np.int32(n), np.int32(layout.n_nominal), self._rows.sides, *rules)
        arguments = (*given, self._histograms, self._cuts, self._state, self._goes_right, *self._nodes)
        shared = max(THREADS, 2 * n if n < CACHED else 0) * CUT_BYTES
        self._kernels.launch("scan_nodes", (n, n_nodes, 1), arguments, shared, THREADS)

    def _repeat(self, record: Fixed, gains: Floats) -> list[int] | None:
        """Repeat the choice of nodes by the CPU's gains; return the depths of nodes, or None where it is another."""
        own, left = gains.tolist(), record[:, LEFT_CHILD].tolist()
        may = (record[:, FEATURE] >= 0).tolist()
        depths, open_nodes = [0], [0] if may[0] and own[0] > 0 else []
        for n_left in range(self._n_leaves - 2, -1, -1):
            if not open_nodes:
                break
            node = max(open_nodes, key=lambda one: (own[one], -one))
            if left[node] != len(depths):
                return None
            open_nodes.remove(node)
            depths += [depths[node] + 1] * 2
            if n_left and depths[-1] < self._depth:
                open_nodes += [one for one in (left[node], left[node] + 1) if may[one] and own[one] > 0]
        return depths if len(depths) == 1 + 2 * sum(one >= 0 for one in left) else None


def _tree_of(record: Fixed, values: Floats, gains: Floats, depths: list[int]) -> Grown:
    """Return the tree of a record, whose cuts are still bin codes."""
    nodes: Nodes = np.zeros(len(record), dtype=NODE)
    inner = record[:, LEFT_CHILD] >= 0
    left = np.where(inner, record[:, LEFT_CHILD], -1)
    s, b, q, value = values[: len(record)].T
    # Where no value was missing in training, later ones follow most of the background.
    follows = b[left] > b[np.where(inner, left + 1, -1)]
    nodes["missing_left"] = inner & np.where(
        record[:, MISSING_SIDE] == NONE_MISSING, follows, record[:, MISSING_SIDE] == MISSING_LEFT
    )
    nodes["feature"] = np.where(inner, record[:, FEATURE], -1)
    nodes["left"], nodes["right"], nodes["depth"] = left, np.where(inner, left + 1, -1), depths
    nodes["s"], nodes["b"], nodes["q"], nodes["value"] = s, b, q, value
    nodes["gain"] = np.where(inner, gains[: len(record)], 0.0)
    cuts = np.where(inner, record[:, CUT], 0)
    return Grown(nodes, cuts, tuple(np.flatnonzero(~inner).tolist()))
