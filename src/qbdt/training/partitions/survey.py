"""`Survey`: properties that all partitions of a training must share, found in one pass over the events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from qbdt.arrays import Categories
from qbdt.data import Dataset, Role, Tally
from qbdt.errors import DataError
from qbdt.threads import Workers
from qbdt.training.partitions.events import copy_rows
from qbdt.training.partitions.protocol import Partitions
from qbdt.training.settings import Settings
from qbdt.trees import Binning, QuantileSketch, make_binning, quantile_binning

RowCount: TypeAlias = Callable[[Dataset, Settings], tuple[int, ...]]
"""Counts the rows of each set of events that a method tells apart."""


@dataclass(frozen=True, eq=False)
class Survey:
    """Sums over the events of some partitions.

    `empty` is their dataset without rows; `rows` counts each set of events, by number of the partition; `tallies` are
    rows and yields of samples, then of variations; `sketches` of signal and background are None where bins are fixed.
    """

    empty: Dataset
    rows: dict[int, tuple[int, ...]]
    tallies: tuple[Tally, ...]
    sketches: tuple[QuantileSketch, QuantileSketch] | None
    categories: Categories = field(default_factory=dict)

    @property
    def samples(self) -> tuple[Tally, ...]:
        """Rows and yields of samples, nominal."""
        return self.tallies[: len(self.empty.samples)]

    def merge(self, other: Survey) -> Survey:
        """Survey of the partitions of both."""
        mine, its = _describe(self.empty), _describe(other.empty)
        if differing := [what for what in mine if mine[what] != its[what]]:
            raise DataError(
                f"partition {min(other.rows)} of the events has other {' and '.join(differing)} than partition "
                f"{min(self.rows)}: {its[differing[0]]} instead of {mine[differing[0]]}"
            )
        sketches = None
        if self.sketches is not None and other.sketches is not None:
            signal, background = (mine.merge(its) for mine, its in zip(self.sketches, other.sketches, strict=True))
            sketches = (signal, background)
        tallies = tuple(mine + its for mine, its in zip(self.tallies, other.tallies, strict=True))
        categories = {name: np.union1d(values, other.categories[name]) for name, values in self.categories.items()}
        return Survey(self.empty, {**self.rows, **other.rows}, tallies, sketches, categories)

    def choose_binning(self, settings: Settings, workers: Workers) -> Binning:
        """Bins of all partitions together; events that cannot be trained on are refused."""
        for role in (Role.SIGNAL, Role.BACKGROUND):
            if not self.empty.of_role(role):
                raise DataError(f"no {role} sample: signal and background are both needed")
        for tally in self.tallies:
            tally.require_usable()
        features = self.empty.features
        if self.sketches is not None:
            return quantile_binning(settings.max_bins, features, *self.sketches, workers, self.categories)
        return make_binning(settings.binning, settings.max_bins, features, (), (), workers, self.categories)


def _describe(empty: Dataset) -> dict[str, Any]:
    """Properties that all partitions share."""
    return {
        "features": empty.features,
        "samples": [(sample.name, str(sample.role)) for sample in empty.samples],
        "sources": [(s.name, str(s.kind), s.processes, s.two_sided) for s in empty.systematics],
        "folds": empty.folds,
    }


def require_same_rows(number: int, first: Sequence[int], now: Sequence[int]) -> None:
    """Refuse a partition that returns other rows when it is read again."""
    if tuple(first) != tuple(now):
        raise DataError(
            f"partition {number} of the events had {', '.join(map(str, first))} rows when it was first read and has "
            f"{', '.join(map(str, now))} now: it must return the same events each time"
        )


def survey_events(partitions: Partitions, settings: Settings, count: RowCount) -> Survey:
    """Pass over all partitions."""
    return partitions.reduce(partial(survey_partition, settings=settings, count=count), Survey.merge, "survey")


def survey_partition(number: int, dataset: Dataset, workers: Workers, settings: Settings, count: RowCount) -> Survey:
    """Pass over one partition."""
    settings.require_features(dataset.features)
    dataset.require_categories(settings.categorical_features)
    categories = dataset.categories(settings.categorical_features)
    sketches = None
    if isinstance(settings.binning, str):
        signal, background = (
            QuantileSketch.of([sample.events for sample in dataset.of_role(role)], workers).copy()
            for role in (Role.SIGNAL, Role.BACKGROUND)
        )
        sketches = (signal, background)
    rows = {number: count(dataset, settings)}
    return Survey(copy_rows(dataset, slice(0, 0)), rows, tuple(dataset.tallies()), sketches, categories)


def count_before(rows: Mapping[int, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """Rows of each set of events in all partitions before each one: the position of its first row among all."""
    numbers = sorted(rows)
    counts = np.array([rows[number] for number in numbers], dtype=np.int64)
    begins = np.cumsum(counts, axis=0) - counts
    return {number: tuple(int(begin) for begin in row) for number, row in zip(numbers, begins, strict=True)}
