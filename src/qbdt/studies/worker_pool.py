"""Work on the same events in several processes: each reads them once."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from qbdt.errors import ClusterError

Task = TypeVar("Task")
Events = TypeVar("Events")
Result = TypeVar("Result")


class WorkerPool(ProcessPoolExecutor):
    """New processes that never see Ctrl-C: it is for the process that started them, which says so once.

    Parameters
    ----------
    n_jobs
        Processes at most.
    **options
        As for `ProcessPoolExecutor`.
    """

    def __init__(self, n_jobs: int, **options: Any) -> None:
        super().__init__(n_jobs, mp_context=multiprocessing.get_context("spawn"), **options)

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Submit a task; processes that this starts have Ctrl-C blocked from the beginning."""
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            return super().submit(fn, *args, **kwargs)
        resource_tracker.ensure_running()  # it would change the mask back
        earlier = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


def run_tasks(
    work: Callable[[Task, Events], Result], tasks: Sequence[Task], load: Callable[[], Events], n_jobs: int
) -> Iterator[tuple[Task, Result]]:
    """Yield each task with its result, as they are done by `n_jobs` processes; with 1 everything is done here.

    `work` does a task with what `load` read, once in each process; both are sent to other processes, like the tasks.
    Matrices are multiplied on one thread: the last bit of a product depends on their number, which need not be the same
    in two processes. Dask, for one, leaves OPENBLAS_NUM_THREADS=1 behind for all that its own starts later.
    """
    if n_jobs == 1 or len(tasks) < 2:
        if tasks:
            events = load()
            for task in tasks:
                yield task, _do(work, events, task)
        return
    with WorkerPool(n_jobs, initializer=_start, initargs=(work, load)) as pool:
        waiting = {pool.submit(_do_with_given, task): task for task in tasks}
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Windows, where it could not be blocked
    _given[:] = [work, load()]


def _do_with_given(task: Any) -> Any:
    work, events = _given
    return _do(work, events, task)


def _do(work: Callable[[Task, Events], Result], events: Events, task: Task) -> Result:
    with threadpool_limits(1, user_api="blas"):
        return work(task, events)
