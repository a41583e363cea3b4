"""A tree that a device grows by itself, and the CPU's word on it: every number of the tree is the CPU's.

The device decides by gains that differ from the CPU's by the rounding of logarithms, and marks trees where two choices
are so close that this could matter. The CPU repeats the growth from the device's notes, a few integers for each node,
with gains of its own. Where both agree the rows are divided already; otherwise the caller grows the tree anew.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS, NONE_MISSING, Fixed, Indices
from qbdt.training.paper.criterion import PaperCriterion
from qbdt.training.paper.device_rows import DeviceWeightedRows
from qbdt.trees.device import DeviceArray
from qbdt.trees.growth import Grown, LeafGrowth, OpenNode, Split, TreeGrower

__all__ = ["DeviceTree", "grow_on_device"]

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

THREADS = 256


class Disagreement(Exception):
    """The device did not do what the CPU would have done."""


def grow_on_device(
    rows: DeviceWeightedRows, criterion: PaperCriterion, n_cuts: Indices, features: Indices, n_leaves: int, depth: int
) -> Grown | None:
    """Grow a tree of cuts judged on s and b alone; None where the CPU must decide.

    Parameters
    ----------
    rows
        Rows whose weights are quantised.
    criterion
        Judge of splits.
    n_cuts, features
        Cuts of every feature, and which may be cut on, in increasing order.
    n_leaves, depth
        Most leaves, and most cuts above one.
    """
    tree = DeviceTree(rows, n_leaves)
    if tree.n_bytes > MOST_BYTES:
        return None
    record = tree.grow(features, n_cuts, depth)
    if record is None or not criterion.scale_plain(record[0, SUMS]):
        rows.repeat_tree()
        return None
    try:
        grown = _RepeatedGrowth(record, criterion, n_leaves, features, depth).repeat()
    except Disagreement:
        rows.repeat_tree()
        return None
    rows.adopt_children(record[:, LEFT_CHILD])
    return grown


class DeviceTree:
    """Memory of a tree that grows on a device, and the kernels that grow it."""

    def __init__(self, rows: DeviceWeightedRows, n_leaves: int) -> None:
        self._rows, self._n_leaves = rows, n_leaves
        self._n_nodes = 2 * n_leaves - 1
        self._size = rows.layout.histogram_size
        self._kernels = rows.device.compile(SOURCE)

    @property
    def n_bytes(self) -> int:
        """Memory of the histograms of all nodes."""
        return 8 * self._size * self._n_nodes

    def grow(self, features: Indices, n_cuts: Indices, depth: int) -> Fixed | None:
        """Grow the tree; return the record of its nodes, or None where two choices were too close."""
        rows, device, layout = self._rows, self._rows.device, self._rows.layout
        histograms = device.zeros(self._size * self._n_nodes, np.int64)
        # The record of nodes, then the state of the growth: they come back together.
        notes = device.zeros(8 * N_FIELDS * self._n_nodes + 4 * N_STATE, np.uint8)
        record, state = notes[: -4 * N_STATE].view(np.int64), notes[-4 * N_STATE :].view(np.int32)
        goes_right = device.zeros(BINS, np.uint8)
        gains = [device.zeros(self._n_nodes, np.float64) for _ in range(2)]
        numbers = [device.zeros(self._n_nodes, np.int32) for _ in range(2)]
        nodes = (record, *gains, *numbers)
        chosen = device.upload(features.astype(np.int32))
        cuts = device.zeros(2 * len(features) * CUT_BYTES, np.uint8)
        rules = (chosen, device.upload(n_cuts), np.int32(depth), np.int32(layout.n_features))
        given = (np.int32(len(features)), np.int32(layout.n_nominal), rows.sides, *rules)
        scan = (*given, histograms, cuts, state, goes_right, *nodes)
        self._kernels.launch("begin_tree", (1, 1, 1), (np.int32(self._n_leaves), state, *nodes), threads=32)
        rows.make_room(self._n_nodes)
        rows.fill_weights(rows.number(0), histograms, self._size)
        self._scan(1, len(features), scan)
        for step in range(self._n_leaves - 1):
            rows.divide(state[TASK], goes_right)
            if step < self._n_leaves - 2:  # the last two leaves are not divided
                rows.fill_weights(state[SMALLER], histograms, self._size)
                self._scan(2, len(features), scan)
        found = device.download(notes)
        is_marked = found[-4 * N_STATE :].view(np.int32)[MARKED]
        return None if is_marked else found[: -4 * N_STATE].view(np.int64).reshape(-1, N_FIELDS)

    def _scan(self, n_nodes: int, n_features: int, arguments: tuple[DeviceArray, ...]) -> None:
        shared = max(THREADS, 2 * n_features) * CUT_BYTES if n_features < 64 else THREADS * CUT_BYTES
        self._kernels.launch("scan_nodes", (n_features, n_nodes, 1), arguments, shared, THREADS)


class _RecordedNodes:
    """Nodes that are divided already; a `RowStore` without rows."""

    def __init__(self, record: Fixed) -> None:
        self._record = record

    def histogram(self, node: int) -> Fixed:
        """Return nothing: no split is searched for."""
        return np.empty(0, dtype=np.int64)

    def systematic_histograms(self, node: int, words: Indices) -> Fixed:
        """Return nothing."""
        return np.empty((len(words), 0), dtype=np.int64)

    def size(self, node: int) -> int:
        """Return nothing that matters."""
        return 0

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Return the children of a node, if the device has divided it too."""
        left = int(self._record[node, LEFT_CHILD])
        if left < 0:
            raise Disagreement
        return left, left + 1


class _RepeatedGrowth(TreeGrower):
    """Growth by the cuts that a device found, with the CPU's gains."""

    def __init__(
        self, record: Fixed, criterion: PaperCriterion, n_leaves: int, features: Indices, depth: int
    ) -> None:
        super().__init__(_RecordedNodes(record), criterion, LeafGrowth(n_leaves), features, depth)
        self._record, self._paper = record, criterion

    def repeat(self) -> Grown:
        """Grow the tree; every node that the device has divided must be divided here too."""
        grown = self.grow(np.empty(0, dtype=np.int64), self._record[0, SUMS].copy())
        if len(grown.nodes) != 1 + 2 * np.count_nonzero(self._record[:, LEFT_CHILD] >= 0):
            raise Disagreement
        return grown

    def _find_split(self, node: OpenNode) -> Split:
        """Return the device's cut of a node."""
        found = self._record[node.number]
        if found[FEATURE] < 0:
            return Split(-np.inf, -1, 0, NONE_MISSING, np.zeros_like(node.sums))
        left = found[LEFT]
        gain = self._paper.gain(left, node.sums, node.yields.q)
        return Split(gain, int(found[FEATURE]), int(found[CUT]), int(found[MISSING_SIDE]), left)
