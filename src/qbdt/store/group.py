"""Partitions in one process: each keeps its nodes' histograms, and a group answers for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.dtypes import Fixed, Yields
from qbdt.store.calls import Answers, Call, Together, added
from qbdt.store.local import WeightedRows

__all__ = ["Group", "Partition"]


class Partition(WeightedRows):
    """One partition of the rows.

    Of two children it adds up the one that is smaller *here* and finds the other by exact subtraction, so that nobody
    has to be asked which one is smaller in all.
    """

    def forget_nodes(self) -> None:
        """Begin a tree that is known already: its weights are not added up again."""
        self._gather_rows()

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node, see `RowStore.split`."""
        left, right = super().split(node, feature, goes_right)
        self._origin[left] = self._origin[right] = (node, left, right)
        return left, right

    def histogram(self, node: int) -> Fixed:
        """Sums of a node's nominal weights, see `WeightedRows.histogram`."""
        if node not in self._kept:
            parent, left, right = self._origin.get(node, (-1, node, node))
            if parent not in self._kept:
                self._kept[node] = super().histogram(node)
            else:
                small, large = (left, right) if self.size(left) <= self.size(right) else (right, left)
                self._kept[small] = super().histogram(small)
                self._kept[large] = self._kept.pop(parent) - self._kept[small]
        return self._kept[node]

    def details(self, node: int, words: Fixed) -> Fixed:
        """Sums of all other weights, see `WeightedRows.details`. Words may have travelled."""
        return super().details(node, np.array(words))

    def _gather_rows(self) -> None:
        super()._gather_rows()
        self._kept: dict[int, Fixed] = {}
        self._origin: dict[int, tuple[int, int, int]] = {}

    def sizes(self, nodes: Sequence[int]) -> Fixed:
        """Return the number of rows in each of some nodes."""
        return np.array([self.size(node) for node in nodes], dtype=np.int64)


class Group:
    """Some partitions of a training, by number.

    Examples
    --------
    >>> class Rows:
    ...     def count(self):
    ...         return np.array([2])
    >>> group = Group()
    >>> group.add(0, Rows())
    >>> group.add(1, Rows())
    >>> group.run([Call("count", (), Together.SUM)])
    [array([4])]
    """

    def __init__(self) -> None:
        self._partitions: dict[int, Any] = {}

    @property
    def partitions(self) -> Mapping[int, Any]:
        """The partitions."""
        return self._partitions

    def add(self, number: int, partition: Any) -> None:
        """Take one more partition."""
        self._partitions[number] = partition

    def run(self, calls: Sequence[Call]) -> Answers:
        """Make calls on every partition, one partition after the other, so that each is passed over once."""
        together: Answers | None = None
        for partition in self._partitions.values():
            together = added(calls, together, answers_of(partition, calls))
        assert together is not None
        return together


def answers_of(partition: Any, calls: Sequence[Call]) -> Answers:
    """Make calls on one partition."""
    answers: Answers = []
    for call in calls:
        found: Fixed | Yields | None = getattr(partition, call.method)(*call.arguments)
        answers.append(None if call.together is Together.NOTHING else found)
    return answers
