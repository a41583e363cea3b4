"""`KeptNodes`: rows that keep the histograms of their nodes, so that only the smaller of two children is added up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed
from qbdt.trees import RowStore

__all__ = ["KeptNodes"]


class KeptNodes(RowStore, ABC):
    """Rows of a partition.

    Of two children it adds up the one that is smaller *here* and finds the other by exact subtraction, so that nobody
    has to be asked which one is smaller in all.
    """

    @abstractmethod
    def _added_up(self, node: int) -> Fixed:
        """Histogram of a node from its rows."""

    def forget_nodes(self) -> None:
        """Begin a tree that is known already: nothing is added up again."""
        self._gather_rows()

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node, see `RowStore.split`."""
        left, right = super().split(node, feature, goes_right)
        self._origin[left] = self._origin[right] = (node, left, right)
        return left, right

    def histogram(self, node: int) -> Fixed:
        """Histogram of a node; that of its parent is used up where it is known."""
        if node not in self._kept:
            parent, left, right = self._origin.get(node, (-1, node, node))
            if parent not in self._kept:
                self._kept[node] = self._added_up(node)
            else:
                small, large = (left, right) if self.size(left) <= self.size(right) else (right, left)
                self._kept[small] = self._added_up(small)
                self._kept[large] = self._kept.pop(parent) - self._kept[small]
        return self._kept[node]

    def sizes(self, nodes: Sequence[int]) -> Fixed:
        """Return the number of rows in each of some nodes."""
        return np.array([self.size(node) for node in nodes], dtype=np.int64)

    def _gather_rows(self) -> None:
        super()._gather_rows()
        self._kept: dict[int, Fixed] = {}
        self._origin: dict[int, tuple[int, int, int]] = {}
