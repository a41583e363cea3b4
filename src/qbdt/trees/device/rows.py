"""`DeviceRows`: bin codes of rows in the memory of a device, and the node that each row is in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS, Indices
from qbdt.trees.binning import Binning
from qbdt.trees.device.device import DeviceArray
from qbdt.trees.device.memory import DeviceMemory
from qbdt.trees.rows import Layout, Segment

SOURCE = Path(__file__).parent / "rows.cu"

QUAD = 4
"""Features that a histogram kernel has a multiple of."""

MOST_QUADS = 8
"""Most quads of features whose sums fit the memory that threads of a block share: 64 kB, or 128 kB for pairs."""

THREADS = 1024
"""Threads of a block that fills a histogram: as many as there can be, since they share its sums (measured)."""

HALF_SHARED = 100_000
"""Bytes of shared memory up to which two blocks run on a unit at the same time."""

SECTOR = 32
"""Bytes that a GPU reads at once: rows that are longer start with one."""

FIRST_NODES = 64
"""Nodes that there is room for at first."""


class DeviceRows:
    """Bin codes of the rows of some segments on a device, and the nodes that they are in."""

    constant: ClassVar[frozenset[str]] = frozenset({"_codes", "_firsts", "_numbers"})
    """Arrays that never change once they are made; `_numbers` grows."""

    def __init__(self, segments: Sequence[Segment], binning: Binning, memory: DeviceMemory) -> None:
        self.layout = Layout(segments, len(binning.features))
        self.device = device = memory.device
        self._kernels = device.compile(SOURCE)
        self._groups = FeatureGroups(self.layout.n_features)
        self._firsts = device.upload(self._groups.firsts)
        self._codes = self._encode(segments, binning, memory)
        self._first, self._second = (device.zeros(self.layout.n_rows, np.int32) for _ in range(2))
        self._cursors = device.zeros(2 * self.layout.n_segments + 1, np.int32)
        self._numbers: DeviceArray = None
        self._ranges: DeviceArray = None
        self._lists: DeviceArray = None
        self._known: dict[int, Indices] = {}
        self._children: dict[int, tuple[int, int]] = {}
        self._n_nodes, self.room = 1, 0
        self.make_room(FIRST_NODES)

    def _encode(self, segments: Sequence[Segment], binning: Binning, memory: DeviceMemory) -> DeviceArray:
        """Bin codes as (row, feature)."""
        stride = self._groups.stride
        codes = self.device.zeros(self.layout.n_rows * stride, np.uint8)
        for segment, start in zip(segments, self.layout.starts.tolist(), strict=True):
            memory.write_codes(segment.events, binning, stride, codes[start * stride :])
        return codes

    @property
    def holders(self) -> Sequence[Any]:
        """Objects whose attributes are arrays on the device, each with those of them that are `constant`."""
        return (self,)

    def make_room(self, n_nodes: int) -> None:
        """Have room for so many nodes; the ranges of those that are known are kept."""
        if n_nodes <= self.room:
            return
        n_segments, old = self.layout.n_segments, self._ranges
        ranges = np.zeros((n_nodes, n_segments, 2), dtype=np.int32)
        lists = np.full(n_nodes, -1, dtype=np.int32)
        ranges[0] = self.layout.whole[:, 1:]
        if old is not None:
            size = old.size // (2 * n_segments)
            ranges[:size] = self.device.download(old).reshape(size, n_segments, 2)
            lists[:size] = self.device.download(self._lists)
        self._ranges, self._lists = self.device.upload(ranges.ravel()), self.device.upload(lists)
        self._numbers = self.device.upload(np.arange(n_nodes, dtype=np.int32))
        self.room = n_nodes

    def _gather_rows(self) -> None:
        """Begin a tree: node 0 holds all rows."""
        self._n_nodes = 1
        self._children = {}
        self._known = {0: self.layout.whole[:, 1:]}

    def size(self, node: int) -> int:
        """Number of rows in a node."""
        ranges = self._ranges_of(node)
        return int((ranges[:, 1] - ranges[:, 0]).sum())

    def _ranges_of(self, node: int) -> Indices:
        """Begin and end of a node's rows in each segment."""
        if node not in self._known:
            sibling = node + 1 if node % 2 else node - 1  # children come in pairs
            low, width = min(node, sibling), 2 * self.layout.n_segments
            found = self.device.download(self._ranges[low * width : (low + 2) * width]).astype(np.int64)
            self._known[low], self._known[low + 1] = found.reshape(2, -1, 2)
        return self._known[node]

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node's rows; `goes_right` is 1 for each code that goes right. Returns the two new nodes."""
        left, right = self._n_nodes, self._n_nodes + 1
        if right >= self.room:
            self.make_room(2 * self.room)
        self._n_nodes += 2
        self._children[node] = left, right
        task = np.array([node, feature, left, right, -1, 0], dtype=np.int32)
        sent = self.device.upload(np.concatenate([task.view(np.uint8), goes_right]))
        self.divide(sent[: task.nbytes].view(np.int32), sent[task.nbytes :])
        return left, right

    def number(self, node: int) -> DeviceArray:
        """Return the number of a node, on the device."""
        return self._numbers[node:]

    def adopt_children(self, left: Indices) -> None:
        """Take note of nodes that were divided by tasks: for each node its left child, −1 for leaves."""
        self._children = {node: (int(one), int(one) + 1) for node, one in enumerate(left.tolist()) if one >= 0}
        self._n_nodes = 1 + 2 * len(self._children)

    def _undivided(self, node: int) -> list[int]:
        """Return the leaves so far below a node: the list that a divided node had is written over by theirs."""
        if node not in self._children:
            return [node]
        return [leaf for child in self._children[node] for leaf in self._undivided(child)]

    def divide(self, task: DeviceArray, goes_right: DeviceArray) -> None:
        """Divide a node as a task on the device says: node, feature, left and right child; the smaller one is added."""
        rows = (self._codes, np.int32(self._groups.stride), np.int32(self.layout.n_segments))
        arguments = (*rows, task, goes_right, *self._places, self._cursors)
        self._kernels.launch("divide_rows", (4 * self.device.n_units, 1, 1), arguments)

    def _fill(
        self,
        width: int,
        node: DeviceArray,
        values: DeviceArray,
        bases: DeviceArray,
        out: DeviceArray,
        node_step: int = 0,
    ) -> None:
        """Add the sums of `width` (1 or 2) numbers per row for all features, of the node whose number is on the device.

        Sums of node i go to `out` from i × `node_step` on; `bases` are the first sums of segments, −1 for those that do
        not count.
        """
        groups = self._groups
        step = width * QUAD * groups.quads * BINS
        self._fill_groups(width, groups.quads, self._firsts, node, values, bases, out, step, node_step)

    def _fill_groups(
        self,
        width: int,
        quads: int,
        firsts: DeviceArray,
        node: DeviceArray,
        values: DeviceArray,
        bases: DeviceArray,
        out: DeviceArray,
        step: int,
        node_step: int = 0,
    ) -> None:
        """Add sums for groups of features, which start at `firsts`; those of group i go to `out` from i × `step` on."""
        shared = 2 * width * QUAD * quads * BINS * np.dtype(np.uint32).itemsize
        arguments = (
            *(self._codes, np.int32(self._groups.stride), np.int32(self.layout.n_features), node),
            *(np.int32(self.layout.n_segments), *self._places),
            *(values, bases, firsts, np.int64(step), np.int64(node_step), out),
        )
        name = f"{'add_weights' if width == 1 else 'add_pairs'}_{quads}"
        self._kernels.launch(name, (self._blocks_of(shared), len(firsts), 1), arguments, shared, THREADS)

    def _blocks_of(self, shared: int) -> int:
        """Blocks that fill the device where each uses so much shared memory."""
        return self.device.n_units * (2 if shared <= HALF_SHARED else 1)

    @property
    def _places(self) -> tuple[DeviceArray, ...]:
        """Where the rows of nodes are."""
        return self._ranges, self._lists, self._first, self._second


class FeatureGroups:
    """Features in groups whose sums fit the shared memory of a block; each group has the same number of quads."""

    def __init__(self, n_features: int) -> None:
        quads = max(1, -(-n_features // QUAD))
        n_groups = -(-quads // MOST_QUADS)
        self.quads = -(-quads // n_groups)
        if n_groups > 1:
            self.quads += self.quads % 2  # groups start with a word of eight codes
        self.firsts = np.arange(n_groups, dtype=np.int32) * (QUAD * self.quads)
        size = QUAD * self.quads * n_groups
        self.stride = next((one for one in (8, 16, 32) if size <= one), -(-size // SECTOR) * SECTOR)


def row_bytes(n_features: int) -> int:
    """Bytes of the codes of a row."""
    return FeatureGroups(n_features).stride
