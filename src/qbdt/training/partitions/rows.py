"""`PartitionRows`: binned rows of one partition, the node that each is in, and its share of the nodes' histograms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed, Indices
from qbdt.trees.device import DeviceArray, DeviceRows
from qbdt.trees.rows import BinnedRows, NodeHistograms


class _OwnHistograms(ABC):
    """One partition's share of the histograms of nodes, whose rows may be anywhere."""

    _histograms: NodeHistograms

    @abstractmethod
    def histogram(self, node: int) -> Fixed:
        """Integer sums over a node's rows for every feature and bin."""

    @abstractmethod
    def size(self, node: int) -> int:
        """Number of rows in a node."""

    def systematic_histograms(self, node: int, words: Indices) -> Fixed:
        """Sums of all further weights of a node for some words of features, one row each: there are none here."""
        return np.empty((len(words), 0), dtype=np.int64)

    def own_histogram(self, node: int) -> Fixed:
        """One partition's share of a node's histogram.

        Of two children the one that is smaller *here* is summed over its rows and the other found by exact
        subtraction, so that nobody has to be asked which one is smaller in all.
        """
        if not self._histograms.knows(node):
            family, summed = self._histograms.family(node), node
            if family is not None and self._histograms.knows(family[0]):
                summed = min(node, family[1], key=self.size)
            self._histograms.add(summed, self.histogram(summed))
        return self._histograms.of(node)

    def own_systematic_histograms(self, node: int, words: Indices) -> Fixed:
        """One partition's share of systematic histograms; `words` may be read-only, as received over the network."""
        return self.systematic_histograms(node, np.array(words))

    def sizes(self, nodes: Sequence[int]) -> Indices:
        """Return the number of rows in each of some nodes."""
        return np.array([self.size(node) for node in nodes], dtype=np.int64)


class PartitionRows(BinnedRows, _OwnHistograms):
    """Rows of a partition; where it is the only one, they are the `RowStore` that trees are grown on."""

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node, see `BinnedRows.split`."""
        left, right = super().split(node, feature, goes_right)
        self._histograms.note_split(node, left, right)
        return left, right

    def repeat_tree(self) -> None:
        """Begin a finished tree again, whose splits are to be repeated: node 0 holds all rows, nothing is summed."""
        self._gather_rows()

    def _gather_rows(self) -> None:
        super()._gather_rows()
        self._histograms = NodeHistograms()


class DevicePartitionRows(DeviceRows, _OwnHistograms):
    """The same in the memory of a device."""

    histogram_size: int
    """Sums of a node's histogram."""

    growth: Any = None
    """Memory in which trees grow on the device, once it is needed."""

    @abstractmethod
    def fill_histogram(self, node: DeviceArray, out: DeviceArray, node_step: int = 0) -> None:
        """Add the histogram of a node, whose number is on the device, to `out`; node i's from i × `node_step` on."""

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node, see `DeviceRows.split`."""
        left, right = super().split(node, feature, goes_right)
        self._histograms.note_split(node, left, right)
        return left, right

    def repeat_tree(self) -> None:
        """Begin a finished tree again, whose splits are to be repeated."""
        self._gather_rows()

    def _gather_rows(self) -> None:
        super()._gather_rows()
        self._histograms = NodeHistograms()
