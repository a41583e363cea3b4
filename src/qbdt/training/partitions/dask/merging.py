"""Something found in every part on the workers, and put together in a tree: only the sum comes to the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import uuid4

from qbdt.data import Dataset
from qbdt.training.partitions.dask.cluster import said_clearly
from qbdt.training.partitions.partition import Part

__all__ = ["FAN_IN", "over_parts"]

Found = TypeVar("Found")

FAN_IN = 8
"""Answers that one worker puts together."""


def over_parts(
    client: Any,
    parts: Sequence[Part],
    find: Callable[[int, Dataset], Found],
    merge: Callable[[Found, Found], Found],
    name: str,
) -> Found:
    """Compute `find(number, dataset)` of every part and merge the results, in the order of the parts.

    Parameters
    ----------
    client
        Dask client.
    parts
        The parts.
    find, merge
        What to compute, and how two results become one.
    name
        What the tasks are called on the dashboard: qbdt-NAME-part-3, qbdt-NAME-merge.
    """
    label = uuid4().hex[:8]
    with said_clearly(client):
        level = [
            client.submit(_find, find, number, part, key=f"qbdt-{name}-part-{number}-{label}", pure=False)
            for number, part in enumerate(parts)
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


def _find(find: Callable[[int, Dataset], Found], number: int, part: Part) -> Found:
    return find(number, part())


def _merge(merge: Callable[[Found, Found], Found], first: Found, *others: Found) -> Found:
    for other in others:
        first = merge(first, other)
    return first
