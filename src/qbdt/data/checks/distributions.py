"""How distributions of features compare: distances, signed shifts and typical sizes, on weighted rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data.events import Events

NOTHING = 1e-4
"""Change of a mean, in standard deviations, below which a feature counts as not moved."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """One feature of some events: sorted values, the share of the yield up to each, and the effective number of rows.

    Negative weights are kept, so the shares need not rise everywhere.
    """

    values: Floats
    share: Floats
    entries: float

    def up_to(self, at: Floats, side: str = "right") -> Floats:
        """Share of the yield at or below (side="right"), or below (side="left"), given values."""
        place = np.searchsorted(self.values, at, side="right" if side == "right" else "left")
        return np.concatenate([[0.0], self.share])[place]


def distributions(events: Events) -> dict[str, Distribution]:
    """Return the distribution of every feature; missing values do not count."""
    return {name: _distribution(events, name) for name in events.features}


def distance(first: Distribution, second: Distribution) -> float:
    """Largest difference of the cumulative distributions, each normalised to one (Kolmogorov and Smirnov's).

    Examples
    --------
    >>> low, high = (distributions(Events({"x": x}, np.ones(4)))["x"] for x in ([1.0, 2, 3, 4], [3.0, 4, 5, 6]))
    >>> distance(low, high)
    0.5
    """
    if not (first.values.size and second.values.size):
        return 0.0
    at = np.concatenate([first.values, second.values])
    return float(np.max(np.abs(first.up_to(at) - second.up_to(at))))


def find_most_moved(nominal: Events, varied: Events) -> tuple[str | None, float | None]:
    """Feature whose mean a variation changes most, and by how many nominal standard deviations.

    Values beyond the outer percentiles of the nominal distribution count as these, so that one wild value decides
    nothing.

    Examples
    --------
    >>> nominal = Events({"x": np.arange(100.0), "y": np.ones(100)}, np.ones(100))
    >>> name, change = find_most_moved(nominal, Events({"x": np.arange(100.0) + 3, "y": np.ones(100)}, np.ones(100)))
    >>> name, round(change, 2)
    ('x', 0.1)
    """
    best: tuple[str | None, float | None] = (None, None)
    for name in nominal.features:
        column = np.asarray(nominal.column(name), dtype=np.float64)
        known = column[np.isfinite(column)]
        if not known.size:
            continue
        low, high = np.quantile(known, [0.01, 0.99])
        spread = float(np.std(np.clip(known, low, high)))
        before, after = (_clipped_mean(events, name, low, high) for events in (nominal, varied))
        change = (after - before) / spread if spread > 0 else 0.0
        if abs(change) > abs(best[1] or NOTHING):
            best = (name, change)
    return best


def typical_size(values: NDArray[np.floating]) -> float:
    """Median of the absolute values that are neither missing nor zero; NaN where fewer than 20 are left."""
    sizes = np.abs(np.asarray(values, dtype=np.float64))
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.median(sizes)) if sizes.size >= 20 else float("nan")


def paired_shifts(nominal: Events, varied: Events, shapes: Mapping[str, Distribution]) -> tuple[Floats, Floats]:
    """Rank shift of every feature and its statistical error, which knows that varied events are copies of nominal ones.

    The terms of an event and of its copy are added before they are squared: an event that a variation does not
    touch adds no error. Events are recognised by their identifiers; `shapes` are those of the nominal events.
    """
    keys = np.concatenate([nominal.hash_identifiers(), varied.hash_identifiers()])
    if not nominal.id_names or not nominal.identifiers_differ:
        keys = np.arange(keys.size)  # nothing tells which copy belongs to which event: all independent
    _, event = np.unique(keys, return_inverse=True)
    shift, error = np.zeros(len(shapes)), np.zeros(len(shapes))
    for i, name in enumerate(shapes):
        # An event and its copy enter with opposite signs, so that one which is not moved cancels exactly.
        terms = np.concatenate([-_rank_terms(nominal, name, shapes[name]), _rank_terms(varied, name, shapes[name])])
        by_event = np.bincount(event, terms)
        shift[i], error[i] = by_event.sum(), np.sqrt(np.square(by_event).sum())
    return shift, error


def _rank_terms(events: Events, name: str, shape: Distribution) -> Floats:
    """Term of each row in the mean rank among nominal values, less one half; zero where it is missing."""
    values = np.asarray(events.column(name), dtype=np.float64)
    known = np.isfinite(values)
    total = float(events.weight[known].sum())
    if total <= 0:
        return np.zeros(values.size)
    rank = (shape.up_to(values) + shape.up_to(values, side="left")) / 2
    return np.where(known, events.weight / total * (rank - 0.5), 0.0)


def _distribution(events: Events, name: str) -> Distribution:
    values = np.asarray(events.column(name), dtype=np.float64)
    known = np.isfinite(values)
    values, weight = values[known], events.weight[known]
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weight[order])
    total = running[-1] if running.size else 0.0
    if total <= 0:
        return Distribution(np.empty(0), np.empty(0), 0.0)
    return Distribution(values[order], running / total, float(total**2 / np.square(weight).sum()))


def _clipped_mean(events: Events, name: str, low: float, high: float) -> float:
    values = np.asarray(events.column(name), dtype=np.float64)
    known = np.isfinite(values)
    total = float(events.weight[known].sum())
    return float(np.sum(np.clip(values[known], low, high) * events.weight[known])) / total if total else 0.0
