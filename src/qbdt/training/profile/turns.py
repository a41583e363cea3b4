"""`Turns`: of several jobs, each in a thread of its own, as many are at work as there are threads; the others wait.

Were all at work, the operating system would change from one to another every few milliseconds, and each would find its
rows pushed out of the caches. So they take turns by the number of trees, and end at about the same time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

TREES_PER_TURN = 10
"""A tenth of a second for 200 000 rows: much longer than rows take to come back into the caches, and few beside those
after which all folds end together (`JointEnd`), where one that is ahead has grown some in vain."""


class Cancelled(Exception):
    """The training was interrupted in another thread."""


class Turns:
    """Jobs at work and jobs that wait, in the order in which their turns come."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_free = 1
        self._waiting: deque[threading.Event] = deque()
        self._own = threading.local()
        self._is_cancelled = False

    def allow(self, n_jobs: int) -> None:
        """Say how many jobs are at work at a time, before any begins."""
        self._n_free = n_jobs

    def cancel(self) -> None:
        """Let every job raise `Cancelled` after its next tree."""
        self._is_cancelled = True

    @contextmanager
    def work(self) -> Iterator[None]:
        """Wait for the first turn of a job, and give back its last."""
        self._own.n_trees = 0
        self._take()
        try:
            yield
        finally:
            self._own.n_trees = None
            with self._lock:
                self._pass_on()

    def note_tree(self) -> None:
        """Take note of a tree of a job; where its turn is over and others wait, it waits as well."""
        if self._is_cancelled:
            raise Cancelled
        n_trees = getattr(self._own, "n_trees", None)
        if n_trees is None:  # a job that is alone
            return
        self._own.n_trees = n_trees + 1
        if self._own.n_trees % TREES_PER_TURN == 0 and self._waiting:
            with self._lock:
                self._pass_on()
            self._take()

    def _take(self) -> None:
        mine = threading.Event()
        with self._lock:
            if self._n_free > 0:
                self._n_free -= 1
                return
            self._waiting.append(mine)
        mine.wait()

    def _pass_on(self) -> None:
        """Give a turn to the job that waits longest."""
        if self._waiting:
            self._waiting.popleft().set()
        else:
            self._n_free += 1
