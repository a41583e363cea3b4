"""Variations that do not look like one standard deviation of their process: mixed-up, idle, wrongly scaled.

A variation is compared with its own nominal events, with its other direction, with the same source on other processes,
and with the nominal events of other processes. Copies of events are compared on the same events, so that what is seen
is the source and not the statistics of the simulation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np

from qbdt.arrays import Floats
from qbdt.data.checks.distributions import Distribution, distance, distributions, paired_shifts, typical_size
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.flat_systematic import Kind
from qbdt.data.sample import Role

ROWS = 6_000
"""Rows of a sample that are looked at, about."""

YIELD_CHANGE = 0.5
"""Relative change of a yield that no single source makes."""

SIZE_FACTOR = 3.0
"""Factor on the typical size of a feature that no variation makes."""

SAME_WAY, OPPOSITE = 0.7, -0.8
"""Cosines between shifts of all features, beyond which two variations count as moving events alike, or oppositely."""

SIGNIFICANT = 5.0
"""Standard deviations from which on a shift is not the statistics of the simulation."""

Found = Iterator[tuple[str, str]]
Shapes = Mapping[str, Distribution]


def check_varied_events(dataset: Dataset) -> Found:
    """Pairs of a place and a message."""
    nominal = {s.name: s.events for s in dataset.samples if s.role is not Role.DATA}
    thinned = {name: events.thin(ROWS, events.n_rows) for name, events in nominal.items()}
    shapes = {name: distributions(events) for name, events in thinned.items()}
    fingerprints: dict[tuple[str, bytes], str] = {}
    for source in dataset.systematics:
        if source.kind is Kind.NORM:
            continue
        moved: dict[tuple[str, str], Floats] = {}
        for direction, _ in source.directions:
            for process, varied in dataset.varied(source.name, direction).items():
                where = f"{source.name} {direction}, {process}"
                yield from _against_nominal(where, nominal[process], varied)
                yield from _find_repeated(where, process, varied, fingerprints)
                some = varied.thin(ROWS, nominal[process].n_rows)
                yield from _of_another_process(where, process, distributions(some), shapes)
                shift, error = paired_shifts(thinned[process], some, shapes[process])
                if np.linalg.norm(shift) > SIGNIFICANT * np.linalg.norm(error):
                    moved[process, direction] = shift
        yield from _sides(dataset, source.name, moved)
        yield from _across_processes(dataset, source.name, moved)


def _against_nominal(where: str, nominal: Events, varied: Events) -> Found:
    if _fingerprint(varied) == _fingerprint(nominal):
        yield where, "the same events and weights as the nominal ones: the variation does nothing"
        return
    change = varied.total / nominal.total - 1
    if abs(change) > YIELD_CHANGE:
        message = f"the yield changes by {change:+.0%}: are its weights scaled like the nominal ones?"
        yield where, message
    for name in nominal.features:
        ratio = typical_size(varied.column(name)) / typical_size(nominal.column(name))
        if np.isfinite(ratio) and not 1 / SIZE_FACTOR < ratio < SIZE_FACTOR:
            yield where, f"{name} is typically {ratio:.3g} × the nominal one: another unit?"
        missing = [float(np.mean(np.isnan(events.column(name)))) for events in (nominal, varied)]
        if abs(missing[1] - missing[0]) > 0.2:
            yield where, f"{name} is missing in {missing[1]:.0%} of the events, in {missing[0]:.0%} of the nominal ones"
    if varied.id_names:
        yield from _identifiers(where, nominal, varied)


def _identifiers(where: str, nominal: Events, varied: Events) -> Found:
    if not nominal.identifiers_differ or not varied.n_rows:
        return
    common = varied.count_common(nominal) / varied.n_rows
    if common < 0.5:
        yield (
            where,
            f"only {common:.0%} of its identifiers are those of nominal events: if they are the same events, folds "
            "cannot keep the copies of an event together",
        )


def _find_repeated(where: str, process: str, varied: Events, known: dict[tuple[str, bytes], str]) -> Found:
    key = (process, _fingerprint(varied))
    if key in known:
        yield where, f"the same events and weights as {known[key]}"
    known.setdefault(key, where)


def _fingerprint(events: Events) -> bytes:
    """Sums over rows that two sets of events share only if they are the same, whatever the order of rows."""
    sums = [events.n_rows, events.total, np.square(events.weight).sum()]
    sums += [float(np.nansum(events.column(name) * events.weight)) for name in events.features]
    return np.array([float(f"{value:.10g}") for value in sums]).tobytes()


def _of_another_process(where: str, process: str, varied: Shapes, nominal: Mapping[str, Shapes]) -> Found:
    """Whether the events look like those of another process rather than like their own nominal ones."""
    own = _mean_distance(varied, nominal[process])
    limit = 2 * float(
        np.mean([np.sqrt(1 / max(s.entries, 1) + 1 / max(nominal[process][n].entries, 1)) for n, s in varied.items()])
    )
    if own < limit:
        return
    for other, shapes in nominal.items():
        if other != process and own > limit + 2 * _mean_distance(varied, shapes):
            yield where, f"its events look like nominal {other}, not like {process}: a file of another process?"


def _mean_distance(first: Shapes, second: Shapes) -> float:
    return float(np.mean([distance(first[name], second[name]) for name in first]))


def _sides(dataset: Dataset, source: str, moved: Mapping[tuple[str, str], Floats]) -> Found:
    """Up and down that move events, or yields, the same way."""
    systematic = dataset.systematic(source)
    if not systematic.two_sided:
        return
    for process in systematic.processes:
        up, down = moved.get((process, "up")), moved.get((process, "down"))
        nominal = dataset.sample(process).events
        changes = [effect[process].apply(nominal).total / nominal.total - 1 for _, effect in systematic.directions]
        where = f"{source}, {process}"
        if up is not None and down is not None and _cosine(up, down) > SAME_WAY:
            name = dataset.features[int(np.argmax(np.abs(up)))]
            yield where, f"up and down move {name} and the other features the same way: is one file used for both?"
        elif min(map(abs, changes)) > max(0.01, 0.5 * max(map(abs, changes))) and changes[0] * changes[1] > 0:
            yield where, f"up and down change the yield the same way ({changes[0]:+.1%}, {changes[1]:+.1%})"


def _across_processes(dataset: Dataset, source: str, moved: Mapping[tuple[str, str], Floats]) -> Found:
    """Processes that one direction of a source moves in opposite ways."""
    for direction in ("up", "down"):
        shift = {process: s for (process, side), s in moved.items() if side == direction}
        for first, second in combinations(shift, 2):
            if _cosine(shift[first], shift[second]) < OPPOSITE:
                name = dataset.features[int(np.argmax(np.abs(shift[first]) + np.abs(shift[second])))]
                yield (
                    f"{source} {direction}",
                    f"moves {name} and the other features of {first} and {second} in opposite ways: are up and down "
                    "exchanged in one of them?",
                )


def _cosine(first: Floats, second: Floats) -> float:
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
