"""Events of a regression: one table with a target for every row, and the sources that change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import Floats
from qbdt.data.columns import require_unmasked
from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.flat_systematic import FlatSystematic
from qbdt.data.from_arrays import Apart, FlatTable, add_identifiers, bind, order_events, take_identifiers
from qbdt.data.sample import Role, Sample
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError

TARGET = "target"
"""Column of a regression's events, no feature, that holds the target."""

PROCESS = "events"

SMALLEST = 1e-100
"""Smallest size of the largest target, and one over the largest: squares, and sums of them, are doubles."""


def from_target(
    columns: Mapping[str, NDArray[Any]],
    y: ArrayLike,
    weight: ArrayLike | None = None,
    systematics: Sequence[FlatSystematic | Systematic] = (),
    event_id: Any = None,
) -> Dataset:
    """Make a dataset of one process, whose rows have a target.

    Parameters
    ----------
    columns
        Features by name.
    y
        Target of each row.
    weight
        True expected yield of each row; 1 if not given.
    systematics
        Sources made with `Systematic.shape` (tables with their targets), `.weight` or `.norm`.
    event_id
        Identifiers that tell events apart, as in `Dataset.from_arrays`; rows are put into their order.

    Examples
    --------
    >>> data = from_target({"pt": np.array([20.0, 30.0])}, [91.0, 125.0], None, [Systematic.norm("lumi", 0.02)])
    >>> data.sample("events").events.identifier(TARGET)
    array([ 91., 125.])
    """
    systematics = Systematic.read_list(systematics)
    given, names, numbered = add_identifiers(dict(columns), event_id)
    apart = Apart(None, (), names)
    events, rows = _make_events(given, y, weight, apart, "")
    table = FlatTable({PROCESS: rows}, events.features, weight is not None, numbered, apart, _split)
    dataset = Dataset([Sample(PROCESS, Role.BACKGROUND, events)], [bind(source, table) for source in systematics])
    for tally in dataset.tallies():
        tally.require_usable()
    return dataset


def _split(columns: Any, y: ArrayLike, weight: ArrayLike | None, apart: Apart, context: str) -> dict[str, Events]:
    return {PROCESS: _make_events(columns, y, weight, apart, context)[0]}


def _read_numbers(target: NDArray[Any], context: str) -> Floats:
    """Targets as numbers; refuse others, and numbers without a finite square."""
    try:
        found = target.astype(np.float64)
    except (TypeError, ValueError):
        found = None
    if found is None or target.dtype.kind in "mM":  # NumPy takes times for numbers
        raise DataError(f"{context}y has type {target.dtype}: a target is a number")
    bad = np.flatnonzero(~np.isfinite(found))
    if bad.size:
        raise DataError(f"{context}y[{bad[0]}]={found[bad[0]]}: Input y contains NaN or infinity")
    largest = float(np.abs(found).max(initial=0.0))
    if largest and not SMALLEST < largest < 1 / SMALLEST:
        raise DataError(f"{context}y has values up to {largest:.3g}: squares of them need 1e-100 to 1e+100")
    return found


def _make_events(
    columns: dict[str, NDArray[Any]], y: ArrayLike, weight: ArrayLike | None, apart: Apart, context: str
) -> tuple[Events, NDArray[np.intp]]:
    """Events with their targets in the order of their identifiers, and the row of the table that each is."""
    identifiers = take_identifiers(columns, apart, context)
    target = require_unmasked(y, f"{context}y")
    n_rows = len(next(iter(columns.values()))) if columns else 0
    if target.shape != (n_rows,):
        raise DataError(f"{context}y has shape {target.shape}, X has {n_rows} rows")
    target = _read_numbers(target, context)
    weights = np.ones(n_rows) if weight is None else require_unmasked(weight, f"{context}weight")
    if weights.shape != (n_rows,):
        raise DataError(f"{context}weights have shape {weights.shape}, X has {n_rows} rows")
    events = Events(columns, weights, {TARGET: target, **identifiers})
    rows = np.arange(n_rows)[order_events(events, apart.event_id, context)]
    return (events[rows] if apart.event_id else events), rows
