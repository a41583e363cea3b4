"""From a `Dataset` to segments of rows, and the shifts Δ_k that each adds to the sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role, Systematic
from qbdt.threads import Workers
from qbdt.trees.rows import Segment, Side

SIDES = {Role.SIGNAL: Side.SIGNAL, Role.BACKGROUND: Side.BACKGROUND}


@dataclass(frozen=True, eq=False)
class ShiftSegment:
    """Rows, and what they add to the shifts: a_k w for source k (`factors`), and `columns` (k, values row by row).

    Nominal rows carry the yield n = w + w² (expected events and their MC variance); rows of variations only shifts.
    """

    segment: Segment
    factors: Floats
    columns: tuple[tuple[int, Callable[[], Floats]], ...] = ()

    @property
    def is_signal(self) -> bool:
        """Whether these are nominal rows of signal."""
        return self.segment.nominal and self.segment.side is Side.SIGNAL


def variance(events: Events) -> Floats:
    """Return n = w + w² of every row: expected events, and their MC variance."""
    return np.asarray(events.weight * (1.0 + events.weight))


def sum_shifts(segments: Sequence[ShiftSegment], weight: Floats, columns: Sequence[Floats] | Floats) -> Floats:
    """∫ Δ_k f as (source, …), from sums of w f (segment, …) and of columns × f (segment, column, …)."""
    shifts = np.zeros((len(segments[0].factors), *weight.shape[1:]))
    for i, one in enumerate(segments):
        shifts += np.multiply.outer(one.factors, weight[i])
        for j, (source, _) in enumerate(one.columns):
            shifts[source] += columns[i][j]
    return shifts


def sum_signals(sums: Any, signals: Sequence[Sequence[int]]) -> Any:
    """Sums over the segments that each strength multiplies, of sums by segment; see `join_strengths`."""
    return join_strengths([sums[list(own)].sum(axis=0) for own in signals])


def join_strengths(values: Any) -> Any:
    """Values of the only strength, or those of several as the first axis of an array."""
    return values[0] if len(values) == 1 else np.stack(list(values))


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


def find_columns(parts: Sequence[Sequence[ShiftSegment]], workers: Workers) -> list[list[ShiftSegment]]:
    """Return segments with their columns found, by all threads, instead of each when it is asked for."""
    columns = [(column,) for part in parts for one in part for _, column in one.columns]
    found = iter(workers.run(lambda column: column(), columns))
    return [
        [replace(one, columns=tuple((k, partial(np.asarray, next(found))) for k, _ in one.columns)) for one in part]
        for part in parts
    ]


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
