"""Map-reduce over partitions of events on the workers: results are merged in a tree, and only the sum is sent here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from qbdt.training.partitions.dask.cluster import explain_losses

Found = TypeVar("Found")
Read = TypeVar("Read")

FAN_IN = 8
"""Results that one worker merges: with eight, a thousand workers are four levels."""


def map_reduce(
    client: Any,
    partitions: Sequence[Callable[[], Read]],
    find: Callable[[int, Read], Found],
    merge: Callable[[Found, Found], Found],
    name: str,
) -> Found:
    """Compute `find(number, events)` of every partition and merge the results, in their order.

    The dashboard calls the tasks qbdt-NAME-partition-3 and qbdt-NAME-merge.
    """
    label = uuid4().hex[:8]
    with explain_losses(client):
        level = [
            client.submit(_find, find, number, read, key=f"qbdt-{name}-partition-{number}-{label}", pure=False)
            for number, read in enumerate(partitions)
        ]
        depth = 0
        while len(level) > 1:
            depth += 1
            level = [
                client.submit(_merge, merge, *level[i : i + FAN_IN], key=f"qbdt-{name}-merge-{depth}-{i}-{label}")
                for i in range(0, len(level), FAN_IN)
            ]
        found: Found = level[0].result()
    return found


def _find(find: Callable[[int, Read], Found], number: int, read: Callable[[], Read]) -> Found:
    return find(number, read())


def _merge(merge: Callable[[Found, Found], Found], first: Found, *others: Found) -> Found:
    for other in others:
        first = merge(first, other)
    return first
