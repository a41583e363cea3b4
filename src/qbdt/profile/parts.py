"""Inner folds: which events a sum of trees is trained on, and which ones judge it.

An event and its shifted copies belong to the same part. Where events have identifiers these decide; otherwise position
does: every set of events is cut into many blocks of neighbouring rows, so that shifted copies in the same order mostly
fall into the same block, and a sample that is sorted by process has all of them in every part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.dataset import Dataset, Events, HashFolds, Role
from qbdt.errors import DataError

__all__ = ["N_PARTS", "divided"]

N_PARTS = 3
"""Parts of the events: each judges what was trained on the other two."""

BLOCKS = 20
"""Blocks of rows per part, where events have no identifiers."""

SALT = 0x70726F66696C65
"""Makes the parts independent of folds that hash the same identifiers."""


def divided(dataset: Dataset, part: int) -> tuple[Dataset, Dataset]:
    """Events to train on, and events held out, for one of `N_PARTS` parts."""
    rule = _rule(dataset)
    trained = dataset.select(lambda events: rule(events) != part)
    held = dataset.select(lambda events: rule(events) == part)
    for what in (trained, held):
        for role in (Role.SIGNAL, Role.BACKGROUND):
            if not what.total(role) > 0:
                raise DataError(f"too few {role} events: a {1 / N_PARTS:.0%} part of them has no positive yield")
    return trained, held


def _rule(dataset: Dataset) -> Callable[[Events], NDArray[np.int64]]:
    names = dataset.folds.columns if dataset.folds is not None else _common_identifiers(dataset)
    if names:
        return HashFolds(N_PARTS, names, SALT).assign
    return _by_position


def _common_identifiers(dataset: Dataset) -> tuple[str, ...]:
    """Identifiers that all events have, nominal and varied."""
    found: list[tuple[str, ...]] = [sample.events.id_names for sample in dataset.samples]
    for source in dataset.systematics:
        for direction, _ in source.directions:
            found += [events.id_names for events in dataset.varied(source.name, direction).values()]
    return tuple(name for name in found[0] if all(name in names for names in found))


def _by_position(events: Events) -> NDArray[Any]:
    n_blocks = min(N_PARTS * BLOCKS, max(1, events.n_rows))
    block = np.arange(events.n_rows, dtype=np.int64) * n_blocks // max(1, events.n_rows)
    return np.asarray(block % N_PARTS)
