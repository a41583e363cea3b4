"""From a `Dataset` to the segments of the two stores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role, Systematic
from qbdt.training.profile.shift_rows import ShiftSegment
from qbdt.trees.rows import Segment, Side

__all__ = ["nominal_segments", "shift_segments"]

SIDES = {Role.SIGNAL: Side.SIGNAL, Role.BACKGROUND: Side.BACKGROUND}


def nominal_segments(dataset: Dataset) -> list[Segment]:
    """Return one segment per process: signal, then background."""
    return [Segment(s.name, side, s.events) for role, side in SIDES.items() for s in dataset.of_role(role)]


def shift_segments(dataset: Dataset) -> list[ShiftSegment]:
    """Segments of all processes, then of all variations, with what each adds to the Δ_k of the sources."""
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
    if source.replaces_events(process):
        (of_nominal, _), *varied = source.shift_terms(process, nominal)
        return of_nominal, None, varied
    size = source.relative_shift(process)
    if size is not None:
        return size, None, []
    return 0.0, partial(source.row_shifts, process, nominal), []


def _varied(nominal: Segment, source: Systematic, k: int, n_sources: int, sign: float, events: Events) -> ShiftSegment:
    factors = np.zeros(n_sources)
    factors[k] = sign
    return ShiftSegment(Segment(f"{nominal.name}, {source.name}", nominal.side, events, nominal=False), factors)
