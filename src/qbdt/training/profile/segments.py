"""From a `Dataset` to the segments of the two stores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Replaced, Role, Scaled, Systematic
from qbdt.training.profile.shift_rows import ShiftSegment
from qbdt.trees.rows import Segment, Side

__all__ = ["nominal_segments", "shift_segments"]

SIDES = {Role.SIGNAL: Side.SIGNAL, Role.BACKGROUND: Side.BACKGROUND}


def nominal_segments(dataset: Dataset) -> list[Segment]:
    """Return one segment per process: signal, then background."""
    return [Segment(s.name, side, s.events) for role, side in SIDES.items() for s in dataset.of_role(role)]


def shift_segments(dataset: Dataset) -> list[ShiftSegment]:
    """Segments of all processes, then of all variations, with what each adds to the shifts of the sources.

    Δ_k is up − nominal, or (up − down)/2 where both are given.
    """
    n_sources = len(dataset.systematics)
    nominal, varied = [], []
    for segment in nominal_segments(dataset):
        factors = np.zeros(n_sources)
        columns = []
        for k, source in enumerate(dataset.systematics):
            if segment.name not in source.processes:
                continue
            factors[k], column, others = _terms(source, segment.name, segment.events)
            if column is not None:
                columns.append((k, column))
            varied += [_varied(segment, source, k, n_sources, *other) for other in others]
        nominal.append(ShiftSegment(segment, factors, tuple(columns)))
    return nominal + varied


def _terms(
    source: Systematic, process: str, nominal: Events
) -> tuple[float, Callable[[], Floats] | None, list[tuple[float, Events]]]:
    """Δ of one process: a multiple of its weights, weights row by row, or signed sets of other events."""
    sides = [effect[process] for _, effect in source.directions]
    signs, of_nominal = ([0.5, -0.5], 0.0) if source.two_sided else ([1.0], -1.0)
    if any(isinstance(side, Replaced) for side in sides):
        return of_nominal, None, [(sign, side.apply(nominal)) for sign, side in zip(signs, sides, strict=True)]
    sizes = [side.size for side in sides if isinstance(side, Scaled) and side.where is None]
    if len(sizes) == len(sides):
        return sum(sign * size for sign, size in zip(signs, sizes, strict=True)), None, []

    def column() -> Floats:
        parts = [sign * side.apply(nominal).weight for sign, side in zip(signs, sides, strict=True)]
        return np.asarray(sum(parts) + of_nominal * nominal.weight)

    return 0.0, column, []


def _varied(nominal: Segment, source: Systematic, k: int, n_sources: int, sign: float, events: Events) -> ShiftSegment:
    factors = np.zeros(n_sources)
    factors[k] = sign
    return ShiftSegment(Segment(f"{nominal.name}, {source.name}", nominal.side, events, nominal=False), factors)
