"""Sources of interest that no events can measure, found before anything is trained.

What is nearly so shows only in what is learned (`Parameters.require_effects`, `require_separable`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from qbdt.data import Dataset, Events, Systematic
from qbdt.errors import DataError


def require_measurable_sources(dataset: Dataset, of_interest: Sequence[str]) -> None:
    """Refuse sources of interest that change no event, and two that make the same ones of it."""
    sources = [source for source in dataset.systematics if source.name in of_interest]
    for source in sources:
        if all(_changes_nothing(dataset, source, process) for process in source.processes):
            raise DataError(
                f"source {source.name} is to be measured, but has no effect: its events and weights, up and down, are "
                "the nominal ones"
            )
    for first, second in combinations(sources, 2):
        if _is_same_source(dataset, first, second):
            raise DataError(
                f"{first.name} and {second.name} cannot be told apart: up and down have the same events and weights: "
                "their correlation is -1; measure one of them"
            )


def _changes_nothing(dataset: Dataset, source: Systematic, process: str) -> bool:
    nominal = dataset.sample(process).events
    return all(_is_same(effect[process].apply(nominal), nominal) for _, effect in source.directions)


def _is_same_source(dataset: Dataset, first: Systematic, second: Systematic) -> bool:
    if set(first.processes) != set(second.processes) or first.two_sided != second.two_sided:
        return False
    sides = zip(first.directions, second.directions, strict=True)
    for (_, own), (_, other) in sides:
        for process in first.processes:
            nominal = dataset.sample(process).events
            if not _is_same(own[process].apply(nominal), other[process].apply(nominal)):
                return False
    return True


def _is_same(events: Events, other: Events) -> bool:
    """Whether events have the same weights and features, row by row."""
    if events.n_rows != other.n_rows or not np.array_equal(events.weight, other.weight):
        return False
    return all(
        np.array_equal(events.column(name), other.column(name), equal_nan=True)  # categories are numbers here
        for name in events.features
    )
