"""Inner folds: which events a sum of trees is trained on, and which ones judge it.

An event and its shifted copies belong to the same fold. Where events have identifiers these decide; otherwise position
does: every set of events is cut into many blocks of neighbouring rows, so that shifted copies in the same order mostly
fall into the same block, and a sample that is sorted by process has all of them in every fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.data import Dataset, Events, HashFolds, Sample, Systematic, Variation
from qbdt.threads import Workers
from qbdt.training.partitions.survey import Survey, count_before, require_same_rows
from qbdt.training.settings import Settings

MOST_BYTES = 2**30
"""Memory for the rows of all folds; where they need more, there are as many at once as threads."""

N_FOLDS = 5
"""Inner folds, where there are enough events: each judges trees that are trained on the other four, 80 % of them."""

BLOCKS = 20
"""Blocks of a fold, whose spread gives the MC noise of a sum (`noise_shrinkage`): 20 know a variance to a third. Where
events have no identifiers, these are blocks of neighbouring rows."""

SALT = 0x70726F66696C65
"""Makes the inner folds independent of cross-training folds that hash the same identifiers ("profile" in ASCII)."""

BLOCK_SALT = 0x5B1D_93C6_E2A8_4F07
"""Makes the blocks of a fold independent of the folds (any other number)."""


class EventSet(NamedTuple):
    """Key of a set of events: a process, nominal or replaced by a source in one direction."""

    process: str
    source: str = ""
    direction: str = ""


Masks: TypeAlias = Mapping[EventSet, NDArray[np.bool_]]
"""Rows that are chosen from each set of events."""


@dataclass(frozen=True, eq=False)
class InnerFolds:
    """Rule that divides events into k folds; it is sent to where they are.

    With k = 1 nothing is held out: all events are trained on, and judge.

    Attributes
    ----------
    names
        Identifiers that decide; none where position does.
    totals, firsts
        Rows of each set of events in all, and before each partition of it, by number of the partition.
    rows
        Rows of each set of events in each partition.
    """

    names: tuple[str, ...]
    totals: tuple[int, ...]
    firsts: Mapping[int, tuple[int, ...]]
    rows: Mapping[int, tuple[int, ...]]
    k: int = N_FOLDS
    # Fold of each row of a partition, a byte for each, once they are known: they are asked for 25 times.
    known: dict[tuple[int, int], dict[EventSet, NDArray[np.int8]]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, survey: Survey) -> InnerFolds:
        """Folds of events that a survey has passed over."""
        empty = survey.empty
        names = empty.folds.columns if empty.folds is not None else _common_identifiers(empty)
        totals = tuple(int(n) for n in np.sum(list(survey.rows.values()), axis=0))
        return cls(names, totals, count_before(survey.rows), survey.rows)

    def trained(self, fold: int) -> list[int]:
        """Return the folds that are trained on where one is held out."""
        return [other for other in range(self.k) if other != fold or self.k == 1]

    def split(
        self, number: int, dataset: Dataset, fold: int, workers: Workers, nominal: bool = False
    ) -> tuple[Dataset, Dataset]:
        """Events to train on, and events held out, for one fold and one partition of the events.

        With `nominal`, both come without any source.
        """
        numbers = self._folds_of(number, dataset)
        wanted = dataset.with_systematics([]) if nominal else dataset
        if self.k == 1:
            return wanted, wanted
        return (
            _select(wanted, {key: own != fold for key, own in numbers.items()}, workers),
            _select(wanted, {key: own == fold for key, own in numbers.items()}, workers),
        )

    def held(self, number: int, dataset: Dataset, fold: int, workers: Workers) -> Dataset:
        """Events held out alone, for one fold and one partition of the events."""
        numbers = self._folds_of(number, dataset)
        if self.k == 1:
            return dataset
        return _select(dataset, {key: own == fold for key, own in numbers.items()}, workers)

    def _folds_of(self, number: int, dataset: Dataset) -> dict[EventSet, NDArray[np.int8]]:
        """Fold of each row of a partition, which is refused where it is another one than it was."""
        require_same_rows(number, self.rows[number], [events.n_rows for _, events in _event_sets(dataset)])
        if self.k > 1 and (number, self.k) not in self.known:
            found = self._assign(number, dataset, self.k, SALT)
            self.known[number, self.k] = {key: own.astype(np.int8) for key, own in found.items()}
        return self.known.get((number, self.k), {})

    def __reduce__(self) -> tuple[Any, ...]:
        """Known folds stay where they are."""
        return InnerFolds, (self.names, self.totals, self.firsts, self.rows, self.k)

    def held_blocks(self, number: int, dataset: Dataset, fold: int, workers: Workers) -> list[Dataset]:
        """Events held out, in `BLOCKS` blocks; like folds, blocks keep an event and its shifted copies together."""
        held = self.held(number, dataset, fold, workers)
        if self.names:
            blocks = self._assign(number, held, BLOCKS, BLOCK_SALT)
        else:
            positions = self._positions(number, dataset)
            blocks = {key: own[own % self.k == fold] // self.k for key, own in positions.items()}
        alone = Workers(1)  # threads share the blocks

        def select(block: int) -> Dataset:
            return _select(held, {key: own == block for key, own in blocks.items()}, alone)

        return workers.run(select, [(block,) for block in range(BLOCKS)])

    def _assign(self, number: int, dataset: Dataset, k: int, salt: int) -> dict[EventSet, NDArray[np.int64]]:
        """Number, below k, of each row of each set of events: by identifiers, or by position."""
        if self.names:
            rule = HashFolds(k, self.names, salt)
            return {key: rule.assign(events) for key, events in _event_sets(dataset)}
        return {key: own % k for key, own in self._positions(number, dataset).items()}

    def _positions(self, number: int, dataset: Dataset) -> dict[EventSet, NDArray[np.int64]]:
        """Block of neighbouring rows that each row is in, counted over all partitions."""
        places = zip(_event_sets(dataset), self.firsts[number], self.totals, strict=True)
        return {
            key: _blocks_of_rows(events.n_rows, first, total, self.k * BLOCKS) for (key, events), first, total in places
        }


def count_rows(dataset: Dataset, settings: Settings) -> tuple[int, ...]:
    """Rows of each set of events, nominal and varied."""
    return tuple(events.n_rows for _, events in _event_sets(dataset))


def _event_sets(dataset: Dataset) -> Iterator[tuple[EventSet, Events]]:
    """All sets of events that have rows of their own: processes, then what shape sources replace them by."""
    for sample in dataset.samples:
        yield EventSet(sample.name), sample.events
    for source in dataset.systematics:
        for direction, effect in source.directions:
            for process, change in effect.items():
                if change.replacement is not None:
                    yield EventSet(process, source.name, direction), change.replacement


def _select(dataset: Dataset, masks: Masks, workers: Workers) -> Dataset:
    """Keep some rows of each set of events; threads share the sources."""
    # Row numbers serve many sources faster than a mask does.
    numbers = {s.name: np.flatnonzero(masks[EventSet(s.name)]) for s in dataset.samples} if dataset.systematics else {}

    def varied(change: Variation, key: EventSet) -> Variation:
        return change.select(numbers[key.process], lambda _: masks[key])

    def chosen(source: Systematic) -> Systematic:
        sides = {
            direction: {name: varied(one, EventSet(name, source.name, direction)) for name, one in effect.items()}
            for direction, effect in source.directions
        }
        return Systematic(source.name, source.kind, sides["up"], sides.get("down"))

    samples = [Sample(s.name, s.role, s.events[masks[EventSet(s.name)]]) for s in dataset.samples]
    return Dataset(samples, workers.run(chosen, [(source,) for source in dataset.systematics]), dataset.folds)


def _common_identifiers(dataset: Dataset) -> tuple[str, ...]:
    """Identifiers that all events have, nominal and varied."""
    found = [events.id_names for _, events in _event_sets(dataset)]
    return tuple(name for name in found[0] if all(name in names for names in found))


def _blocks_of_rows(n_rows: int, first: int, total: int, most: int) -> NDArray[np.int64]:
    """Block of each of some rows that begin at `first`, when all `total` rows are cut into blocks of equal size."""
    n_blocks = min(most, max(1, total))
    return np.arange(first, first + n_rows, dtype=np.int64) * n_blocks // max(1, total)


def count_together(n_jobs: int, n_bytes: int, n_threads: int) -> int:
    """How many folds are trained at the same time, where the rows of each need so much memory."""
    together = n_jobs if n_jobs * n_bytes <= MOST_BYTES else min(n_jobs, n_threads)
    return max(1, together)
