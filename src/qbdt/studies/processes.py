"""Work on the same events in several processes: each reads them once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, TypeVar

Task = TypeVar("Task")
Events = TypeVar("Events")
Result = TypeVar("Result")


def run_tasks(
    work: Callable[[Task, Events], Result], tasks: Sequence[Task], load: Callable[[], Events], n_jobs: int
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result, as they are done.

    Parameters
    ----------
    work
        Does a task with what was loaded; like `load` and the tasks it is sent to other processes.
    tasks
        What is to be done; the order of results is another where there are several processes.
    load
        Reads the events; called once in each process.
    n_jobs
        Processes; with 1 everything is done here.
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
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_given: list[Any] = []
"""Function and loaded data of a worker process."""


def _start(work: Callable[..., Any], load: Callable[[], Any]) -> None:
    _given[:] = [work, load()]


def _do(task: Any) -> Any:
    work, events = _given
    return work(task, events)
