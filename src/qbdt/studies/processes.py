"""Work on the same events in several processes: each reads them once."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from qbdt.errors import ClusterError

Task = TypeVar("Task")
Events = TypeVar("Events")
Result = TypeVar("Result")


def run_tasks(
    work: Callable[[Task, Events], Result], tasks: Sequence[Task], load: Callable[[], Events], n_jobs: int
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result, as they are done by `n_jobs` processes; with 1 everything is done here.

    `work` does a task with what `load` read, once in each process; both are sent to other processes, like the tasks.
    """
    if n_jobs == 1 or len(tasks) < 2:
        if tasks:
            events = load()
            for task in tasks:
                yield task, work(task, events)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_start, initargs=(work, load)) as pool:
        waiting = {pool.submit(_do, task): task for task in tasks}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool as error:
            raise ClusterError(
                f"jobs={n_jobs}: a process ended without an answer: it was killed, or there is too little memory"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_given: list[Any] = []
"""Function and loaded data of a worker process."""


def _start(work: Callable[..., Any], load: Callable[[], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one, and says so once
    _given[:] = [work, load()]


def _do(task: Any) -> Any:
    work, events = _given
    return work(task, events)
