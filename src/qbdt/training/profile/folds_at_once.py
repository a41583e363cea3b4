"""Sums of trees of several inner folds at the same time, each by a thread with rows of its own.

A fold's kernels are too short for many threads, but folds do not know of each other: where the rows are in this memory,
they are fitted side by side; those that are more than the threads take turns (`Turns`). Results are the same bits and
come in the same order as one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from operator import methodcaller
from typing import TypeVar

from qbdt.threads import Workers
from qbdt.training.profile.inner_folds import count_together
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.turns import Turns

Result = TypeVar("Result")

SHARED_BYTES = 2**27
"""Memory of a fold's rows, some 1.5 million, from which spare threads share them. Below, a fold grows its trees in one
call, while threads of several folds that share rows would wait for Python: on 16 cores 200 000 rows took 35 s so,
longer than with two threads."""


ENOUGH = 4
"""Threads that grow the trees of the last fold faster by sharing its rows than one of them does in one call; two do
not."""


def fit_at_once(
    events: ProfiledEvents,
    workers: Workers,
    jobs: Sequence[Callable[[ProfiledEvents, Workers], Result]],
    turns: Turns,
    in_order: bool = False,
) -> Iterator[Result]:
    """Do all jobs; return their results in order, each as soon as it and those before are there.

    With `in_order` each begins after the one before. Jobs tell `turns` of each of their trees; an interruption cancels
    them there, and waits for them.
    """
    n_together = 1 if in_order else _count_together(events, workers, len(jobs))
    if n_together == 1:
        return map(methodcaller("__call__", events, workers), jobs)
    return _fit_side_by_side(events, workers, jobs, turns, n_together)


def _fit_side_by_side(
    events: ProfiledEvents,
    workers: Workers,
    jobs: Sequence[Callable[[ProfiledEvents, Workers], Result]],
    turns: Turns,
    n_together: int,
) -> Iterator[Result]:
    n_threads = max(1, workers.n_threads // n_together) if events.n_bytes >= SHARED_BYTES else 1
    threads = _Threads(workers.n_threads, n_threads, len(jobs))
    turns.allow(workers.n_threads)

    def do(job: Callable[[ProfiledEvents, Workers], Result]) -> Result:
        with turns.work(), threads.lend() as own:
            forked = events.fork(own)
            assert forked is not None
            return job(forked, own)

    with ThreadPoolExecutor(n_together) as pool:
        futures: list[Future[Result]] = [pool.submit(do, job) for job in jobs]
        try:
            for future in futures:
                yield future.result()
        finally:
            if not all(future.done() for future in futures):
                turns.cancel()
                for future in futures:
                    future.cancel()


class _Threads:
    """The threads of a training: so many for each job, and all of them for the last one, which would be alone."""

    def __init__(self, n_all: int, n_each: int, n_jobs: int) -> None:
        self._n_all, self._n_each, self._n_left = n_all, n_each, n_jobs
        self._lent: list[Workers] = []
        self._lock = threading.Lock()

    @contextmanager
    def lend(self) -> Iterator[Workers]:
        """Threads of one job, until it ends; their number may grow meanwhile."""
        with Workers(self._n_all) as own:
            own.n_threads = self._n_each
            with self._lock:
                self._lent.append(own)
                self._give_all()
            try:
                yield own
            finally:
                with self._lock:
                    self._n_left -= 1
                    self._lent.remove(own)
                    self._give_all()

    def _give_all(self) -> None:
        if self._n_left == 1 and self._n_all >= ENOUGH:
            for own in self._lent:
                own.n_threads = self._n_all


def _count_together(events: ProfiledEvents, workers: Workers, n_jobs: int) -> int:
    n_together = count_together(n_jobs, events.n_bytes, workers.n_threads)
    return n_together if n_together == 1 or events.fork(workers) is not None else 1
