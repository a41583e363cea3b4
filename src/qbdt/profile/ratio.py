"""The first sum of trees: F = ln[(s/S)/(b/B)], by a logistic loss on signal and background of equal sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from qbdt.binning import Binning
from qbdt.boosting import Settings
from qbdt.boosting.drawing import drawn_features, row_seed
from qbdt.dataset import Dataset, Role
from qbdt.dtypes import Nodes, Yields
from qbdt.grower import LeafGrowth, NewtonCriterion, grow, with_thresholds
from qbdt.profile.plan import nominal_segments
from qbdt.store import RatioStore
from qbdt.workers import Workers

__all__ = ["STEP", "fit_ratio", "with_yields"]

STEP = 0.2
"""Share of a tree's best output that is added to the sum, for a learning rate of one."""

RIDGE = 1.0
LEAST = 5.0
"""Curvature that is added to a node's, and the least that it must have. An event of unit weight has at most 1/4."""


def fit_ratio(
    trained: Dataset, binning: Binning, settings: Settings, workers: Workers, after_tree: Callable[[Nodes], None]
) -> tuple[Nodes, ...]:
    """Fit F; returns its trees.

    It is not stopped where the loss of other events says so: for what a fit sees of it, the tail of pure signal, that
    is too early, and the average over parts forgives what one of them learns too well.
    """
    strength = min(_effective_entries(trained, role) for role in (Role.SIGNAL, Role.BACKGROUND))
    store = RatioStore(nominal_segments(trained), binning, workers, strength)
    criterion = NewtonCriterion(RIDGE, LEAST, binning.n_cuts, workers)
    totals = np.array([trained.total(Role.SIGNAL), trained.total(Role.BACKGROUND)]) / strength
    trees: list[Nodes] = []
    for number in range(settings.n_trees):
        factor = store.start_tree(row_seed(settings, number), settings.row_fraction)
        root = store.histogram(0)
        sums = criterion.start_tree(root, factor)
        features = drawn_features(settings, number, len(binning.features))
        rule = LeafGrowth(settings.n_leaves)
        grown = grow(store, criterion, rule, root, sums, features, settings.max_depth or settings.n_leaves)
        if len(grown.leaves) < 2:
            break
        nodes = with_thresholds(grown, binning.edges)
        nodes["value"] *= STEP * settings.learning_rate
        store.add(grown.leaves, nodes["value"][nodes["feature"] < 0])
        trees.append(with_yields(nodes, *(store.yields(grown.leaves) * totals).T))
        after_tree(trees[-1])
    return tuple(trees)


def _effective_entries(dataset: Dataset, role: Role) -> float:
    """(Σw)²/Σw² of all samples of one role; no order of rows changes it."""
    weights = [sample.events.weight for sample in dataset.of_role(role)]
    total = math.fsum(math.fsum(weight) for weight in weights)
    return total * total / math.fsum(math.fsum(np.square(weight)) for weight in weights)


def with_yields(nodes: Nodes, s: Yields, b: Yields) -> Nodes:
    """Write s and b into every node of a tree, from those of its leaves."""
    leaves = np.flatnonzero(nodes["feature"] < 0)
    nodes["s"][leaves], nodes["b"][leaves] = s, b
    for i in np.flatnonzero(nodes["feature"] >= 0)[::-1]:
        for name in ("s", "b"):
            nodes[name][i] = nodes[name][nodes["left"][i]] + nodes[name][nodes["right"][i]]
    return nodes
