"""Rows in several partitions: `SpreadPartitions`, whatever holds them, and `SpreadNodes`, the nodes of one tree.

Every question is a round trip or a pass over a disk, so it asks as seldom as it can: changes of the rows wait until
something is asked and go with the question; the histogram of a root comes with the call that begins its tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed, Indices
from qbdt.threads import Workers
from qbdt.training.partitions.protocol import Builder, Call, Partitions, Results, total
from qbdt.training.partitions.rows import PartitionRows
from qbdt.trees.growth import RowStore
from qbdt.trees.rows import NodeHistograms

P = ParamSpec("P")


class SpreadPartitions(ABC):
    """Rows of a training in several partitions; a `Partitions`."""

    def __init__(self) -> None:
        self._waiting: list[Call] = []

    @abstractmethod
    def run(self, calls: Sequence[Call]) -> Results:
        """Make these calls, in this order, on every partition; return the combined results."""

    @abstractmethod
    def _build(self, build: Builder) -> None:
        """Build the rows of every partition."""

    def fork(self, workers: Workers) -> Partitions | None:
        """Return nothing: every partition has room for one set of rows."""
        return None

    def build(self, build: Builder, final: bool = False) -> None:
        """Build the rows of every partition; earlier ones are given up, with what they have not been told yet."""
        self._waiting = []
        self._build(build)

    def tell(self, method: Callable[Concatenate[Any, P], object], *arguments: P.args, **_: P.kwargs) -> None:
        """Have the rows changed when something is asked next."""
        self._waiting.append(Call(method, arguments, changes=True))

    def ask(self, *calls: Call) -> list[NDArray[Any]]:
        """Send the waiting changes and these calls in one go; return the results of these."""
        sent = [*self._waiting, *calls]
        self._waiting = []
        results = self.run(sent)[-len(calls) :]
        # those received over the network may be read-only; others may be kept by their partition
        return [np.array(result) for result in results]

    def begin_tree(self, call: Call, *others: Call) -> tuple[list[NDArray[Any]], RowStore]:
        """Begin a tree, and bring the histogram of its root along."""
        first = call._replace(changes=True, begins=True)
        root = total(PartitionRows.sizes, (0,)), total(PartitionRows.own_histogram, 0)
        *results, sizes, histogram = self.ask(first, *others, *root)
        return results, SpreadNodes(self, int(sizes[0]), histogram)


class SpreadNodes:
    """Nodes of one tree whose rows are in several partitions; a `RowStore`."""

    def __init__(self, partitions: SpreadPartitions, size: int, histogram: Fixed) -> None:
        self._partitions = partitions
        self._sizes = [size]
        self._histograms = NodeHistograms()
        self._histograms.add(0, histogram)

    def histogram(self, node: int) -> Fixed:
        """Sums over a node's rows for every feature and bin."""
        self._find(node)
        return self._histograms.of(node).copy()

    def systematic_histograms(self, node: int, words: Indices) -> Fixed:
        """Sums of all further weights of a node for some words, one row each."""
        return self._partitions.ask(total(PartitionRows.own_systematic_histograms, node, words))[0]

    def size(self, node: int) -> int:
        """Number of rows in a node."""
        self._find(node)
        return self._sizes[node]

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node and number its children; their histograms come when one of them is asked for."""
        left, right = len(self._sizes), len(self._sizes) + 1
        self._sizes += [-1, -1]  # not known yet
        self._histograms.note_split(node, left, right)
        self._partitions.tell(PartitionRows.split, node, feature, goes_right)
        return left, right

    def _find(self, node: int) -> None:
        """Ask for the sizes and histograms of a node and its sibling, where they are not known."""
        family = self._histograms.family(node)
        if self._sizes[node] >= 0 or family is None:
            return
        left, right = sorted((node, family[1]))
        sizes, histogram = self._partitions.ask(
            total(PartitionRows.sizes, (left, right)), total(PartitionRows.own_histogram, left)
        )
        self._sizes[left], self._sizes[right] = (int(size) for size in sizes)
        self._histograms.add(left, histogram)  # and with it the right one
