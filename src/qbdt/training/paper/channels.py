"""From a `Dataset` to what the core works on: segments of rows, and the quantities that a split is judged on.

Only the background's uncertainty enters the paper's method: what a source does to signal processes is not used here.
Sources of weight type are columns of the nominal rows, of shape type extra rows, of norm type nothing at all: Δ is then
a multiple of the nominal yield of the processes they act on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from qbdt.arrays import COLUMN_BITS, Columns, Floats
from qbdt.data import Dataset, Events, Kind, Role, Systematic, Tally
from qbdt.threads import Workers
from qbdt.training.paper.criterion import PaperCriterion, Quantity, Term
from qbdt.trees.growth import FeatureRules
from qbdt.trees.rows import Extras, Layout, Segment, Side

__all__ = ["Plan", "Whole", "make_plan"]


class Part(NamedTuple):
    """A channel of the plan: a segment's own weight (column None) or one of its further columns, and a sign."""

    segment: int
    column: int | None = None
    sign: int = 1


@dataclass(frozen=True, eq=False)
class Plan:
    """Segments, and the parts of s, b, each Δ_k (with a factor), Σw², and the two sums behind effective entries."""

    segments: tuple[Segment, ...]
    signal: tuple[Part, ...]
    background: tuple[Part, ...]
    sources: tuple[tuple[tuple[Part, ...], float], ...]
    squares: tuple[Part, ...]
    entries: tuple[tuple[tuple[Part, ...], float], ...]

    def criterion(self, layout: Layout, features: FeatureRules, min_entries: float, workers: Workers) -> PaperCriterion:
        """Return the criterion that reads histograms of this layout."""

        def quantity(parts: Sequence[Part], factor: float = 1.0) -> Quantity:
            return Quantity(tuple(term(part) for part in parts), factor, all(p.column is not None for p in parts))

        def term(part: Part) -> Term:
            if part.column is None and part.segment < layout.n_nominal:
                return Term(*layout.main(part.segment), part.sign)
            return Term(*layout.detail(part.segment, part.column or 0), part.sign)

        return PaperCriterion(
            quantity(self.signal),
            quantity(self.background),
            [quantity(parts, factor) for parts, factor in self.sources],
            quantity(self.squares) if self.squares else None,
            [quantity(parts, factor) for parts, factor in self.entries],
            min_entries,
            features,
            workers,
        )


@dataclass
class _Process:
    """A background process while the plan is made."""

    segment: int
    events: Events
    boosted: list[Callable[[], Floats]] = field(default_factory=list)


class Whole(NamedTuple):
    """What a part of the events must know of all: the largest absolute weight of the background."""

    largest: float

    @classmethod
    def of(cls, samples: Iterable[Tally]) -> Whole:
        """Of tallies of all samples, nominal."""
        return cls(max(tally.largest for tally in samples if tally.role is Role.BACKGROUND))


def make_plan(dataset: Dataset, mc_stat: bool, min_entries: float, whole: Whole | None = None) -> Plan:
    """Lay out the rows and quantities of the paper's method.

    Parameters
    ----------
    dataset
        The events, or a part of them.
    mc_stat, min_entries
        As in `Settings`.
    whole
        Where the dataset is a part: of which whole.
    """
    signals = [Segment(sample.name, Side.SIGNAL, sample.events) for sample in dataset.of_role(Role.SIGNAL)]
    processes = {
        sample.name: _Process(len(signals) + i, sample.events)
        for i, sample in enumerate(dataset.of_role(Role.BACKGROUND))
    }
    variations: list[Segment] = []
    sources = []
    for source in dataset.systematics:
        acted_on = {name: processes[name] for name in source.processes if name in processes}
        if acted_on:
            first = len(signals) + len(processes) + len(variations)
            segments, parts, factor = _source(source, acted_on, first)
            variations += segments
            sources.append((parts, factor))
    static: list[tuple[Callable[[], Columns], ...]] = [()] * len(processes)
    units: tuple[float, ...] = ()
    if min_entries > 0:
        whole = whole or Whole.of(Tally.of(s.name, s.role, s.events) for s in dataset.samples)
        static, units = _static(list(processes.values()), whole)
    backgrounds = [
        Segment(name, Side.BACKGROUND, process.events, extras=Extras(tuple(process.boosted), mc_stat, integers))
        for (name, process), integers in zip(processes.items(), static, strict=True)
    ]

    def columns(after: int) -> tuple[Part, ...]:
        """Return the column that comes so many after the boosted ones, of every process."""
        return tuple(Part(process.segment, len(process.boosted) + after) for process in processes.values())

    return Plan(
        (*signals, *backgrounds, *variations),
        tuple(Part(i) for i in range(len(signals))),
        tuple(Part(process.segment) for process in processes.values()),
        tuple(sources),
        columns(0) if mc_stat else (),
        tuple((columns(mc_stat + i), unit) for i, unit in enumerate(units)),
    )


def _source(
    source: Systematic, processes: dict[str, _Process], first: int
) -> tuple[list[Segment], tuple[Part, ...], float]:
    """New segments of a source (numbered from `first`), and its Δ: parts and factor."""
    size = _common_size(source, list(processes))
    if size is not None:
        return [], tuple(Part(process.segment) for process in processes.values()), size
    if source.kind is Kind.SHAPE:
        return _shape(source, processes, first)
    for name, process in processes.items():
        process.boosted.append(partial(source.row_shifts, name, process.events))
    return [], tuple(Part(process.segment, len(process.boosted) - 1) for process in processes.values()), 1.0


def _common_size(source: Systematic, processes: Sequence[str]) -> float | None:
    """Return the relative size of a source that scales whole processes by one size, otherwise None."""
    sizes = {source.relative_shift(name) for name in processes}
    return sizes.pop() if len(sizes) == 1 else None


def _shape(
    source: Systematic, processes: dict[str, _Process], first: int
) -> tuple[list[Segment], tuple[Part, ...], float]:
    """Segments of varied events, and Δ = factor · Σ sign · segment."""
    segments: list[Segment] = []
    parts: list[Part] = []
    for direction, effect in source.directions:
        for name, process in processes.items():
            varied = effect[name].apply(process.events)
            parts.append(Part(first + len(segments), None, 1 if source.coefficients[direction] > 0 else -1))
            segments.append(Segment(f"{name}, {source.name} {direction}", Side.BACKGROUND, varied, nominal=False))
    if source.coefficients["nominal"] != 0:
        parts += [Part(process.segment, None, -1) for process in processes.values()]
    return segments, tuple(parts), source.coefficients["up"]


def _static(
    processes: Sequence[_Process], whole: Whole
) -> tuple[list[tuple[Callable[[], Columns], ...]], tuple[float, ...]]:
    """Columns of w and w² as integers for the effective number of events, and the value of a unit of each."""
    exponents = tuple(COLUMN_BITS - power * math.frexp(whole.largest)[1] for power in (1, 2))
    columns = [
        tuple(_fixed_power(process.events, i + 1, exponent) for i, exponent in enumerate(exponents))
        for process in processes
    ]
    return columns, tuple(math.ldexp(1.0, -exponent) for exponent in exponents)


def _fixed_power(events: Events, power: int, exponent: int) -> Callable[[], Columns]:
    return lambda: np.rint(np.ldexp(events.weight**power, exponent)).astype(np.int32)
