"""What lives on a worker during a training: the partitions it was given."""

from __future__ import annotations

import time
from asyncio import gather, get_running_loop
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from qbdt.errors import require
from qbdt.threads import Workers
from qbdt.training.partitions.calls import Answers, Call, added
from qbdt.training.partitions.group import answers_of
from qbdt.training.partitions.partition import Builder, Part

__all__ = ["Below", "Reply", "Resident", "show_tree", "size_of_answers", "size_of_calls"]


class Below(NamedTuple):
    """A `Resident` by its worker's address and its key, and those that it passes calls on to: a tree of workers."""

    address: str
    key: str
    below: tuple[Below, ...] = ()


class Reply(NamedTuple):
    """Answers of a worker and those below it, of how many partitions, the longest that one computed, bytes between."""

    answers: Answers
    partitions: int
    computing: float
    sent: int
    received: int


class Resident:
    """Partitions on one worker; a Dask actor.

    Parameters
    ----------
    n_threads
        Threads for kernels.
    """

    def __init__(self, n_threads: int) -> None:
        self._workers = Workers(n_threads)
        self._thread = ThreadPoolExecutor(1, "qbdt-rows")
        self._partitions: dict[int, Any] = {}
        self._made: dict[int, tuple[int, Answers]] = {}

    async def held(self) -> tuple[int, ...]:
        """Return which partitions are here."""
        return tuple(self._partitions)

    async def clear(self) -> None:
        """Give up all partitions, which others are to replace."""
        await get_running_loop().run_in_executor(self._thread, self._clear)

    def _clear(self) -> None:
        self._partitions.clear()
        self._made.clear()

    async def build(self, parts: Mapping[int, Part], build: Builder, history: Sequence[Call]) -> None:
        """Read and bin parts, and make all calls that have changed the rows of the others."""
        await get_running_loop().run_in_executor(self._thread, self._build, parts, build, history)

    def _build(self, parts: Mapping[int, Part], build: Builder, history: Sequence[Call]) -> None:
        for number, part in parts.items():
            partition = build(number, part(), self._workers)
            for call in history:
                getattr(partition, call.method)(*call.arguments)
            self._partitions[number] = partition

    async def run(self, step: int, calls: Sequence[Call], below: Sequence[Below]) -> Reply:
        """Make calls here and below at the same time, and add up the answers.

        Nothing is raised before the work here is done: whoever hears of a lost worker may send the step again.
        """
        own = get_running_loop().run_in_executor(self._thread, self._run, step, calls)
        replies = await gather(own, *(_passed_on(one, step, calls) for one in below), return_exceptions=True)
        for reply in replies:
            if isinstance(reply, BaseException):
                raise reply
        first, *others = (reply for reply in replies if not isinstance(reply, BaseException))
        for other in others:
            first = Reply(
                added(calls, first.answers, other.answers),
                first.partitions + other.partitions,
                max(first.computing, other.computing),
                first.sent + other.sent + size_of_calls(calls),
                first.received + other.received + size_of_answers(other.answers),
            )
        return first

    def _run(self, step: int, calls: Sequence[Call]) -> Reply:
        """Make calls here; a partition that has made this step before only repeats its answers."""
        begin = time.perf_counter()
        together: Answers | None = None
        for number, partition in self._partitions.items():
            if self._made.get(number, (-1, []))[0] != step:
                self._made[number] = (step, answers_of(partition, calls))
            together = added(calls, together, self._made[number][1])
        if together is None:
            raise ValueError("no partitions are here")
        return Reply(together, len(self._partitions), time.perf_counter() - begin, 0, 0)


async def _passed_on(one: Below, step: int, calls: Sequence[Call]) -> Reply:
    """Call another worker's `Resident`.

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


def size_of_answers(answers: Answers) -> int:
    """Bytes of the arrays."""
    return sum(answer.nbytes for answer in answers if answer is not None)


def size_of_calls(calls: Sequence[Call]) -> int:
    """Bytes of arrays and numbers in the arguments."""
    return sum(getattr(argument, "nbytes", 8) for call in calls for argument in call.arguments)
