"""Threads: how a piece of work is shared, and the pool that runs the shares.

Owns the thread pool of one training or scoring. Kernels release the interpreter lock, so plain threads suffice; there
is no global thread count, nothing spins while idle, and a result never depends on how many shares were made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import count, starmap
from numbers import Integral
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qbdt.errors import ConfigError

__all__ = ["LIGHT_ROWS_PER_SHARE", "Workers", "count_cores", "group_ranges", "share_ranges"]

Result = TypeVar("Result")

MIN_ROWS_PER_SHARE = 8192
"""Below this, waking a second thread (about 50 µs) costs more than it saves."""

LIGHT_ROWS_PER_SHARE = 65536
"""The same for work of a few nanoseconds a row."""


UNEVEN = 1.25
"""Largest share of whole ranges, of an even one, with which nothing is cut."""


def count_cores() -> int:
    """Return the number of cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """A pool of threads (all cores by default) for kernels; the calling thread is one of them.

    Examples
    --------
    >>> with Workers(2) as workers:
    ...     workers.run(lambda a, b: a + b, [(1, 2), (3, 4)])
    [3, 7]
    """

    def __init__(self, n_threads: int | None = None) -> None:
        if n_threads is not None and not (isinstance(n_threads, Integral) and n_threads >= 1):
            raise ConfigError(f"n_threads={n_threads}: must be at least 1 and whole, or None for all cores")
        self.n_threads = count_cores() if n_threads is None else int(n_threads)
        self._pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def run(self, function: Callable[..., Result], shares: Sequence[tuple[Any, ...]]) -> list[Result]:
        """Call `function` once per share, several at the same time; results in the order of the shares."""
        if self._pool is None or len(shares) < 2:
            return list(starmap(function, shares))
        results: dict[int, Result] = {}
        order = count()

        def work() -> None:
            while (i := next(order)) < len(shares):
                results[i] = function(*shares[i])

        others = [self._pool.submit(work) for _ in range(min(self.n_threads, len(shares)) - 1)]
        try:
            work()
        finally:
            wait(others)
        for other in others:
            other.result()
        return [results[i] for i in range(len(shares))]

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def share_ranges(ranges: NDArray[np.int64], n_shares: int, least: int = MIN_ROWS_PER_SHARE) -> list[NDArray[np.int64]]:
    """Divide ranges, rows of (label, begin, end), evenly into at most `n_shares` shares of such rows.

    Fewer are made where each would have less than `least` rows.

    Examples
    --------
    >>> [share.tolist() for share in share_ranges(np.array([[7, 0, 20_000]]), 2)]
    [[[7, 0, 10000]], [[7, 10000, 20000]]]
    """
    sizes = ranges[:, 2] - ranges[:, 1]
    total = int(sizes.sum())
    n_shares = max(1, min(n_shares, total // least))
    if n_shares == 1:
        return [ranges]
    ends = np.cumsum(sizes)
    shares = []
    for i in range(n_shares):
        low, high = total * i // n_shares, total * (i + 1) // n_shares
        begin = np.clip(low - (ends - sizes), 0, sizes) + ranges[:, 1]
        end = np.clip(high - (ends - sizes), 0, sizes) + ranges[:, 1]
        keep = end > begin
        shares.append(np.column_stack([ranges[keep, 0], begin[keep], end[keep]]))
    return shares


def group_ranges(ranges: NDArray[np.int64], n_groups: int) -> list[NDArray[np.intp]] | None:
    """Divide whole ranges into groups of nearly as many rows, as their numbers; None where that cannot be done.

    Examples
    --------
    >>> [group.tolist() for group in group_ranges(np.array([[0, 0, 500], [1, 500, 900], [2, 900, 1000]]), 2)]
    [[0], [1, 2]]
    >>> group_ranges(np.array([[0, 0, 900], [1, 900, 1000]]), 2) is None
    True
    """
    if n_groups == 1:
        return [np.arange(len(ranges))]
    sizes = ranges[:, 2] - ranges[:, 1]
    owner, rows = np.zeros(len(ranges), dtype=np.intp), np.zeros(n_groups, dtype=np.int64)
    for number in np.argsort(-sizes, kind="stable"):  # the largest first, each to the smallest group
        owner[number] = np.argmin(rows)
        rows[owner[number]] += sizes[number]
    if rows.max() * n_groups > UNEVEN * sizes.sum():
        return None
    return [np.flatnonzero(owner == group) for group in range(n_groups)]
