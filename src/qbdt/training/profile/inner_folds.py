"""Inner folds: which events a sum of trees is trained on, and which ones judge it.

An event and its shifted copies belong to the same part. Where events have identifiers these decide; otherwise position
does: every set of events is cut into many blocks of neighbouring rows, so that shifted copies in the same order mostly
fall into the same block, and a sample that is sorted by process has all of them in every part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.data import Dataset, Events, HashFolds
from qbdt.training.partitions.partition import Survey, firsts
from qbdt.training.settings import Settings

__all__ = ["N_PARTS", "Division", "event_rows"]

N_PARTS = 5
"""Parts of the events: each judges what was trained on the other four."""

BLOCKS = 20
"""Blocks of a part: of neighbouring rows where events have no identifiers."""

SALT = 0x70726F66696C65
"""Makes the parts independent of folds that hash the same identifiers."""

BLOCK_SALT = 0x5B1D_93C6_E2A8_4F07
"""Makes the blocks of a part independent of the parts."""


@dataclass(frozen=True, eq=False)
class Division:
    """How events are divided into `N_PARTS` parts; it travels to where they are.

    Attributes
    ----------
    names
        Identifiers that decide; none where position does.
    totals, firsts
        Rows of each set of events in all, and before each partition of it.
    """

    names: tuple[str, ...]
    totals: tuple[int, ...]
    firsts: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(cls, survey: Survey) -> Division:
        """Division of events that a survey has passed over."""
        empty = survey.empty
        names = empty.folds.columns if empty.folds is not None else _common_identifiers(empty)
        totals = tuple(int(n) for n in np.sum(list(survey.rows.values()), axis=0))
        return cls(names, totals, firsts(survey.rows))

    def divided(self, number: int, dataset: Dataset, part: int, nominal: bool = False) -> tuple[Dataset, Dataset]:
        """Events to train on, and events held out, for one of the parts and one partition of the events.

        With `nominal`, both come without any source.
        """
        rule = self._rule(number, dataset)
        wanted = dataset.with_systematics([]) if nominal else dataset
        return (
            wanted.select(lambda events: rule(events) != part),
            wanted.select(lambda events: rule(events) == part),
        )

    def held_blocks(self, number: int, dataset: Dataset, part: int) -> list[Dataset]:
        """Events held out, in `BLOCKS` blocks; like parts, blocks keep an event and its shifted copies together."""
        rule, block = self._rule(number, dataset), self._block_rule(number, dataset)
        return [
            dataset.select(lambda events, b=b: (rule(events) == part) & (block(events) == b))  # type: ignore[misc]
            for b in range(BLOCKS)
        ]

    def _rule(self, number: int, dataset: Dataset) -> Callable[[Events], NDArray[np.int64]]:
        if self.names:
            return HashFolds(N_PARTS, self.names, SALT).assign
        place = self._places(number, dataset)
        return lambda events: place(events) % N_PARTS

    def _block_rule(self, number: int, dataset: Dataset) -> Callable[[Events], NDArray[np.int64]]:
        if self.names:
            return HashFolds(BLOCKS, self.names, BLOCK_SALT).assign
        place = self._places(number, dataset)
        return lambda events: place(events) // N_PARTS

    def _places(self, number: int, dataset: Dataset) -> Callable[[Events], NDArray[np.int64]]:
        places = zip(self.firsts[number], self.totals, strict=True)
        where = {id(events): place for events, place in zip(_sets(dataset), places, strict=True)}
        return lambda events: _by_position(events.n_rows, *where[id(events)])


def event_rows(dataset: Dataset, settings: Settings) -> tuple[int, ...]:
    """Rows of each set of events, nominal and varied."""
    return tuple(events.n_rows for events in _sets(dataset))


def _sets(dataset: Dataset) -> list[Events]:
    """Return all sets of events that rows are selected of."""
    changes = [c for s in dataset.systematics for _, effect in s.directions for c in effect.values()]
    return [s.events for s in dataset.samples] + [c.replacement for c in changes if c.replacement is not None]


def _common_identifiers(dataset: Dataset) -> tuple[str, ...]:
    """Identifiers that all events have, nominal and varied."""
    found = [events.id_names for events in _sets(dataset)]
    return tuple(name for name in found[0] if all(name in names for names in found))


def _by_position(n_rows: int, first: int, total: int) -> NDArray[np.int64]:
    """Block of each of some rows, out of those of all parts."""
    n_blocks = min(N_PARTS * BLOCKS, max(1, total))
    return np.arange(first, first + n_rows, dtype=np.int64) * n_blocks // max(1, total)
