"""Partitions in one process, and a group that answers for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.training.paper.weighted_rows import WeightedRows
from qbdt.training.partitions.calls import Answers, Call, Together, added
from qbdt.training.partitions.node_histograms import KeptNodes

__all__ = ["Group", "Partition"]


class Partition(KeptNodes, WeightedRows):
    """One partition of rows with the paper's weights."""

    def _added_up(self, node: int) -> Fixed:
        return WeightedRows.histogram(self, node)

    def details(self, node: int, words: Fixed) -> Fixed:
        """Sums of all other weights, see `WeightedRows.details`. Words may have travelled."""
        return super().details(node, np.array(words))


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
        found: Fixed | Floats | None = getattr(partition, call.method)(*call.arguments)
        answers.append(None if call.together is Together.NOTHING else found)
    return answers
