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
from qbdt.boosting.drawing import drawn_features, row_seed
from qbdt.dataset import Dataset, Events, Role
from qbdt.dtypes import Nodes, Yields
from qbdt.grower import LeafGrowth, NewtonCriterion, grow, with_thresholds
from qbdt.profile.integrals import Integrals
from qbdt.profile.parts import N_PARTS
from qbdt.profile.plan import shift_segments
from qbdt.profile.ratio import STEP, with_yields
from qbdt.store import ShiftSegment, ShiftStore, Side
from qbdt.workers import Workers

__all__ = ["FittedShifts", "fit_shifts", "ratio_integrals"]

PERIOD = 5
"""Trees between two solutions for c."""

ENTRIES = 200.0
"""Least simulated events of average weight in a leaf: shifts of fewer are mostly noise."""


@dataclass(frozen=True)
class FittedShifts:
    """Trees, their numbers for each source (node, source), and the integrals over held-out events after each tree."""

    trees: tuple[Nodes, ...]
    values: tuple[Yields, ...]
    integrals: tuple[Integrals, ...]

    def best(self) -> int:
        """Number of trees with the smallest expected σ_μ."""
        scaled = [one.scaled(N_PARTS) for one in self.integrals]
        return int(np.argmin([one.uncertainty(one.best()) for one in scaled]))


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
    store = ShiftStore(segments + others, binning, workers, len(segments), len(trained.systematics))
    ratios = [ratio(one.segment.events) for one in others]
    store.set_ratio(ratios)
    now = _start(others, ratios, len(trained.systematics))
    del ratios
    least = max(ENTRIES, settings.min_leaf_entries) * _average_weight(trained)
    criterion = NewtonCriterion(0.0, least, binning.n_cuts, workers)
    trees: list[Nodes] = []
    values: list[Yields] = []
    history = [now.copy()]
    for number in range(settings.n_trees):
        if number % PERIOD == 0:
            scaled = now.scaled(N_PARTS)
            store.direct(scaled.pulls(scaled.best()))
        found = store.start_tree(row_seed(settings, number), settings.row_fraction)
        root = store.histogram(0)
        sums = criterion.start_tree(root, found)
        features = drawn_features(settings, number, len(binning.features))
        rule = LeafGrowth(settings.n_leaves)
        grown = grow(store, criterion, rule, root, sums, features, settings.max_depth or settings.n_leaves)
        if len(grown.leaves) < 2:
            break
        fitted, judged = store.sums(grown.leaves)
        outputs = STEP * settings.learning_rate * (fitted.shifts - fitted.fitted) / fitted.n[:, None]
        now.add_tree(judged, outputs)
        store.add(grown.leaves, outputs)
        nodes = with_thresholds(grown, binning.edges)
        trees.append(with_yields(nodes, fitted.signal, fitted.n - fitted.signal))
        values.append(_of_nodes(nodes, outputs))
        history.append(now.copy())
        after_tree(trees[-1])
    return FittedShifts(tuple(trees), tuple(values), tuple(history))


def ratio_integrals(held: Dataset, ratio: Callable[[Events], Yields]) -> Integrals:
    """Integrals over held-out events without any shifts."""
    segments = shift_segments(held)
    return _start(segments, [ratio(one.segment.events) for one in segments], len(held.systematics))


def _start(segments: list[ShiftSegment], ratios: list[Yields], n_sources: int) -> Integrals:
    """Integrals of r₀ over held-out events; exact sums, which no order of rows changes."""
    signal, square, shifts = 0.0, 0.0, np.zeros(n_sources)
    for one, r in zip(segments, ratios, strict=True):
        w = one.segment.events.weight
        shifts += one.factors * math.fsum(w * r)
        for source, column in one.columns:
            shifts[source] += math.fsum(column() * r)
        if one.segment.nominal:
            square += math.fsum((w + w * w) * r * r)
            signal += math.fsum(w * r) if one.segment.side is Side.SIGNAL else 0.0
    return Integrals.of_ratio(signal, square, shifts)


def _average_weight(dataset: Dataset) -> float:
    """Σw²/Σw of the background: the weight of a typical simulated event."""
    weights = [sample.events.weight for sample in dataset.of_role(Role.BACKGROUND)]
    return math.fsum(math.fsum(np.square(w)) for w in weights) / math.fsum(math.fsum(w) for w in weights)


def _of_nodes(nodes: Nodes, of_leaves: Yields) -> Yields:
    """Numbers of all nodes, zero for those that are not leaves."""
    out = np.zeros((len(nodes), of_leaves.shape[1]))
    out[nodes["feature"] < 0] = of_leaves
    return out
