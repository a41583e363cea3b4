"""Statistical variance of a shift: an event and its varied copy are correlated, so their difference is what counts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events, Sample, Systematic
from qbdt.inference.templates.score_bins import Bins
from qbdt.inference.templates.template_set import TemplateSet, sum_of


def take_shift_errors(templates: TemplateSet, sample: TemplateSet) -> TemplateSet:
    """Give templates of all events the statistical errors of shifts that a sample of the events has.

    Weights of the sample stand for all events, so that its variances are larger by the inverse of its share, which the
    ratio of Σw² tells.
    """
    processes = []
    for process in templates.processes:
        its = sample.process(process.name)
        share = process.variance.sum() / max(its.variance.sum(), 1e-300)
        known = {name: shift.variance for name, shift in its.shifts.items() if shift.variance is not None}
        shifts = {
            name: replace(shift, variance=share * known[name]) if name in known else shift
            for name, shift in process.shifts.items()
        }
        processes.append(replace(process, shifts=shifts))
    return replace(templates, processes=tuple(processes))


def measure_shift_variance(source: Systematic, sample: Sample, bins: Bins) -> Floats:
    """Variance per bin of Δ_k, the change of one process for θ_k = +1, relative to the nominal content n; events².

    Δ_k is a sum over nominal, up and down events with their coefficients (`Systematic.shift_terms`). Its fluctuations
    with those of n, which MC statistics have already, do not count: the variance is that of Δ_k − (Δ_k/n) n, so that a
    source which scales all events alike has none. The terms of one event in one bin are added before they are squared:
    an event that a source does not touch adds only its part in n. Events are recognised by their identifiers; where a
    few share one, their terms are added: they are independent, so that mixed terms vanish on average. Without
    identifiers, and with other events, all are independent.
    """
    terms = source.shift_terms(sample.name, sample.events)
    what = f"systematic {source.name}, variation of {sample.name}"
    places = [bins.index(events, what) for _, events in terms]
    values = [coefficient * events.weight for coefficient, events in terms]
    change = sum_of(np.bincount(*pair, bins.n_bins) for pair in zip(places, values, strict=True))
    nominal = np.bincount(places[0], sample.events.weight, bins.n_bins)
    ratio = np.divide(change, nominal, out=np.zeros_like(change), where=nominal > 0)
    values[0] = values[0] - ratio[places[0]] * sample.events.weight
    hashes = _recognise([events for _, events in terms], source.replaces_events(sample.name))
    if all(np.array_equal(one, hashes[0]) for one in hashes[1:]):
        return _sum_aligned(places, values, bins.n_bins)
    place, value = np.concatenate(places), np.concatenate(values)
    order = np.lexsort((place, np.concatenate(hashes)))
    keys, place, value = np.concatenate(hashes)[order], place[order], value[order]
    first = np.flatnonzero(np.concatenate([[True], (keys[1:] != keys[:-1]) | (place[1:] != place[:-1])]))
    squares = np.square(np.add.reduceat(value, first))
    return np.asarray(np.bincount(place[first], squares, bins.n_bins), dtype=np.float64)


def _recognise(several: list[Events], replaced: bool) -> list[NDArray[np.uint64]]:
    """A number for each row, the same for an event and its copies."""
    if not replaced:
        return [np.arange(events.n_rows, dtype=np.uint64) for events in several]
    if all(events.identifiers_pair for events in several):
        return [events.hash_identifiers() for events in several]
    ends = np.cumsum([0, *(events.n_rows for events in several)])
    return [np.arange(low, high, dtype=np.uint64) for low, high in pairwise(ends.tolist())]


def _sum_aligned(places: list[NDArray[np.intp]], values: list[Floats], n_bins: int) -> Floats:
    """The same for copies that stand in the same rows as their events: nothing is sorted."""
    total = np.zeros(n_bins)
    for i, (place, value) in enumerate(zip(places, values, strict=True)):
        # Terms of the same event in the same bin, counted once, at the first of them.
        seen = np.zeros(len(place), dtype=bool)
        combined = value.copy()
        for j, (other, more) in enumerate(zip(places, values, strict=True)):
            if j < i:
                seen |= other == place
            elif j > i:
                combined += np.where(other == place, more, 0.0)
        total += np.bincount(place, np.where(seen, 0.0, np.square(combined)), n_bins)
    return total
