"""From a `Dataset` to segments of rows and to the quantities that a split is judged on: s, b and the Δ_k.

A quantity is a sum of histogram channels times a factor. A channel is one weight of the rows of one segment. Sources of
weight type are further columns of nominal rows; of shape type further segments; of norm type nothing new: their Δ_k is
a multiple of nominal channels. Only the background's uncertainty enters the paper's method: effects of a source on
signal processes are not used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from qbdt.arrays import COLUMN_BITS, Columns, Floats
from qbdt.data import Dataset, Events, Kind, Role, Systematic, Tally
from qbdt.training.kernels.split_scan import ChannelTable
from qbdt.training.settings import Settings
from qbdt.trees.rows import Channel, Extras, Layout, Segment, Side


class Quantity(NamedTuple):
    """A sum of channels times a factor: all of them weights, or all of them further columns, whose unit varies."""

    channels: tuple[Channel, ...]
    factor: float = 1.0

    @property
    def of_columns(self) -> bool:
        """Whether the channels are further columns."""
        return all(channel.column is not None for channel in self.channels)


@dataclass(frozen=True, eq=False)
class Quantities:
    """Quantities of a node, and the segments of rows that they are summed over."""

    segments: tuple[Segment, ...]  # Signal and background processes, then variations
    # signal, background: s and b
    signal: Quantity
    background: Quantity
    shifts: tuple[Quantity, ...] = ()  # Δ_k of each source
    mc_variance: Quantity | None = None  # δ² = Σw² of the background, where MC statistics count
    # Σw and Σw² behind the effective number of simulated background events, where that is limited
    entries: tuple[Quantity, ...] = ()

    def in_order(self) -> list[Quantity]:
        """All quantities in the order of the scan kernel: s, b, the Δ_k, δ², entries."""
        variance = [] if self.mc_variance is None else [self.mc_variance]
        return [self.signal, self.background, *self.shifts, *variance, *self.entries]

    def table(self, layout: Layout) -> ChannelTable:
        """Channels of all quantities as arrays for kernels that read histograms of this layout."""
        channels = [channel for quantity in self.in_order() for channel in quantity.channels]
        sizes = [len(quantity.channels) for quantity in self.in_order()]
        places = np.array([layout.place(channel) for channel in channels], dtype=np.int64)
        is_systematic, base, stride = (np.ascontiguousarray(column) for column in places.T)
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        sign = np.array([channel.sign for channel in channels], dtype=np.int64)
        return ChannelTable(first, is_systematic, base, stride, sign)


@dataclass
class _Process:
    """A background process while its columns are collected."""

    segment: int
    events: Events
    boosted: list[Callable[[], Floats]] = field(default_factory=list)

    def add_column(self, values: Callable[[], Floats]) -> Channel:
        self.boosted.append(values)
        return Channel(self.segment, len(self.boosted) - 1)


def largest_background_weight(samples: Iterable[Tally]) -> float:
    """Largest absolute weight of the nominal background."""
    return max(tally.largest for tally in samples if tally.role is Role.BACKGROUND)


def make_quantities(dataset: Dataset, settings: Settings, largest: float | None = None) -> Quantities:
    """Lay out the rows and quantities of the paper's method.

    Where the dataset is one of several partitions, `largest` is the largest absolute background weight of all of them.
    """
    signal = [Segment(sample.name, Side.SIGNAL, sample.events) for sample in dataset.of_role(Role.SIGNAL)]
    processes = {
        sample.name: _Process(len(signal) + i, sample.events)
        for i, sample in enumerate(dataset.of_role(Role.BACKGROUND))
    }
    # Δ_k: as multiples of nominal weights, as further columns of the processes, or as further segments.
    variations: list[Segment] = []
    shifts = []
    for source in dataset.systematics:
        affected = {name: processes[name] for name in source.processes if name in processes}
        if affected:
            first = len(signal) + len(processes) + len(variations)
            segments, shift = _shift(source, affected, first)
            variations += segments
            shifts.append(shift)
    # Columns of a process, in this order: Δ_k row by row, the squared weight, w and w² as simulated.
    limited = settings.min_leaf_entries > 0
    if limited and largest is None:
        largest = largest_background_weight(Tally.of(s.name, s.role, s.events) for s in dataset.samples)
    exponents = _entry_exponents(largest) if limited and largest is not None else ()
    background = [
        Segment(name, Side.BACKGROUND, process.events, extras=_extras(process, settings.mc_stat, exponents))
        for name, process in processes.items()
    ]

    def column_after_shifts(i: int) -> tuple[Channel, ...]:
        return tuple(Channel(process.segment, len(process.boosted) + i) for process in processes.values())

    return Quantities(
        (*signal, *background, *variations),
        Quantity(tuple(Channel(i) for i in range(len(signal)))),
        Quantity(tuple(Channel(process.segment) for process in processes.values())),
        tuple(shifts),
        Quantity(column_after_shifts(0)) if settings.mc_stat else None,
        tuple(
            Quantity(column_after_shifts(settings.mc_stat + i), math.ldexp(1.0, -exponent))
            for i, exponent in enumerate(exponents)
        ),
    )


def _shift(source: Systematic, processes: Mapping[str, _Process], first: int) -> tuple[list[Segment], Quantity]:
    """New segments of a source, numbered from `first`, and its Δ_k."""
    sizes = {source.relative_shift(name) for name in processes}
    size = sizes.pop() if len(sizes) == 1 else None
    if size is not None:  # the whole background of these processes scales by one size: Δ_k = size · b
        return [], Quantity(tuple(Channel(process.segment) for process in processes.values()), size)
    if source.kind is Kind.SHAPE:
        return _shift_of_events(source, processes, first)
    columns = [
        process.add_column(partial(source.row_shifts, name, process.events)) for name, process in processes.items()
    ]
    return [], Quantity(tuple(columns))


def _shift_of_events(
    source: Systematic, processes: Mapping[str, _Process], first: int
) -> tuple[list[Segment], Quantity]:
    """Segments of varied events, and Δ_k = factor · Σ sign · segment: (up − down)/2, or up − nominal."""
    segments: list[Segment] = []
    channels: list[Channel] = []
    for direction, effect in source.directions:
        for name, process in processes.items():
            varied = effect[name].apply(process.events)
            channels.append(Channel(first + len(segments), None, 1 if source.coefficients[direction] > 0 else -1))
            segments.append(Segment(f"{name}, {source.name} {direction}", Side.BACKGROUND, varied, nominal=False))
    if source.coefficients["nominal"] != 0:
        channels += [Channel(process.segment, None, -1) for process in processes.values()]
    return segments, Quantity(tuple(channels), source.coefficients["up"])


def _entry_exponents(largest: float) -> tuple[int, int]:
    """Powers of two that w and w² are multiplied by, such that the largest of each is just below 2^COLUMN_BITS."""
    exponent = math.frexp(largest)[1]
    return COLUMN_BITS - exponent, COLUMN_BITS - 2 * exponent


def _extras(process: _Process, mc_stat: bool, exponents: Sequence[int]) -> Extras:
    static = tuple(partial(_fixed_power, process.events, i + 1, exponent) for i, exponent in enumerate(exponents))
    return Extras(tuple(process.boosted), mc_stat, static)


def _fixed_power(events: Events, power: int, exponent: int) -> Columns:
    return np.rint(np.ldexp(events.weight**power, exponent)).astype(np.int32)
