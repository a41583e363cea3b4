"""Events at a working point: expected densities, and what sources change, at θ₀ instead of at the nominal point.

A fit makes a template of the nominal, up and down templates n, u and d, linear in all three. So its expectation at θ₀
and its derivative there are sums of simulated events with other weights, and training needs to know nothing else:

    value at θ₀        n + |θ₀| (u − n), below 0 n + |θ₀| (d − n)
    derivative at θ₀   (u − d)/2 + b'(θ₀) (u + d − 2n)/16,   b'(θ) = θ (30 − 40 θ² + 18 θ⁴), and 8 sign θ beyond ±1

The derivative is that of HistFactory's code 4p, which the fit has. The value is piecewise linear: it differs from code
4p by at most 7 % of u + d − 2n, and up to |θ₀| = 1 has no negative weights. Sources that scale a process multiply all
that it consists of; changes by other sources are added up, as in the fit. Scalings have the same value and derivative,
where the fit has code 4 for them: the values agree at 0 and ±1, the derivatives do not.

The bend, u + d − 2n, is a difference of large numbers, and where it is only MC noise it makes that of the derivative up
to four times as large. So training measures it first (`bend_dataset`), and names the sources whose response is linear
as far as the events can tell: their derivative is (u − d)/2 anywhere. Their value stays as it is, since both forms have
the same expectation, and this one needs no negative weights.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.flat_systematic import Kind
from qbdt.data.sample import Sample
from qbdt.data.systematic import Systematic
from qbdt.data.variations import Replacement, Reweighting, Scaling, Variation
from qbdt.errors import DataError, hint_at

BEND = (-1.0, 0.5, 0.5)
"""Coefficients of the nominal, up and down events in half the bend."""


def bend_dataset(dataset: Dataset, names: Collection[str]) -> Dataset:
    """Return the dataset with other sources: of those named that are two-sided, half the bend (up + down)/2 − nominal.

    Examples
    --------
    >>> events = Events({"m": [80.0, 200.0]}, [1.0, 2.0])
    >>> xs = Systematic.norm("xs", (-0.25, 0.5), processes=["ttbar"])
    >>> bent = bend_dataset(Dataset([Sample("ttbar", "background", events)], [xs]), ["xs"])
    >>> bent.systematic("xs").relative_shift("ttbar")
    0.125
    """
    processes = {s.name: _Process(s.events, s.events, 1.0, True) for s in dataset.samples}
    two_sided = [source for source in dataset.systematics if source.two_sided and source.name in names]
    sources = [_change_source(source, processes, BEND, [0.0, 0.0, 0.0]) for source in two_sided]
    return Dataset(dataset.samples, sources, dataset.folds)


def move_dataset(dataset: Dataset, at: Mapping[str, float], linear: Collection[str] = ()) -> Dataset:
    """Return the dataset at a working point; see `Dataset.at_working_point`."""
    names = [source.name for source in dataset.systematics]
    for name in at:
        if name not in names:
            raise DataError(f"at: no source {name}; {hint_at(name, names)}")
    movers = [source for source in dataset.systematics if at.get(source.name)]
    moved = {process for source in movers for process in source.processes}
    processes = {s.name: _move_process(s, movers, at) for s in dataset.samples}
    samples = [Sample(s.name, s.role, processes[s.name].events) for s in dataset.samples]
    sources = [
        _move_source(source, processes, at.get(source.name, 0.0), source.name in linear)
        if moved & set(source.processes)
        else source
        for source in dataset.systematics
    ]
    return Dataset(samples, sources, dataset.folds)


def find_value(theta: float, two_sided: bool) -> list[float]:
    """Coefficients of the nominal, up and, where there are some, down events in the change at θ.

    Examples
    --------
    >>> find_value(0.5, True), find_value(-0.5, False)
    ([-0.5, 0.5, 0.0], [0.5, -0.5])
    """
    if not two_sided:
        return [-theta, theta]
    return [-abs(theta), max(theta, 0.0), max(-theta, 0.0)]


def find_slope(theta: float, two_sided: bool, linear: bool = False) -> list[float]:
    """Coefficients of the same events in the derivative at θ; at 0, and for a linear response, it is Δ_k.

    Examples
    --------
    >>> find_slope(-1.0, True), find_slope(1.0, True), find_slope(1.0, False)
    ([1.0, 0.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 1.0])
    """
    if not two_sided:
        return [-1.0, 1.0]
    inside = 0.0 if linear else max(-1.0, min(1.0, theta))
    bend = inside * (30 - inside**2 * (40 - 18 * inside**2)) / 16
    return [-2 * bend, 0.5 + bend, -0.5 + bend]


@dataclass(frozen=True, eq=False)
class _Process:
    """Nominal events of a process as given, those at the working point, and the factor by which all are scaled."""

    nominal: Events
    events: Events
    factor: float
    keeps_rows: bool


def _move_process(sample: Sample, movers: Sequence[Systematic], at: Mapping[str, float]) -> _Process:
    nominal, factor, brought = sample.events, 1.0, []
    weight = nominal.weight.copy()
    for source in (one for one in movers if sample.name in one.processes):
        value = find_value(at[source.name], source.two_sided)
        if (scaled := _scale(source, sample.name, value)) is not None:
            factor *= 1.0 + scaled
            continue
        for c, events in zip(value, _sides(source, sample.name, nominal), strict=True):
            if events is nominal or not source.replaces_events(sample.name):
                weight += c * events.weight
            elif c:
                brought.append(events.with_weight(c * events.weight))
    if factor == 0:  # what changes it there has no relative size
        names = ", ".join(source.name for source in movers if sample.name in source.processes)
        raise DataError(
            f"at: {names}: sample {sample.name} expects 0 events there: choose a point where all processes have a "
            "positive yield"
        )
    own = nominal.with_weight(weight)
    joined = _interleave([*([own] if np.any(weight) else []), *brought]) if brought else own
    return _Process(nominal, joined.with_weight(factor * joined.weight), factor, not brought)


def _move_source(source: Systematic, processes: Mapping[str, _Process], theta: float, linear: bool) -> Systematic:
    """Return a source whose up and down differ by twice its derivative at the working point."""
    slope, value = find_slope(theta, source.two_sided, linear), find_value(theta, source.two_sided)
    return _change_source(source, processes, slope, value)


def _change_source(
    source: Systematic, processes: Mapping[str, _Process], slope: Sequence[float], value: Sequence[float]
) -> Systematic:
    """Return a source whose up and down differ by twice some sum of its events; `value` is its change so far."""
    both = {name: _change_variation(source, name, processes[name], slope, value) for name in source.processes}
    up, down = ({name: pair[i] for name, pair in both.items()} for i in (0, 1))
    replaced = any(change.replacement is not None for change in up.values())
    scaled = all(change.relative_size is not None for change in up.values())
    kind = Kind.SHAPE if replaced else Kind.NORM if scaled else Kind.WEIGHT
    return Systematic(source.name, kind, up, down)


def _change_variation(
    source: Systematic, name: str, process: _Process, slope: Sequence[float], value: Sequence[float]
) -> tuple[Variation, Variation]:
    if (scaled := _scale(source, name, slope)) is not None:
        size = scaled / (1.0 + (_scale(source, name, value) or 0.0))
        return Scaling(size), Scaling(-size)
    terms = [
        (process.factor * c, events) for c, events in zip(slope, _sides(source, name, process.nominal), strict=True)
    ]
    if process.keeps_rows and not source.replaces_events(name):
        change = np.sum([c * events.weight for c, events in terms], axis=0)
        return Reweighting(process.events.weight + change), Reweighting(process.events.weight - change)
    # Only up − down counts: rows with a positive coefficient go up, those with a negative one down.
    up, down = (
        _interleave([events.with_weight(2 * abs(c) * events.weight) for c, events in terms if c * sign > 0])
        for sign in (1, -1)
    )
    return Replacement(up), Replacement(down)


def _sides(source: Systematic, process: str, nominal: Events) -> list[Events]:
    """Events of a process: nominal, up and, where given, down."""
    return [events for _, events in source.shift_terms(process, nominal)]


def _scale(source: Systematic, process: str, coefficients: Sequence[float]) -> float | None:
    """Relative change of a process that a source scales as a whole; None for any other source."""
    sizes = [effect[process].relative_size for _, effect in source.directions]
    known = [size for size in sizes if size is not None]
    return float(np.dot(coefficients[1:], known)) if len(known) == len(sizes) else None


def _interleave(pieces: Sequence[Events]) -> Events:
    """Join events so that copies of an event, at the same place of each piece, stay near each other.

    Without identifiers, inner folds are made of neighbouring rows.
    """
    if len(pieces) == 1:
        return pieces[0]
    places = [(np.arange(piece.n_rows) + 0.5) / max(piece.n_rows, 1) for piece in pieces]
    return Events.concatenate(pieces)[np.argsort(np.concatenate(places), kind="stable")]
