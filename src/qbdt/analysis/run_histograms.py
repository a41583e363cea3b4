"""Histograms of a run's events: its variables, and the scores of events that models have seen and have not seen."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.inference.templates import rank_scores, score_histogram
from qbdt.training import FoldedEnsemble, SingleModel

Shape: TypeAlias = tuple[Floats, Floats]
"""Contents of the bins and their statistical errors, for unit area."""

VARIABLE_BINS, SCORE_BINS = 40, 20

RANGE = (0.002, 0.995)
"""Quantiles between which a variable is drawn, so that a long tail does not squeeze the rest."""


def fill_unit_area(data: Dataset, name: str) -> tuple[Floats, dict[Role, Shape]]:
    """Bin edges of a variable, and its unit-area histograms of signal and background; the outer bins are open."""
    columns = {role: _collect(data, role, name) for role in (Role.SIGNAL, Role.BACKGROUND)}
    finite = np.concatenate([values[np.isfinite(values)] for values, _ in columns.values()])
    low, high = np.quantile(finite, RANGE) if finite.size else (0.0, 1.0)
    if finite.size and high - low < VARIABLE_BINS and np.all(finite == np.round(finite)):
        edges = np.arange(np.floor(low) - 0.5, np.ceil(high) + 1.0)  # numbers of something: a bin for each
    else:
        edges = np.linspace(low, high if high > low else low + 1.0, VARIABLE_BINS + 1)
    return edges, {role: _fill(values, weight, edges) for role, (values, weight) in columns.items()}


def fill_scores(data: Dataset, models: FoldedEnsemble, *, seen: bool, number: int = 0) -> dict[str, list[float]]:
    """Histograms of ranked scores, summed over models, of the events that each was, or was not, trained on.

    A score is drawn as the share of unseen events below it, signal and background with equal sums. That is monotonic,
    the same for all methods and models, and spreads scores that crowd, as those of the profiled method do. Of several
    scores it is the one with this `number`.
    """
    edges = np.linspace(0, 1, SCORE_BINS + 1)
    nominal = data.with_systematics([])
    total: dict[str, Floats] = {}
    for fold, model in enumerate(models.members):
        unseen = _score(nominal.fold(fold), model, number)
        events = _score(nominal.without_fold(fold), model, number) if seen else unseen
        found = score_histogram(rank_scores(events, like=unseen), edges)
        total = {name: np.asarray(values) + total.get(name, 0.0) for name, values in found.items() if name != "edges"}
    return {"edges": edges.tolist(), **{name: values.tolist() for name, values in total.items()}}


def _score(events: Dataset, model: SingleModel, number: int) -> Dataset:
    return events.transform(lambda each: {"score": model.score(each).reshape(each.n_rows, -1)[:, number]})


def _collect(data: Dataset, role: Role, name: str) -> tuple[Floats, Floats]:
    """Values and weights of all events of a role."""
    events = [sample.events for sample in data.of_role(role)]
    values = np.concatenate([np.asarray(each.column(name), dtype=np.float64) for each in events])
    return values, np.concatenate([each.weight for each in events])


def _fill(values: Floats, weight: Floats, edges: Floats) -> Shape:
    known = np.isfinite(values)
    inside = np.clip(values[known], edges[0], edges[-1])  # under- and overflow go into the outer bins
    content = np.histogram(inside, edges, weights=weight[known])[0]
    error = np.sqrt(np.histogram(inside, edges, weights=weight[known] ** 2)[0])
    return content / weight.sum(), error / weight.sum()
