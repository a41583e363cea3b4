"""Training on events in parts: what all parts must agree on, found in one pass, and the store of each part.

A part is a function without arguments that returns a `Dataset`: some rows of every sample, and the same sources. Parts
follow each other in a fixed order, which is the order of their rows; how many there are, and where, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from qbdt.data import (
    Categories,
    Dataset,
    Events,
    FoldRule,
    Role,
    Tally,
    categories_of,
    merged_categories,
    require_categories,
)
from qbdt.errors import DataError
from qbdt.threads import Workers
from qbdt.training.inputs import Start, described, feature_rules
from qbdt.training.paper.channels import Whole, make_plan
from qbdt.training.partitions.calls import Answers, Call, Hosts
from qbdt.training.partitions.group import Group, Partition
from qbdt.training.partitions.parted_rows import PartedStore
from qbdt.training.settings import Settings
from qbdt.trees import Binning, Layout, Memory, QuantileSketch, in_memory, make_binning, quantile_binning

__all__ = [
    "Builder",
    "Chosen",
    "EventsInParts",
    "Here",
    "Part",
    "PartHosts",
    "PartOf",
    "Survey",
    "agreed_binning",
    "firsts",
    "parts_of",
    "rows_of",
    "start_in_parts",
    "survey_part",
]

Part: TypeAlias = Callable[[], Dataset]

Found = TypeVar("Found")


@dataclass(frozen=True)
class Chosen:
    """A part without the events of one fold, or with some of its sources only."""

    part: Part
    without: int | None = None
    sources: tuple[str, ...] | None = None

    def __call__(self) -> Dataset:
        """Return the part."""
        dataset = self.part()
        dataset = dataset if self.sources is None else dataset.with_systematics(self.sources)
        return dataset if self.without is None else dataset.without_fold(self.without)


@dataclass(frozen=True, eq=False)
class EventsInParts:
    """Events in parts, kept in this process, and the rule that divides them into folds.

    Parameters
    ----------
    parts
        The events. Each part is read twice (by the profiled method 18 times), and is in memory while it is binned:
        a few million rows are a good size.
    folds
        Their fold rule.
    """

    parts: Sequence[Part]
    folds: FoldRule | None = None

    def __post_init__(self) -> None:
        if not self.parts:
            raise DataError("no parts of events are given")

    def without_fold(self, fold: int) -> Self:
        """Return the events of all other folds."""
        return replace(self, parts=[Chosen(part, without=fold) for part in self.parts])

    def with_systematics(self, names: Sequence[str]) -> Self:
        """Return the events with only these sources."""
        return replace(self, parts=[Chosen(part, sources=tuple(names)) for part in self.parts])

    def hosts(self, workers: Workers) -> PartHosts:
        """Return what is to hold the parts: this process, unless they are of another kind."""
        return Here(self.parts, workers)

    def start(self, settings: Settings, workers: Workers) -> Start:
        """Read, check and bin them for the paper's method."""
        return start_in_parts(self.hosts(workers), settings, workers)


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of some parts.

    Attributes
    ----------
    empty
        Their dataset without rows.
    rows
        Rows of each set of events, by number of the part.
    tallies
        Rows and yields of samples, then of variations.
    sketches
        Sketches of signal and background; None where bins are fixed.
    categories
        Values of categorical features.
    """

    empty: Dataset
    rows: dict[int, tuple[int, ...]]
    tallies: tuple[Tally, ...]
    sketches: tuple[QuantileSketch, QuantileSketch] | None
    categories: Categories = field(default_factory=dict)

    def merged(self, other: Survey) -> Survey:
        """Return what is known of the parts of both."""
        if [t.what for t in self.tallies] != [t.what for t in other.tallies] or (
            self.empty.features != other.empty.features
        ):
            raise DataError("parts of the events differ in samples, features or sources")
        sketches = None
        if self.sketches is not None and other.sketches is not None:
            signal, background = (mine.merged(its) for mine, its in zip(self.sketches, other.sketches, strict=True))
            sketches = (signal, background)
        tallies = tuple(mine + its for mine, its in zip(self.tallies, other.tallies, strict=True))
        categories = merged_categories(self.categories, other.categories)
        return Survey(self.empty, {**self.rows, **other.rows}, tallies, sketches, categories)


def survey_part(
    number: int,
    dataset: Dataset,
    workers: Workers,
    settings: Settings,
    count: Callable[[Dataset, Settings], tuple[int, ...]],
) -> Survey:
    """Pass over one part; `count` says how many rows its sets of events have."""
    settings.require_features(dataset.features)
    require_categories(dataset, settings.categorical_features)
    categories = categories_of(dataset, settings.categorical_features)
    sketches = None
    if isinstance(settings.binning, str):
        signal, background = (
            QuantileSketch.of([sample.events for sample in dataset.of_role(role)], workers).copied()
            for role in (Role.SIGNAL, Role.BACKGROUND)
        )
        sketches = (signal, background)
    rows = {number: count(dataset, settings)}
    return Survey(rows_of(dataset, slice(0, 0)), rows, tuple(dataset.tallies()), sketches, categories)


class Builder(Protocol):
    """Makes the store of a part; it travels to where the part is."""

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        """Return the store of one part."""


@dataclass(frozen=True, eq=False)
class PaperBuild:
    """Makes the store of a part for the paper's method."""

    settings: Settings
    binning: Binning
    whole: Whole
    firsts: dict[int, tuple[int, ...]]

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Partition:
        """Return the store of one part."""
        plan = make_plan(dataset, self.settings.mc_stat, self.settings.min_leaf_entries, self.whole)
        pairs = zip(plan.segments, self.firsts[number], strict=True)
        return Partition([replace(one, first=first) for one, first in pairs], self.binning, workers, memory)


class PartHosts(Hosts, Protocol):
    """Whatever holds the parts of a training."""

    def over(
        self, find: Callable[[int, Dataset, Workers], Found], merge: Callable[[Found, Found], Found], name: str
    ) -> Found:
        """Pass over all parts, and merge what is found in each, in their order; `name` is for people."""

    def build(self, build: Builder) -> None:
        """Make the stores of all parts; those made before are given up."""


class Here:
    """Parts in this process."""

    def __init__(self, parts: Sequence[Part], workers: Workers) -> None:
        self._parts, self._workers = parts, workers
        self._group = Group()

    def over(
        self, find: Callable[[int, Dataset, Workers], Found], merge: Callable[[Found, Found], Found], name: str
    ) -> Found:
        """Pass over all parts, one at a time."""
        return reduce(merge, (find(number, part(), self._workers) for number, part in enumerate(self._parts)))

    def build(self, build: Builder) -> None:
        """Bin all parts, one at a time."""
        self._group = Group()
        for number, part in enumerate(self._parts):
            self._group.add(number, build(number, part(), self._workers))

    def run(self, calls: Sequence[Call]) -> Answers:
        """Make calls on all parts."""
        return self._group.run(calls)


def agreed_binning(survey: Survey, settings: Settings, workers: Workers) -> Binning:
    """Bins of all parts together; events that cannot be trained on are refused."""
    for role in (Role.SIGNAL, Role.BACKGROUND):
        if not survey.empty.of_role(role):
            raise DataError(f"no {role} sample: signal and background are both needed")
    for tally in survey.tallies:
        tally.require_usable()
    features, known = survey.empty.features, survey.categories
    if survey.sketches is not None:
        return quantile_binning(settings.max_bins, features, *survey.sketches, workers, known)
    return make_binning(settings.binning, settings.max_bins, features, (), (), workers, known)


def start_in_parts(hosts: PartHosts, settings: Settings, workers: Workers) -> Start:
    """Agree on bins and units, make the stores, and return what a training begins with."""
    find = partial(survey_part, settings=settings, count=_planned_rows)
    survey = hosts.over(find, Survey.merged, "survey")
    empty, binning = survey.empty, agreed_binning(survey, settings, workers)
    samples = survey.tallies[: len(empty.samples)]
    whole = Whole.of(samples)
    hosts.build(PaperBuild(settings, binning, whole, firsts(survey.rows)))
    plan = make_plan(empty, settings.mc_stat, settings.min_leaf_entries, whole)
    layout = Layout(plan.segments, len(binning.features))
    criterion = plan.criterion(layout, feature_rules(binning, settings), settings.min_leaf_entries, workers)
    return Start(empty.features, described(empty, samples), binning, PartedStore(hosts, layout), criterion)


def _planned_rows(dataset: Dataset, settings: Settings) -> tuple[int, ...]:
    """Rows of each segment of the paper's method."""
    plan = make_plan(dataset, settings.mc_stat, settings.min_leaf_entries, Whole(1.0))
    return tuple(segment.events.n_rows for segment in plan.segments)


def firsts(rows: Mapping[int, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """Return where each part's rows begin in each set of events."""
    numbers = sorted(rows)
    counts = np.array([rows[number] for number in numbers], dtype=np.int64)
    begins = np.cumsum(counts, axis=0) - counts
    return {number: tuple(int(begin) for begin in row) for number, row in zip(numbers, begins, strict=True)}


@dataclass(frozen=True, eq=False)
class PartOf:
    """A part in memory: the rows of one of `count` equal shares of every set of events."""

    dataset: Dataset
    number: int
    count: int

    def __call__(self) -> Dataset:
        """Return the part."""
        if self.count == 1:
            return self.dataset

        def share(events: Events) -> Any:
            low, high = (events.n_rows * (self.number + i) // self.count for i in (0, 1))
            return np.arange(low, high)

        return self.dataset.select(share)

    def __reduce__(self) -> tuple[Any, ...]:
        """Only its own rows travel."""
        return PartOf, (rows_of(self(), slice(None)), 0, 1)


def parts_of(dataset: Dataset, count: int) -> Sequence[Part]:
    """Divide a dataset in memory."""
    if count < 1:
        raise DataError(f"{count} partitions: at least one is needed")
    return [PartOf(dataset, number, count) for number in range(count)]


def rows_of(dataset: Dataset, rows: slice) -> Dataset:
    """Return some rows of every set of events, as columns of their own."""

    def copied(events: Events) -> dict[str, Any]:
        return {name: np.array(events.column(name)) for name in events.features}

    return dataset.select(lambda events: np.arange(events.n_rows)[rows]).transform(copied)
