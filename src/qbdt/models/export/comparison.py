"""Comparing an export, read back, with the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.training import Model, SingleModel

Outputs: TypeAlias = Callable[[Floats, dict[str, NDArray[np.int64]]], dict[str, Floats]]
"""From features (row, feature) and identifiers to `score` and, for cross-trained models, `average`."""

CHUNK = 50_000
"""Events compared at a time."""

HALF_ULP = 2.0**-24
"""Largest relative error of rounding to single precision."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to score: their features, as (row, feature), and the identifiers that the model's rule reads."""

    values: Floats
    identifiers: dict[str, NDArray[np.int64]]

    def events(self, features: tuple[str, ...]) -> Events:
        """The rows as events of weight 1."""
        columns = dict(zip(features, self.values.T, strict=True))
        return Events(columns, np.broadcast_to(np.float64(1.0), len(self.values)), self.identifiers)


@dataclass(frozen=True)
class Check:
    """Scores of one set of rows, from the file that was read back and from the model."""

    what: str  # Which rows
    rows: int  # How many
    difference: float  # Largest absolute difference of the scores


class ExportComparison:
    """Differences between two ways to score, over batches of rows, with and without missing values.

    `beyond` counts the scores that differ by more than rounding explains.
    """

    def __init__(self, bound: float) -> None:
        self._bound = bound
        self.rows = self.rows_missing = 0
        self.largest = 0.0
        self.largest_missing = 0.0
        self.beyond = 0

    def count(self, values: Floats) -> None:
        """Count the rows of one batch."""
        self.rows += len(values)
        self.rows_missing += int(np.isnan(values).any(axis=1).sum())

    def add(self, values: Floats, found: Floats, wanted: Floats) -> None:
        """Compare two scores of one batch."""
        difference = np.where(found == wanted, 0.0, np.abs(found - wanted))
        difference = np.where(np.isnan(difference), np.inf, difference)
        if difference.ndim > 1:  # a column for each of several scores
            difference = difference.max(axis=1)
        missing = np.isnan(values).any(axis=1)
        self.largest = max(self.largest, float(difference[~missing].max(initial=0.0)))
        self.largest_missing = max(self.largest_missing, float(difference[missing].max(initial=0.0)))
        self.beyond += int((difference > self._bound).sum())


def compare_rows(
    model: Model, outputs: Outputs, batches: Iterable[Rows], bound: float, *, single: bool
) -> ExportComparison:
    """Compare an export, read back, with the model on rows; `bound` is the difference that rounding explains.

    With `single`, features are rounded to single precision first, as the export does.
    """
    result = ExportComparison(bound)
    for batch in batches:
        values = batch.values
        if single:
            with np.errstate(over="ignore", under="ignore"):
                values = values.astype(np.float32).astype(np.float64)
        rounded = Rows(values, batch.identifiers)
        found = outputs(values, batch.identifiers)
        events = rounded.events(model.features)
        result.count(values)
        result.add(values, found["score"], model.score(events, 1))
        if model.folds is not None:
            beyond = result.beyond
            result.add(values, found["average"], model.average(events, 1))
            result.beyond = beyond  # events are counted once, by the score of their fold
    return result


def rows_of_events(model: Model, events: Events) -> Iterator[Rows]:
    """Rows of events, in batches."""
    columns = () if model.folds is None else model.folds.columns
    for chunk in events.chunks(CHUNK):
        values = np.column_stack([np.asarray(chunk.column(name), dtype=np.float64) for name in model.features])
        yield Rows(values, {name: np.asarray(chunk.identifier(name)).astype(np.int64) for name in columns})


def float32_at_least(thresholds: Floats) -> NDArray[np.float32]:
    """Return the smallest single-precision numbers that are not below the thresholds.

    No single-precision number lies between a threshold and its result, so `x < c` decides alike with either for every
    single-precision x, infinities included.

    Examples
    --------
    >>> float32_at_least(np.array([0.1, 0.5, 1e300]))
    array([0.1, 0.5, inf], dtype=float32)
    """
    values = np.asarray(thresholds, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
        return np.where(rounded < values, np.nextafter(rounded, np.float32(np.inf)), rounded)


def bound_rounding(model: SingleModel) -> float:
    """Upper bound on the error of a score whose leaves and partial sums are rounded to single precision."""
    errors = {}
    for name, component in model.components.items():
        sizes = [float(np.abs(tree.outputs[tree.is_leaf]).max()) for tree in component.trees]
        # each of n additions rounds a partial sum of at most Σ sizes; leaves are rounded once; a factor 2 to spare
        errors[name] = 2.0 * (len(sizes) + 2) * HALF_ULP * sum(sizes)
    return model.bound_error(errors)
