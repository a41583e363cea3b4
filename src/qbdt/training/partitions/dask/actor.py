"""`WorkerActor`: the partitions that live on one Dask worker during a training."""

from __future__ import annotations

import time
from asyncio import gather, get_running_loop
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import Any, NamedTuple

from qbdt.errors import require
from qbdt.threads import Workers
from qbdt.training.partitions.local import run_calls
from qbdt.training.partitions.protocol import Builder, Call, Partition, Results, combine
from qbdt.trees.device import DeviceMemory, open_device
from qbdt.trees.rows import in_memory


class WorkerTree(NamedTuple):
    """A `WorkerActor` by its worker's address and its key, and those that it passes calls on to."""

    address: str
    key: str
    below: tuple[WorkerTree, ...] = ()


class Reply(NamedTuple):
    """Results of a worker and those below it.

    With the number of their partitions, the longest time that one computed, and the bytes sent between them.
    """

    results: Results
    partitions: int
    computing: float
    sent: int
    received: int


class WorkerActor:
    """Partitions on one worker, in its memory or on its device; a Dask actor."""

    def __init__(self, n_threads: int, device: str | None = None) -> None:
        self._workers = Workers(n_threads)
        opened = open_device(device)
        self._memory = in_memory if opened is None else DeviceMemory(opened, keeps_tables=False)
        self._thread = ThreadPoolExecutor(1, "qbdt-rows")
        self._rows: dict[int, Any] = {}
        self._done: dict[int, tuple[int, Results]] = {}

    async def held(self) -> tuple[int, ...]:
        """Return which partitions are here."""
        return tuple(self._rows)

    async def clear(self) -> None:
        """Give up all partitions, which others are to replace."""
        await get_running_loop().run_in_executor(self._thread, self._clear)

    def _clear(self) -> None:
        self._rows.clear()
        self._done.clear()

    async def build(self, partitions: Mapping[int, Partition], build: Builder, history: Sequence[Call]) -> None:
        """Read and bin partitions, and make all calls that have changed the rows of the others."""
        await get_running_loop().run_in_executor(self._thread, self._build, partitions, build, history)

    def _build(self, partitions: Mapping[int, Partition], build: Builder, history: Sequence[Call]) -> None:
        for number, read in partitions.items():
            rows = build(number, read(), self._workers, self._memory)
            run_calls(rows, history)
            self._rows[number] = rows

    async def run(self, step: int, calls: Sequence[Call], below: Sequence[WorkerTree]) -> Reply:
        """Make calls here and below at the same time, and combine the results.

        Nothing is raised before the work here is done: whoever hears of a lost worker may send the step again.
        """
        own = get_running_loop().run_in_executor(self._thread, self._run, step, calls)
        replies = await gather(own, *(_pass_on(one, step, calls) for one in below), return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        first, *others = (reply for reply in replies if not isinstance(reply, BaseException))
        for other in others:
            first = Reply(
                combine(calls, first.results, other.results),
                first.partitions + other.partitions,
                max(first.computing, other.computing),
                first.sent + other.sent + size_of_calls(calls),
                first.received + other.received + size_of_results(other.results),
            )
        return first

    def _run(self, step: int, calls: Sequence[Call]) -> Reply:
        """Make calls here; a partition that has made this step before only repeats its results."""
        begin = time.perf_counter()
        if not self._rows:
            raise ValueError("no partitions are here")
        for number, rows in self._rows.items():
            if self._done.get(number, (-1, []))[0] != step:
                self._done[number] = (step, run_calls(rows, calls))
        results = reduce(partial(combine, calls), (self._done[number][1] for number in self._rows))
        return Reply(results, len(self._rows), time.perf_counter() - begin, 0, 0)


async def _pass_on(one: WorkerTree, step: int, calls: Sequence[Call]) -> Reply:
    """Call another worker's `WorkerActor`.

    Not through Dask's `Actor`: from within a worker it waits for ever where the other worker is lost.
    """
    distributed = require("distributed", "training on a cluster")
    serialised = require("distributed.protocol", "training on a cluster").to_serialize
    arguments = [serialised(argument) for argument in (step, calls, one.below)]
    answer = (
        await distributed.get_worker().rpc(one.address).actor_execute(actor=one.key, function="run", args=arguments)
    )
    if answer["status"] != "OK":
        raise answer["exception"]
    reply: Reply = answer["result"]
    return reply


def show_tree(told: Mapping[str, float]) -> Mapping[str, float]:
    """Log that a tree has begun, as an event of the topic "qbdt"; a task that is there to be seen."""
    require("distributed", "training on a cluster").get_worker().log_event("qbdt", dict(told))
    return told


def size_of_results(results: Results) -> int:
    """Bytes of the arrays."""
    return sum(result.nbytes for result in results if result is not None)


def size_of_calls(calls: Sequence[Call]) -> int:
    """Bytes of arrays and numbers in the arguments."""
    return sum(getattr(argument, "nbytes", 8) for call in calls for argument in call.arguments)
