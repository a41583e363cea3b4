"""The first sum of trees: F = ln[(s/S)/(b/B)], by a logistic loss on signal and background of equal sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from qbdt.binning import Binning
from qbdt.boosting import Settings
from qbdt.dataset import Dataset, Role
from qbdt.dtypes import Nodes, Yields
from qbdt.ensemble import Ensemble
from qbdt.grower import NewtonCriterion, with_thresholds
from qbdt.profile.expecting import binned_uncertainty
from qbdt.profile.plan import nominal_segments
from qbdt.profile.trees import STEP, grow_next, weight_sums, with_yields
from qbdt.store import RatioStore
from qbdt.tree import Tree
from qbdt.workers import Workers

__all__ = ["fit_ratio"]

RIDGE = 1.0
LEAST = 5.0
"""Curvature that is added to a node's, and the least that it must have. An event of unit weight has at most 1/4."""

PERIOD = 25
"""Trees between two looks at held-out events."""

PATIENCE = 100
"""Trees without a smaller σ_μ of held-out events after which no more are grown."""


def fit_ratio(
    trained: Dataset,
    held: Dataset,
    binning: Binning,
    settings: Settings,
    workers: Workers,
    after_tree: Callable[[Nodes], None],
) -> tuple[Nodes, ...]:
    """Fit F on some events; returns its trees, as many as are best for others.

    Best is the smallest σ_μ, without sources, of a histogram of F. The loss would stop too early for what a fit sees of
    F, the tail of pure signal.
    """
    sums = [weight_sums(trained, role) for role in (Role.SIGNAL, Role.BACKGROUND)]
    strength = min(one.first * one.first / one.second for one in sums)  # effective entries of the poorer side
    store = RatioStore(nominal_segments(trained), binning, workers, strength)
    criterion = NewtonCriterion(RIDGE, LEAST, binning.n_cuts, workers)
    totals = np.array([trained.total(Role.SIGNAL), trained.total(Role.BACKGROUND)]) / strength
    trees: list[Nodes] = []
    watch = _Watch(held, workers.n_threads)
    for number in range(settings.n_trees):
        grown = grow_next(store, criterion, binning, settings, number)
        if grown is None:
            break
        nodes = with_thresholds(grown, binning.edges)
        nodes["value"] *= STEP * settings.learning_rate
        store.add(grown.leaves, nodes["value"][nodes["feature"] < 0])
        trees.append(with_yields(nodes, *(store.yields(grown.leaves) * totals).T))
        after_tree(trees[-1])
        if len(trees) % PERIOD == 0 and watch.look(trees) - watch.best >= PATIENCE:
            break
    watch.look(trees)
    return tuple(trees[: watch.best])


class _Watch:
    """What a histogram of F over held-out events promises, as trees are added."""

    def __init__(self, held: Dataset, n_threads: int) -> None:
        self._segments = nominal_segments(held)
        self._features = held.features
        self._n_threads = n_threads
        self._values: list[Yields] = [np.zeros(one.events.n_rows) for one in self._segments]
        self._seen = 0
        self._smallest = math.inf
        self.best = 0

    def look(self, trees: Sequence[Nodes]) -> int:
        """Judge all trees so far; returns their number."""
        new = Ensemble(self._features, tuple(Tree(nodes, 1.0) for nodes in trees[self._seen :]))
        for values, one in zip(self._values, self._segments, strict=True):
            values += new.score(one.events, self._n_threads)
        self._seen = len(trees)
        found = binned_uncertainty(self._segments, self._values)
        if found < self._smallest:
            self._smallest, self.best = found, self._seen
        return self._seen
