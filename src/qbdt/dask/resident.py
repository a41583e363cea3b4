"""What lives on a worker during a training: the partitions it was given."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qbdt.boosting.parts import Build, Part
from qbdt.store import Answers, Call, Partition, added
from qbdt.store.group import answers_of
from qbdt.workers import Workers

__all__ = ["Below", "Reply", "Resident"]


class Below(NamedTuple):
    """A worker's `Resident` (a Dask actor) and those that it passes calls on to: a tree of workers."""

    actor: Any
    below: tuple[Below, ...] = ()


class Reply(NamedTuple):
    """Answers of a worker and those below it, the longest that one of them computed, and bytes between them."""

    answers: Answers
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
        self._partitions: dict[int, Partition] = {}
        self._made: dict[int, tuple[int, Answers]] = {}

    def held(self) -> tuple[int, ...]:
        """Return which partitions are here."""
        return tuple(self._partitions)

    def build(self, parts: Mapping[int, Part], build: Build, history: Sequence[Call]) -> None:
        """Read and bin parts, and make all calls that have changed the rows of the others."""
        for number, part in parts.items():
            partition = build(number, part(), self._workers)
            for call in history:
                getattr(partition, call.method)(*call.arguments)
            self._partitions[number] = partition

    def run(self, step: int, calls: Sequence[Call], below: Sequence[Below]) -> Reply:
        """Make calls here and below, and add up the answers.

        A partition that has made this step before does not make it again: its answers are repeated.
        """
        asked = [one.actor.run(step, calls, one.below) for one in below]
        begin = time.perf_counter()
        together: Answers | None = None
        for number, partition in self._partitions.items():
            if self._made.get(number, (-1, []))[0] != step:
                self._made[number] = (step, answers_of(partition, calls))
            together = added(calls, together, self._made[number][1])
        assert together is not None
        computing = time.perf_counter() - begin
        sent = received = 0
        for waiting in asked:
            reply: Reply = waiting.result()
            together = added(calls, together, reply.answers)
            computing = max(computing, reply.computing)
            sent += reply.sent + size_of_calls(calls)
            received += reply.received + size_of_answers(reply.answers)
        return Reply(together, computing, sent, received)


def size_of_answers(answers: Answers) -> int:
    """Bytes of the arrays."""
    return sum(answer.nbytes for answer in answers if answer is not None)


def size_of_calls(calls: Sequence[Call]) -> int:
    """Bytes of arrays and numbers in the arguments."""
    return sum(getattr(argument, "nbytes", 8) for call in calls for argument in call.arguments)
