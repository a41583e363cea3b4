"""Sums of trees of several inner folds at the same time, each by a thread with rows of its own.

A fold's kernels are too short for many threads, but folds do not know of each other: where the rows are in this memory,
they are fitted side by side. Results are the same bits and come in the same order as one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from operator import methodcaller
from typing import TypeVar

from qbdt.threads import Workers
from qbdt.training.profile.inner_folds import count_together
from qbdt.training.profile.profiled_events import ProfiledEvents

__all__ = ["Cancelled", "fit_at_once"]

Result = TypeVar("Result")

SHARED_BYTES = 2**27
"""Memory of a fold's rows, some 1.5 million, from which spare threads share them. Below, a fold grows its trees in one
call, while threads of several folds that share rows would wait for Python: on 16 cores 200 000 rows took 35 s so,
longer than with two threads."""


class Cancelled(Exception):
    """The training was interrupted in another thread."""


def fit_at_once(
    events: ProfiledEvents,
    workers: Workers,
    jobs: Sequence[Callable[[ProfiledEvents, Workers], Result]],
    cancel: threading.Event,
    in_order: bool = False,
) -> Iterator[Result]:
    """Do all jobs; return their results in order, each as soon as it and those before are there.

    With `in_order` each begins after the one before. An interruption sets `cancel`, at which jobs are to raise
    `Cancelled`, and waits for them.
    """
    n_together = 1 if in_order else _count_together(events, workers, len(jobs))
    if n_together == 1:
        return map(methodcaller("__call__", events, workers), jobs)
    return _fit_side_by_side(events, workers, jobs, cancel, n_together)


def _fit_side_by_side(
    events: ProfiledEvents,
    workers: Workers,
    jobs: Sequence[Callable[[ProfiledEvents, Workers], Result]],
    cancel: threading.Event,
    n_together: int,
) -> Iterator[Result]:
    n_threads = max(1, workers.n_threads // n_together) if events.n_bytes >= SHARED_BYTES else 1

    def do(job: Callable[[ProfiledEvents, Workers], Result]) -> Result:
        with Workers(n_threads) as own:
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
                cancel.set()
                for future in futures:
                    future.cancel()


def _count_together(events: ProfiledEvents, workers: Workers, n_jobs: int) -> int:
    n_together = count_together(n_jobs, events.n_bytes, workers.n_threads)
    return n_together if n_together == 1 or events.fork(workers) is not None else 1
