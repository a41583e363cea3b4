"""Comparing an export, read back, with the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.models.export.components import Model
from qbdt.models.export.probing import Probe
from qbdt.training import FoldedEnsemble

__all__ = ["Comparison", "Outputs", "compare", "of_events"]

Outputs: TypeAlias = Callable[[Floats, dict[str, NDArray[np.int64]]], dict[str, Floats]]
"""From features (row, feature) and identifiers to `score` and, for cross-trained models, `average`."""

CHUNK = 50_000


class Comparison:
    """Differences between two ways to score, over batches of rows.

    Attributes
    ----------
    rows, rows_missing
        Rows so far, and those among them with missing values.
    largest
        Largest difference on rows without missing values.
    largest_missing
        The same on rows with missing values.
    beyond
        Scores that differ by more than rounding explains.
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
        missing = np.isnan(values).any(axis=1)
        self.largest = max(self.largest, float(difference[~missing].max(initial=0.0)))
        self.largest_missing = max(self.largest_missing, float(difference[missing].max(initial=0.0)))
        self.beyond += int((difference > self._bound).sum())


def compare(model: Model, outputs: Outputs, batches: Iterable[Probe], bound: float, *, single: bool) -> Comparison:
    """Compare an export with the model.

    Parameters
    ----------
    model
        The model.
    outputs
        The export, read back.
    batches
        Rows to compare on.
    bound
        Difference that rounding explains.
    single
        Whether to round features to single precision first, as the export does.
    """
    result = Comparison(bound)
    for batch in batches:
        values = batch.values
        if single:
            with np.errstate(over="ignore", under="ignore"):
                values = values.astype(np.float32).astype(np.float64)
        rounded = Probe(values, batch.identifiers)
        found = outputs(values, batch.identifiers)
        events = rounded.events(model.features)
        result.count(values)
        result.add(values, found["score"], model.score(events, 1))
        if isinstance(model, FoldedEnsemble):
            beyond = result.beyond
            result.add(values, found["average"], model.average(events, 1))
            result.beyond = beyond  # events are counted once, by the score of their fold
    return result


def of_events(model: Model, events: Events) -> Iterator[Probe]:
    """Rows of events, in batches."""
    for part in events.chunks(CHUNK):
        values = np.column_stack([np.asarray(part.column(name), dtype=np.float64) for name in model.features])
        identifiers = {}
        if isinstance(model, FoldedEnsemble):
            identifiers = {name: np.asarray(part.identifier(name)).astype(np.int64) for name in model.folds.columns}
        yield Probe(values, identifiers)
