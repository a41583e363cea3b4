"""`PartitionedEvents`: events of a training in partitions, and a dataset in memory as one or several of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from qbdt.data import Dataset, Events, FoldRule
from qbdt.errors import ConfigError, DataError
from qbdt.threads import Workers
from qbdt.training.partitions.device import TurningPartitions, count_pieces
from qbdt.training.partitions.local import InMemoryPartitions, OnePartition
from qbdt.training.partitions.protocol import Partition, Partitions
from qbdt.trees.device import DeviceMemory
from qbdt.trees.rows import in_memory


@dataclass(frozen=True, eq=False)
class PartitionedEvents:
    """Events in partitions, kept in this process, and the rule that divides them into folds."""

    # Functions without arguments that each return a `Dataset`. They are called twice (by the profiled method 18 times),
    # two or three times more where weights are negative. The events are in memory while they are binned: a few million
    # rows are a good size.
    partitions: Sequence[Partition]
    folds: FoldRule | None = None  # Their fold rule

    def __post_init__(self) -> None:
        if not self.partitions:
            raise DataError("no partitions of events are given")

    def without_fold(self, fold: int) -> Self:
        """Return the events of all other folds."""
        return replace(self, partitions=[_Subset(one, without=fold) for one in self.partitions])

    def with_systematics(self, names: Sequence[str]) -> Self:
        """Return the events with only these sources."""
        return replace(self, partitions=[_Subset(one, sources=tuple(names)) for one in self.partitions])

    def map(self, change: Callable[[Dataset], Dataset]) -> Self:
        """Return the events with every partition changed; `change` is sent to where they are."""
        return replace(self, partitions=[_Changed(one, change) for one in self.partitions])

    def place(self, workers: Workers) -> Partitions:
        """Keep the rows in this process."""
        if len(self.partitions) == 1:
            return OnePartition(self.partitions[0], workers)
        return InMemoryPartitions(self.partitions, workers)


def place_events(
    events: Dataset | PartitionedEvents, workers: Workers, memory: DeviceMemory | None = None
) -> Partitions:
    """Rows of a training where its events ask for them; a dataset is in memory, or on a device, in pieces if needed."""
    if isinstance(events, Dataset):
        n_pieces = 1 if memory is None else count_pieces(events, memory)
        if memory is None or n_pieces == 1:
            return OnePartition(_Share(events, 0, 1), workers, in_memory if memory is None else memory)
        return TurningPartitions(divide_dataset(events, n_pieces), workers, memory)
    if memory is not None:
        raise ConfigError(
            "device='cuda' trains on a dataset in memory; these events are in partitions: on a cluster, give "
            "OnCluster(..., device='cuda')"
        )
    return events.place(workers)


@dataclass(frozen=True)
class _Subset:
    """A partition without the events of one fold, or with some of its sources only."""

    partition: Partition
    without: int | None = None
    sources: tuple[str, ...] | None = None

    def __call__(self) -> Dataset:
        dataset = self.partition()
        dataset = dataset if self.sources is None else dataset.with_systematics(self.sources)
        return dataset if self.without is None else dataset.without_fold(self.without)


@dataclass(frozen=True)
class _Changed:
    """A partition with some change."""

    partition: Partition
    change: Callable[[Dataset], Dataset]

    def __call__(self) -> Dataset:
        return self.change(self.partition())


@dataclass(frozen=True, eq=False)
class _Share:
    """The rows of one of `count` equal shares of every set of events of a dataset in memory."""

    dataset: Dataset
    number: int
    count: int

    def __call__(self) -> Dataset:
        if self.count == 1:
            return self.dataset

        def share(events: Events) -> Any:
            low, high = (events.n_rows * (self.number + i) // self.count for i in (0, 1))
            return np.arange(low, high)

        return self.dataset.select(share)

    def __reduce__(self) -> tuple[Any, ...]:
        """Only its own rows are sent."""
        return _Share, (copy_rows(self(), slice(None)), 0, 1)


def divide_dataset(dataset: Dataset, count: int) -> Sequence[Partition]:
    """Divide a dataset in memory into partitions of equal size."""
    if count < 1:
        raise DataError(f"{count} partitions: at least one is needed")
    return [_Share(dataset, number, count) for number in range(count)]


def copy_rows(dataset: Dataset, rows: slice) -> Dataset:
    """Copy some rows of every set of events, and no others."""

    def copied(events: Events) -> dict[str, Any]:
        return {name: np.array(events.column(name)) for name in events.features}

    return dataset.select(lambda events: np.arange(events.n_rows)[rows]).transform(copied)
