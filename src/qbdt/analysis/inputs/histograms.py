"""Histograms of what an analysis reads: bins of a variable, all processes and sources in them, shifts with errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from qbdt.analysis.schema import Variable
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role
from qbdt.inference.templates import ScoreBins, TemplateSet, fill
from qbdt.report.figures.inputs import SourceShape

BINS = 30
"""Bins of a variable, where the analysis does not say how many."""

RANGE = (0.002, 0.995)
"""Quantiles of all simulated events between which a variable is drawn."""

FEW = 25
"""A variable of whole numbers with at most so many values has a bin for each."""


def choose_edges(dataset: Dataset, name: str, variable: Variable) -> Floats:
    """Edges of a variable's bins: as the analysis says, one for each whole number, or equal ones of most events."""
    values = np.concatenate([s.events.column(name) for s in dataset.samples if s.role is not Role.DATA])
    values = values[np.isfinite(values)].astype(np.float64)
    if variable.range is not None:
        return np.linspace(*variable.range, (variable.bins or BINS) + 1)
    if not values.size:
        return np.linspace(0, 1, (variable.bins or BINS) + 1)
    low, high = (float(q) for q in np.quantile(values, RANGE))
    whole = bool(np.all(values == np.floor(values)))
    if variable.bins is None and whole and high - low < FEW:
        return np.arange(np.floor(low), np.floor(high) + 2) - 0.5
    return np.linspace(low, high if high > low else low + 1, (variable.bins or BINS) + 1)


def fill_variable(dataset: Dataset, name: str, edges: Floats, title: str) -> TemplateSet:
    """Histograms of all processes and sources; missing values do not count, the outer bins are open."""
    known = dataset.with_features([name]).select(lambda events: np.isfinite(events.column(name)))
    return fill(known, ScoreBins.of(edges), title)


def source_shape(dataset: Dataset, source: str, name: str, edges: Floats, role: Role) -> SourceShape | None:
    """Effect of a source on all processes of a role, with statistical errors; None where it acts on none of them."""
    systematic = dataset.systematic(source)
    if not any(s.name in systematic.processes for s in dataset.of_role(role)):
        return None
    nominal = {s.name: s.events for s in dataset.of_role(role)}
    total = np.sum([_contents(events, name, edges) for events in nominal.values()], axis=0)
    sides = {d: _difference(nominal, dataset.varied(source, d), name, edges) for d, _ in systematic.directions}
    (up, up_error), (down, down_error) = sides["up"], sides.get("down", (-sides["up"][0], sides["up"][1]))
    return SourceShape(total, total + up, total + down, up_error, down_error)


def _difference(
    nominal: Mapping[str, Events], varied: Mapping[str, Events], name: str, edges: Floats
) -> tuple[Floats, Floats]:
    """Change of the contents of bins, and its statistical error.

    The weights of an event and of its shifted copy in one bin are subtracted before they are squared, so that what a
    source does not move adds no error. Events without identifiers of their own count as independent, except where a
    source changes weights only.
    """
    change, variance = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for process, moved in varied.items():
        if process not in nominal:
            continue
        before = nominal[process]
        bins = np.concatenate([_bin(before, name, edges), _bin(moved, name, edges)])
        weight = np.concatenate([-before.weight, moved.weight])
        keys = _event_keys(before, moved)
        used = bins >= 0
        _, pair = np.unique(np.stack([keys[used], bins[used]]), axis=1, return_inverse=True)
        sums = np.bincount(pair.ravel(), weights=weight[used])
        place = np.zeros(len(sums), dtype=np.intp)
        place[pair.ravel()] = bins[used]
        change += np.bincount(bins[used], weights=weight[used], minlength=len(change))
        variance += np.bincount(place, weights=sums**2, minlength=len(change))
    return change, np.sqrt(variance)


def _event_keys(nominal: Events, varied: Events) -> NDArray[np.int64]:
    """Number of the event of each row, nominal ones first: rows that are shared, or identifiers, tell which."""
    same_rows = nominal.n_rows == varied.n_rows and nominal.in_place()[0] is varied.in_place()[0]
    if same_rows or not nominal.identifiers_pair:
        second = np.arange(varied.n_rows) + (0 if same_rows else nominal.n_rows)
        return np.concatenate([np.arange(nominal.n_rows), second])
    hashes = np.concatenate([nominal.hash_identifiers(), varied.hash_identifiers()])
    return hashes.view(np.int64)


def _bin(events: Events, name: str, edges: Floats) -> NDArray[np.int64]:
    """Bin of each event, −1 where the value is missing; the outer bins are open."""
    values = np.asarray(events.column(name), dtype=np.float64)
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return np.where(np.isfinite(values), place, -1)


def _contents(events: Events, name: str, edges: Floats) -> Floats:
    place = _bin(events, name, edges)
    contents = np.bincount(place[place >= 0], weights=events.weight[place >= 0], minlength=len(edges) - 1)
    return contents.astype(np.float64)


def correlate(dataset: Dataset, role: Role) -> Floats:
    """Linear correlations of all features of the events of a role, weighted by |w|, on rows where both are known."""
    columns = np.stack(
        [
            np.concatenate([np.asarray(s.events.column(name), dtype=np.float64) for s in dataset.of_role(role)])
            for name in dataset.features
        ]
    )
    weight = np.abs(np.concatenate([s.events.weight for s in dataset.of_role(role)]))
    matrix = np.full((len(columns), len(columns)), np.nan)
    for i, j in np.ndindex(matrix.shape):
        if i <= j:
            matrix[i, j] = matrix[j, i] = _correlation(columns[i], columns[j], weight)
    return matrix


def _correlation(one: Floats, other: Floats, weight: Floats) -> float:
    known = np.isfinite(one) & np.isfinite(other)
    if known.sum() < 2 or not weight[known].any():
        return float("nan")
    covariance = np.cov(np.stack([one[known], other[known]]), aweights=weight[known])
    size = np.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(covariance[0, 1] / size) if size > 0 else float("nan")
