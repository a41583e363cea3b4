"""`Partitions`: the one way in which a training talks to its rows, wherever they live.

A method of the rows is called on every partition, and the results are combined: integers are added, of bounds the
largest counts, so neither the number of partitions nor their order changes a bit. A call names a function, for example
`total(RatioRows.yields, leaves, scale)`. In memory there is one partition, called directly; on disk, a call is one
pass over all partitions; on a cluster all calls of one `ask`, and all changes since the last, are one message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from qbdt.data import Dataset
from qbdt.threads import Workers
from qbdt.trees.device import DeviceRows
from qbdt.trees.growth import RowStore
from qbdt.trees.rows import Memory, in_memory

Found = TypeVar("Found")
P = ParamSpec("P")

Partition: TypeAlias = Callable[[], Dataset]
"""Reads one partition of the events: some rows of every sample, and the same sources. Partitions follow each other in a
fixed order, which is the order of their rows."""

Find: TypeAlias = Callable[[int, Dataset, Workers], Found]
"""Finds something in one partition, given its number."""

Merge: TypeAlias = Callable[[Found, Found], Found]

Results: TypeAlias = list[NDArray[Any] | None]
"""Results of calls, one for each; None for those that return nothing."""


class Combine(StrEnum):
    """How the results of partitions become one."""

    SUM = "sum"
    MAX = "max"
    NOTHING = "nothing"


class Call(NamedTuple):
    """A method of the rows of every partition.

    `changes` says whether it changes the rows: these calls are repeated where a lost partition is built anew. `begins`
    says that it begins a tree: of finished trees, only which rows were in which nodes is repeated.
    """

    method: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    combine: Combine = Combine.NOTHING
    changes: bool = False
    begins: bool = False

    def run(self, rows: Any) -> NDArray[Any] | None:
        """Call it on the rows of one partition."""
        result: NDArray[Any] | None = method_of(rows, self.method)(rows, *self.arguments)
        return None if self.combine is Combine.NOTHING else result


def method_of(rows: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the CPU's rows, or that of the same name where the rows are on a device."""
    if isinstance(rows, DeviceRows) and "." in method.__qualname__:  # a function takes rows of any kind
        own: Callable[..., Any] = getattr(type(rows), method.__name__, method)
        return own
    return method


def total(method: Callable[Concatenate[Any, P], NDArray[Any]], *arguments: P.args, **_: P.kwargs) -> Call:
    """Call whose results are added up."""
    return Call(method, arguments, Combine.SUM)


def largest(method: Callable[Concatenate[Any, P], NDArray[Any]], *arguments: P.args, **_: P.kwargs) -> Call:
    """Call of whose results the largest counts, entry by entry."""
    return Call(method, arguments, Combine.MAX)


def combine(calls: Sequence[Call], one: Results, other: Results) -> Results:
    """Combine the results of two sets of partitions; neither is changed, since both may be kept to be repeated.

    Examples
    --------
    >>> calls = [total(np.sum), largest(np.max)]
    >>> combine(calls, [np.array([2]), np.array([2])], [np.array([3]), np.array([3])])
    [array([5]), array([3])]
    """
    return [
        None if call.combine is Combine.NOTHING else _COMBINE[call.combine](mine, its)
        for call, mine, its in zip(calls, one, other, strict=True)
    ]


_COMBINE: dict[Combine, Any] = {Combine.SUM: np.add, Combine.MAX: np.maximum}


class Builder(Protocol):
    """Bins the events of a partition into rows; it is sent to where the partition is."""

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        """Return the rows of one partition."""


class Partitions(Protocol):
    """Where the events and rows of a training live: in memory, on disk, or on the workers of a cluster."""

    def reduce(self, find: Find[Found], merge: Merge[Found], name: str) -> Found:
        """Find something in the events of every partition, and merge it in their order; `name` is for people."""

    def build(self, build: Builder, final: bool = False) -> None:
        """Build the rows of every partition; earlier ones are given up.

        Where these are the `final` ones, the events are not read again, except to replace a lost partition.
        """

    def tell(self, method: Callable[Concatenate[Any, P], object], *arguments: P.args, **_: P.kwargs) -> None:
        """Change the rows of every partition, at the latest when something is asked next."""

    def ask(self, *calls: Call) -> list[NDArray[Any]]:
        """Make calls on every partition, together with the changes that wait; return the combined results."""

    def fork(self, workers: Workers) -> Partitions | None:
        """Return the same events for another thread, with rows of its own; None where rows are not in this memory."""

    def begin_tree(self, call: Call, *others: Call) -> tuple[list[NDArray[Any]], RowStore]:
        """Begin a tree by a call that changes the rows; return the results of all calls, and the nodes of the tree."""
