"""Categories of categorical features: which ones the events have.

Flows in: `Events`. Flows out: for each categorical feature the values that occur, increasing; a value's place among
them is its bin code. Values are whole numbers, so a category keeps its name (a year, a decay mode) everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qbdt.arrays import Floats
from qbdt.data.columns import LARGEST_CATEGORY
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.sample import Role
from qbdt.errors import DataError

TABLE = 1 << 16
"""Values below this are found by marking them in a table, which is faster than sorting."""


def require_categories(dataset: Dataset, names: Sequence[str]) -> None:
    """Refuse values of categorical features that are no categories, in nominal and in varied events."""
    if not names:
        return
    for sample in dataset.samples:
        _require_values(sample.events, names, f"sample {sample.name}")
    for source in dataset.systematics:
        for direction, _ in source.directions:
            for process, events in dataset.varied(source.name, direction).items():
                _require_values(events, names, f"systematic {source.name}, {direction} variation of {process}")


def _require_values(events: Events, names: Sequence[str], what: str) -> None:
    for name in names:
        values = np.asarray(events.column(name))
        wrong = (values < 0) | (values > LARGEST_CATEGORY)
        if values.dtype.kind == "f":
            wrong |= np.isfinite(values) & (values != np.floor(values))
        if wrong.any():
            raise DataError(
                f"{what}: feature {name} is categorical and has the value {values[wrong][0]:.12g}: categories are "
                f"whole numbers from 0 to {LARGEST_CATEGORY}, or missing (NaN); number them so, or do not declare it "
                "categorical"
            )


def find_categories(dataset: Dataset, names: Sequence[str]) -> dict[str, Floats]:
    """Return the values that categorical features take in nominal events of non-zero weight."""
    events = [sample.events for role in (Role.SIGNAL, Role.BACKGROUND) for sample in dataset.of_role(role)]
    return {name: np.unique(np.concatenate([np.zeros(0), *(_distinct(e, name) for e in events)])) for name in names}


def _distinct(events: Events, name: str) -> Floats:
    values = np.asarray(events.column(name))[events.weight != 0]
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if values.size and values.max() < TABLE:
        seen = np.zeros(TABLE, dtype=np.bool_)
        seen[values.astype(np.intp)] = True
        return np.flatnonzero(seen).astype(np.float64)
    return np.unique(values).astype(np.float64)
