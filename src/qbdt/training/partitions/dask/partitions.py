"""`OnCluster`: events whose partitions live on Dask workers; a training outlives the loss of some of these.

A worker's partitions are behind one Dask actor. The driver sends each step to a few of them, which pass it on to
others and combine the results: a tree, so that no machine talks to all. Where a worker is lost, its partitions are read
again elsewhere and repeat all changes of the rows since the beginning; the step is then repeated, and those that had
made it already only repeat their results.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any
from uuid import uuid4

from qbdt.data import Dataset
from qbdt.errors import ClusterError, DataError
from qbdt.tables import Table
from qbdt.threads import Workers
from qbdt.training.partitions.dask.actor import (
    Reply,
    WorkerActor,
    WorkerTree,
    show_tree,
    size_of_calls,
    size_of_results,
)
from qbdt.training.partitions.dask.cluster import describe_loss, require_device
from qbdt.training.partitions.dask.map_reduce import FAN_IN, map_reduce
from qbdt.training.partitions.events import PartitionedEvents
from qbdt.training.partitions.protocol import Builder, Call, Find, Found, Merge, Partition, Partitions, Results, combine
from qbdt.training.partitions.rows import PartitionRows
from qbdt.training.partitions.spread import SpreadPartitions

LOGGER = logging.getLogger("qbdt")

PATIENCE = 60.0
"""Seconds to wait for a worker where there is none: batch systems start the next one within a minute, or not soon."""

ATTEMPTS = 8
"""How often a step is tried; each time workers may have been lost. A step that fails more often is at fault itself."""


LOOK_AROUND = 1.0
"""Seconds after which a worker that has not answered is looked for: longer than a step of a tree usually takes."""


@dataclass
class Traffic:
    """Counted over a training."""

    # trees, splits, trips: trees begun, nodes split, and messages that went out to all workers and came back
    trees: int = 0
    splits: int = 0
    trips: int = 0
    # sent, received: bytes of arrays to and from workers, over all hops between machines
    sent: int = 0
    received: int = 0
    computing: float = 0.0  # Seconds in which the slowest worker computed, over all trips
    waiting: float = 0.0  # Seconds of the trips that nobody computed in: communication
    rebuilt: int = 0  # Partitions that were built anew after a worker was lost

    def tables(self) -> tuple[Table, ...]:
        """Return the counts per tree and per split."""
        trees, splits = max(self.trees, 1), max(self.splits, 1)
        rows = (
            ("trees", f"{self.trees}"),
            ("round trips per tree", f"{self.trips / trees:.1f}"),
            ("workers compute, seconds per tree", f"{self.computing / trees:.4f}"),
            ("communication, seconds per tree", f"{self.waiting / trees:.4f}"),
            ("bytes to workers per split", f"{self.sent / splits:.0f}"),
            ("bytes from workers per split", f"{self.received / splits:.0f}"),
            ("partitions built anew", f"{self.rebuilt}"),
        )
        return (Table("Training on the cluster", ("", "value"), rows),)


@dataclass(frozen=True, eq=False)
class OnCluster(PartitionedEvents):
    """Events on the workers of a Dask cluster, for `qbdt.training.methods.train`.

    Parameters
    ----------
    partitions, folds
        As for `PartitionedEvents`; partitions are read on the workers.
    client
        Dask client.
    traffic
        Filled with round trips, bytes and waiting times.
    fan_in
        Workers that one worker passes calls on to.
    device
        Where the rows of a worker are: None for its memory, "cuda" for the first GPU that it sees.
    """

    client: Any = None
    traffic: Traffic = field(default_factory=Traffic)
    fan_in: int = FAN_IN
    device: str | None = None

    def place(self, workers: Workers) -> Partitions:
        """Keep the rows on the cluster's workers."""
        require_device(self.client, self.device)
        return _DaskPartitions(self.client, self.partitions, self.traffic, self.fan_in, self.device)


class _Lost(Exception):
    """A worker did not answer."""


def _find(number: int, dataset: Dataset, find: Find[Found]) -> Found:
    with Workers(1) as workers:
        return find(number, dataset, workers)


class _DaskPartitions(SpreadPartitions):
    """Partitions on workers."""

    def __init__(
        self, client: Any, partitions: Sequence[Partition], traffic: Traffic, fan_in: int, device: str | None
    ) -> None:
        super().__init__()
        self._device = device
        self._client, self._partitions, self._traffic, self._fan_in = client, partitions, traffic, fan_in
        self._label = uuid4().hex[:8]
        self._actors: dict[str, Any] = {}
        self._held: dict[str, list[int]] = {}
        self._builder: Builder | None = None
        self._history: list[Call] = []
        self._step = 0
        self._shown: list[Any] = []

    def reduce(self, find: Find[Found], merge: Merge[Found], name: str) -> Found:
        """Pass over all partitions where they are."""
        return map_reduce(self._client, self._partitions, partial(_find, find=find), merge, name)

    def _build(self, build: Builder) -> None:
        """Bin all partitions on the workers; the rows of an earlier build are given up first."""
        self._builder, self._history, self._held = build, [], {}
        self._step += 1
        for address in list(self._actors):
            with suppress(_Lost):
                self._wait(self._call(address, "clear"), [address])
        self._place(range(len(self._partitions)))
        self._actors = {address: one for address, one in self._actors.items() if address in self._held}

    def run(self, calls: Sequence[Call]) -> Results:
        """Make calls on all partitions; the results are the same whatever happens to workers meanwhile."""
        self._step += 1
        for _ in range(ATTEMPTS):
            try:
                results = self._send(calls)
            except _Lost as lost:
                reason = str(lost)
                LOGGER.warning("after %d trees: %s", self._traffic.trees, reason)
                self._recover()
            else:
                self._note(calls)
                return results
        raise ClusterError(f"gave up after {ATTEMPTS} attempts to repeat a step of the training: {reason}")

    def _note(self, calls: Sequence[Call]) -> None:
        """Keep what a lost partition would have to repeat; weights of finished trees need not be fixed again."""
        for call in calls:
            if call.begins:
                again = Call(PartitionRows.repeat_tree, changes=True)
                self._history = [again if one.begins else one for one in self._history]
                self._traffic.trees += 1
                self._show()
            self._traffic.splits += call.method is PartitionRows.split
            if call.changes:
                self._history.append(call)

    def _show(self) -> None:
        """Have a small task with the number of the tree that has begun run somewhere, for who looks at the dashboard.

        The work itself is in calls to actors, which Dask does not show. Nobody waits for these tasks.
        """
        traffic = self._traffic
        if self._client.status == "running":
            key = f"qbdt-tree-{traffic.trees}-{self._label}"
            told = {"tree": traffic.trees, "computing": traffic.computing, "waiting": traffic.waiting}
            self._shown.append(self._client.submit(show_tree, told, key=key, pure=False))

    def _send(self, calls: Sequence[Call]) -> Results:
        begin = time.perf_counter()
        tops = self._tree()
        waiting = [self._call(one.address, "run", self._step, calls, one.below) for one in tops]
        replies: list[Reply] = [self._wait(future, self._actors) for future in waiting]
        found = sum(reply.partitions for reply in replies)
        if found != len(self._partitions):
            raise _Lost(f"{len(self._partitions) - found} partitions have no worker")
        self._count(calls, replies, time.perf_counter() - begin)
        return reduce(partial(combine, calls), (reply.results for reply in replies))

    def _count(self, calls: Sequence[Call], replies: Sequence[Reply], seconds: float) -> None:
        """Note what a round trip has cost."""
        traffic, computing = self._traffic, max(reply.computing for reply in replies)
        traffic.trips += 1
        traffic.sent += size_of_calls(calls) * len(replies) + sum(reply.sent for reply in replies)
        traffic.received += sum(size_of_results(reply.results) + reply.received for reply in replies)
        traffic.computing += computing
        traffic.waiting += seconds - computing

    def _tree(self) -> list[WorkerTree]:
        """Actors as trees: the driver talks to at most `fan_in`, and so does each of them."""

        def below(addresses: list[str]) -> list[WorkerTree]:
            shares = [addresses[i :: self._fan_in] for i in range(min(self._fan_in, len(addresses)))]
            return [WorkerTree(share[0], self._actors[share[0]].key, tuple(below(share[1:]))) for share in shares]

        return below(sorted(self._actors))

    def _call(self, address: str, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self._actors[address], method)(*arguments)
        except ValueError as error:
            raise _Lost(str(error)) from None

    def _wait(self, future: Any, addresses: Iterable[str]) -> Any:
        """Wait for an answer, and look from time to time whether those asked are still there."""
        while True:
            try:
                return future.result(timeout=LOOK_AROUND)
            except TimeoutError:
                absent = set(addresses) - set(self._live())
                if absent:
                    raise _Lost(f"worker {', '.join(sorted(absent))} is gone") from None
            except (OSError, ValueError, KeyError) as error:
                if isinstance(error, DataError):
                    raise
                raise _Lost(f"a worker does not answer ({error})") from None

    def _live(self) -> dict[str, int]:
        """Addresses of the workers, and their threads."""
        if self._client.status != "running":
            raise ClusterError(describe_loss(self._client))
        try:
            return dict(self._client.nthreads())
        except (OSError, TimeoutError, AttributeError) as error:
            raise ClusterError(describe_loss(self._client)) from error

    def _recover(self) -> None:
        """Give the partitions of lost workers to others."""
        lost = [address for address in self._held if not self._is_there(address)]
        numbers = [number for address in lost for number in self._held.pop(address)]
        for address in lost:
            self._actors.pop(address, None)
        self._traffic.rebuilt += len(numbers)
        if numbers:
            LOGGER.warning("partitions %s are built anew", ", ".join(map(str, numbers)))
            self._place(numbers)
        else:
            time.sleep(LOOK_AROUND / 10)

    def _is_there(self, address: str) -> bool:
        if address not in self._actors or address not in self._live():
            return False
        try:
            held = self._wait(self._call(address, "held"), [address])
        except _Lost:
            return False
        return set(held) == set(self._held[address])

    def _place(self, numbers: Sequence[int]) -> None:
        """Have partitions built where fewest are; a worker that is lost meanwhile is found by the next step."""
        live = self._wait_for_workers()
        share: dict[str, list[int]] = {address: [] for address in sorted(live)}
        for number in numbers:
            least = min(share, key=lambda a: ((len(self._held.get(a, ())) + len(share[a]) + 1) / live[a], a))
            share[least].append(number)
        started = []
        for address, mine in share.items():
            if mine:
                self._held.setdefault(address, []).extend(mine)
                with suppress(_Lost):
                    started.append((address, self._start_build(address, live[address], mine)))
        for address, future in started:
            with suppress(_Lost):
                self._wait(future, [address])

    def _start_build(self, address: str, n_threads: int, numbers: list[int]) -> Any:
        if address not in self._actors:
            key = f"qbdt-rows-{self._label}-{uuid4().hex[:8]}"
            options = {"actor": True, "workers": [address], "key": key, "pure": False}
            made = self._client.submit(WorkerActor, n_threads, self._device, **options)
            try:
                self._actors[address] = made.result(timeout=PATIENCE)
            except (OSError, ValueError) as error:
                raise _Lost(str(error)) from None
        partitions = {number: self._partitions[number] for number in numbers}
        return self._call(address, "build", partitions, self._builder, self._history)

    def _wait_for_workers(self) -> dict[str, int]:
        end = time.monotonic() + PATIENCE
        while not (live := self._live()):
            if time.monotonic() > end:
                raise ClusterError(f"the cluster has had no workers for {PATIENCE:.0f} s")
            time.sleep(LOOK_AROUND / 10)
        return live
