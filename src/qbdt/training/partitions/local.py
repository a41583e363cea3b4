"""Partitions in this process: the only one, which is called directly, or several, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any, Concatenate, ParamSpec

from numpy.typing import NDArray

from qbdt.data import Dataset
from qbdt.threads import Workers
from qbdt.training.partitions.protocol import Builder, Call, Find, Found, Merge, Partition, Results, combine, method_of
from qbdt.training.partitions.spread import SpreadPartitions
from qbdt.trees.device import DeviceMemory
from qbdt.trees.growth import RowStore
from qbdt.trees.rows import Memory, in_memory

P = ParamSpec("P")


class OnePartition:
    """All events and rows in one memory; trees are grown on the rows themselves. A `Partitions`."""

    def __init__(self, partition: Partition, workers: Workers, memory: Memory = in_memory) -> None:
        self._partition: Partition | None = partition
        self._workers, self._memory = workers, memory
        self._rows: Any = None

    def reduce(self, find: Find[Found], merge: Merge[Found], name: str) -> Found:
        """Find something in the events."""
        return find(0, self._read(), self._workers)

    def build(self, build: Builder, final: bool = False) -> None:
        """Bin the events; the `final` time they are let go of."""
        self._rows = None
        self._rows = build(0, self._read(), self._workers, self._memory)
        if final:
            self._partition = None
            if isinstance(self._memory, DeviceMemory):
                self._memory.forget_tables()

    def tell(self, method: Callable[Concatenate[Any, P], object], *arguments: P.args, **_: P.kwargs) -> None:
        """Change the rows."""
        method_of(self._rows, method)(self._rows, *arguments, **_)

    def ask(self, *calls: Call) -> list[NDArray[Any]]:
        """Make calls."""
        return [method_of(self._rows, call.method)(self._rows, *call.arguments) for call in calls]

    def fork(self, workers: Workers) -> OnePartition | None:
        """Return the same events for another thread."""
        if self._partition is None or self._memory is not in_memory:
            return None
        return OnePartition(self._partition, workers)

    def begin_tree(self, call: Call, *others: Call) -> tuple[list[NDArray[Any]], RowStore]:
        """Begin a tree; the rows are its nodes."""
        return self.ask(call, *others), self._rows

    def _read(self) -> Dataset:
        assert self._partition is not None
        return self._partition()


class InMemoryPartitions(SpreadPartitions):
    """Several partitions in this process."""

    def __init__(self, partitions: Sequence[Partition], workers: Workers) -> None:
        super().__init__()
        self._partitions, self._workers = partitions, workers
        self._rows: list[Any] = []

    def reduce(self, find: Find[Found], merge: Merge[Found], name: str) -> Found:
        """Pass over all partitions, one at a time."""
        return reduce(merge, (find(number, read(), self._workers) for number, read in enumerate(self._partitions)))

    def _build(self, build: Builder) -> None:
        """Bin all partitions, one at a time."""
        self._rows = []
        for number, read in enumerate(self._partitions):
            self._rows.append(build(number, read(), self._workers))

    def run(self, calls: Sequence[Call]) -> Results:
        """Make all calls on one partition after the other, so that each is passed over once."""
        return reduce(partial(combine, calls), (run_calls(rows, calls) for rows in self._pass_over()))

    def _pass_over(self) -> Iterator[Any]:
        """Yield the rows of one partition after the other."""
        yield from self._rows


def run_calls(rows: Any, calls: Sequence[Call]) -> Results:
    """Make calls on the rows of one partition."""
    return [call.run(rows) for call in calls]
