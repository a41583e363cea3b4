"""The second sum of trees: the relative shifts r_k = Δ_k/n of all sources, in leaves of several numbers.

A tree is grown for one combination, Σ_k c_k r_k, the one that the score needs: c_k = ∫ Δ_k t of the best score that
the trees so far allow, on held-out events. Its leaves then hold the shifts of every source.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qbdt.binning import Binning
from qbdt.boosting import Settings
from qbdt.dataset import Dataset, Events, Role
from qbdt.dtypes import Nodes, Yields
from qbdt.grower import NewtonCriterion, with_thresholds
from qbdt.profile.integrals import Integrals
from qbdt.profile.parts import N_PARTS
from qbdt.profile.plan import shift_segments
from qbdt.profile.trees import STEP, grow_next, weight_sums, with_yields
from qbdt.store import ShiftSegment, ShiftStore, Side
from qbdt.workers import Workers

__all__ = ["FittedShifts", "fit_shifts"]

PERIOD = 5
"""Trees between two solutions for c."""

PATIENCE = 40
"""Trees without a smaller σ_μ of held-out events after which the shifts have learnt what they can."""

ENTRIES = 200.0
"""Least simulated events of average weight in a leaf: shifts of fewer are mostly noise."""


@dataclass(frozen=True)
class FittedShifts:
    """Trees, their numbers for each source (node, source), and what held-out events say after each tree.

    These are the integrals, and the σ_μ that they promise for as many events as there are in all parts.
    """

    trees: tuple[Nodes, ...]
    values: tuple[Yields, ...]
    integrals: tuple[Integrals, ...]
    uncertainties: tuple[float, ...]

    def best(self) -> int:
        """Number of trees with the smallest expected σ_μ."""
        return int(np.argmin(self.uncertainties))


def fit_shifts(
    trained: Dataset,
    held: Dataset,
    ratio: Callable[[Events], Yields],
    binning: Binning,
    settings: Settings,
    workers: Workers,
    after_tree: Callable[[Nodes], None],
) -> FittedShifts:
    """Fit the shifts on some events, and follow what they do on others, where `ratio` gives r₀."""
    segments, others = shift_segments(trained), shift_segments(held)
    means = _means(segments, len(trained.systematics))
    store = ShiftStore(segments + others, binning, workers, len(segments), means)
    ratios = [ratio(one.segment.events) for one in others]
    store.set_ratio(ratios)
    now = _start(others, ratios, len(trained.systematics))
    del ratios
    background = weight_sums(trained, Role.BACKGROUND)
    least = max(ENTRIES, settings.min_leaf_entries) * background.second / background.first
    criterion = NewtonCriterion(0.0, least, binning.n_cuts, workers)
    trees: list[Nodes] = []
    values: list[Yields] = []
    history, uncertainties = [now.copy()], [now.scaled(N_PARTS).uncertainty()]
    for number in range(settings.n_trees if trained.systematics else 0):
        if number % PERIOD == 0:
            scaled = now.scaled(N_PARTS)
            store.direct(scaled.pulls(scaled.best()))
        grown = grow_next(store, criterion, binning, settings, number)
        if grown is None:
            break
        fitted, judged = store.sums(grown.leaves)
        outputs = STEP * settings.learning_rate * ((fitted.shifts - fitted.fitted) / fitted.n[:, None] - means)
        now.add_tree(judged, outputs)
        store.add(grown.leaves, outputs)
        nodes = with_thresholds(grown, binning.edges)
        trees.append(with_yields(nodes, fitted.signal, fitted.n - fitted.signal))
        values.append(_of_nodes(nodes, outputs))
        history.append(now.copy())
        uncertainties.append(now.scaled(N_PARTS).uncertainty())
        after_tree(trees[-1])
        if len(trees) - int(np.argmin(uncertainties)) >= PATIENCE:
            break
    return FittedShifts(tuple(trees), tuple(values), tuple(history), tuple(uncertainties))


def _means(segments: list[ShiftSegment], n_sources: int) -> Yields:
    """Mean relative shift ∫ Δ_k / ∫ n of each source."""
    ones = [np.ones(one.segment.events.n_rows) for one in segments]
    shifts = _shift_integrals(segments, ones, n_sources)
    n = math.fsum(_integral(_variance(one.segment.events), r) for one, r in _nominal(segments, ones))
    return shifts / n


def _start(segments: list[ShiftSegment], ratios: list[Yields], n_sources: int) -> Integrals:
    """Integrals of r₀ and of a constant over held-out events; exact sums, which no order of rows changes."""
    ones = [np.ones(len(r)) for r in ratios]
    functions = (ratios, ones)
    signal, gram = np.zeros(2), np.zeros((2, 2))
    for i, f in enumerate(functions):
        signal[i] = math.fsum(
            _integral(one.segment.events.weight, r)
            for one, r in _nominal(segments, f)
            if one.segment.side is Side.SIGNAL
        )
        for j, g in enumerate(functions):
            product = [a * b for a, b in zip(f, g, strict=True)]
            gram[i, j] = math.fsum(_integral(_variance(o.segment.events), r) for o, r in _nominal(segments, product))
    shifts = np.stack([_shift_integrals(segments, f, n_sources) for f in functions], axis=1)
    return Integrals.without_shifts(signal, gram, shifts)


def _nominal(segments: list[ShiftSegment], values: list[Yields]) -> list[tuple[ShiftSegment, Yields]]:
    return [(one, own) for one, own in zip(segments, values, strict=True) if one.segment.nominal]


def _shift_integrals(segments: list[ShiftSegment], values: list[Yields], n_sources: int) -> Yields:
    """∫ Δ_k f for every source."""
    out = np.zeros(n_sources)
    for one, f in zip(segments, values, strict=True):
        out += one.factors * _integral(one.segment.events.weight, f)
        for source, column in one.columns:
            out[source] += _integral(column(), f)
    return out


def _variance(events: Events) -> Yields:
    """Return n = w + w² of every row: expected events, and their MC variance."""
    return np.asarray(events.weight * (1.0 + events.weight))


def _integral(weight: Yields, values: Yields) -> float:
    return math.fsum(weight * values)


def _of_nodes(nodes: Nodes, of_leaves: Yields) -> Yields:
    """Numbers of all nodes, zero for those that are not leaves."""
    out = np.zeros((len(nodes), of_leaves.shape[1]))
    out[nodes["feature"] < 0] = of_leaves
    return out
