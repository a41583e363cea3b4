"""`PartitionRows`: binned rows of one partition, the node that each is in, and its share of the nodes' histograms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed
from qbdt.trees import RowStore

__all__ = ["PartitionRows"]


class PartitionRows(RowStore, ABC):
    """Rows of a partition; where it is the only one, they are the `Store` that trees are grown on."""

    @abstractmethod
    def histogram(self, node: int) -> Fixed:
        """Integer sums over a node's rows for every feature and bin."""

    def details(self, node: int, words: Fixed) -> Fixed:
        """Sums of all further weights of a node for some words of features, one row each: none, unless there are some."""
        return np.empty((len(words), 0), dtype=np.int64)

    def own_histogram(self, node: int) -> Fixed:
        """Histogram of a node, one partition's share of it; that of its parent is used up where it is known.

        Of two children the one that is smaller *here* is summed over its rows and the other found by exact
        subtraction, so that nobody has to be asked which one is smaller in all.
        """
        if node not in self._known:
            parent, left, right = self._origin.get(node, (-1, node, node))
            if parent not in self._known:
                self._known[node] = self.histogram(node)
            else:
                small, large = (left, right) if self.size(left) <= self.size(right) else (right, left)
                self._known[small] = self.histogram(small)
                self._known[large] = self._known.pop(parent) - self._known[small]
        return self._known[node]

    def own_details(self, node: int, words: Fixed) -> Fixed:
        """One partition's share of `details`; `words` may be a read-only array received over the network."""
        return self.details(node, np.array(words))

    def sizes(self, nodes: Sequence[int]) -> Fixed:
        """Return the number of rows in each of some nodes."""
        return np.array([self.size(node) for node in nodes], dtype=np.int64)

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node, see `RowStore.split`."""
        left, right = super().split(node, feature, goes_right)
        self._origin[left] = self._origin[right] = (node, left, right)
        return left, right

    def repeat_tree(self) -> None:
        """Begin a finished tree again, whose splits are to be repeated: node 0 holds all rows, nothing is summed."""
        self._gather_rows()

    def _gather_rows(self) -> None:
        super()._gather_rows()
        self._known: dict[int, Fixed] = {}
        self._origin: dict[int, tuple[int, int, int]] = {}
