"""The first sum of trees: F = ln[(s/S)/(b/B)], by a logistic loss on signal and background of equal sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qbdt.arrays import Nodes
from qbdt.threads import Workers
from qbdt.training.inputs import make_feature_rules
from qbdt.training.profile.expectation import unprofiled_sigma
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.trees import STEP, grow_next, with_yields
from qbdt.training.settings import Settings
from qbdt.trees.rows import Side

__all__ = ["fit_ratio"]

RIDGE = 1.0
LEAST = 5.0
"""Curvature that is added to a node's, and the least that it must have. An event of unit weight has at most 1/4."""

SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Shares of the trees that are tried on held-out events: few where densities are smooth, all for a steep tail."""

PATIENCE = 2
"""Shares in a row without a smaller σ_μ after which no more trees are grown."""


def fit_ratio(
    events: ProfiledEvents, fold: int, settings: Settings, workers: Workers, after_tree: Callable[[Nodes], None]
) -> tuple[Nodes, ...]:
    """Fit F without the events of one fold; returns its trees.

    F is the mean of the sums of 1, 2, … n trees, so the i-th tree counts 1 − (i − 1)/n: the last ones, which learn the
    most noise, count least. n is what is best for the events of the fold: the smallest σ_μ, without sources, of a
    histogram of F. Their loss would stop too early for what a fit sees of F, the tail of pure signal.
    """
    binning = events.binning
    sums = [events.trained(fold, side) for side in Side]
    strength = min(one.first * one.first / one.second for one in sums)  # effective entries of the poorer side
    store = events.ratio_store(fold, [strength / one.first for one in sums])
    criterion = NewtonCriterion(RIDGE, LEAST, make_feature_rules(binning, settings), workers)
    features = np.arange(len(binning.features))
    totals = np.array([one.first for one in sums]) / strength
    looks = {max(1, round(share * settings.n_trees)) for share in SHARES}
    trees: list[Nodes] = []
    tried: dict[int, float] = {}
    for number in range(settings.n_trees):
        grown = grow_next(store, criterion, features, settings, number)
        if grown is None:
            break
        nodes = grown.with_thresholds(binning.edges)
        nodes["value"] *= STEP * settings.learning_rate
        store.add(grown.leaves, nodes["value"][nodes["feature"] < 0])
        trees.append(with_yields(nodes, *(store.yields(grown.leaves) * totals).T))
        after_tree(trees[-1])
        if len(trees) in looks:
            tried[len(trees)] = unprofiled_sigma(store.held)
            if len(tried) > PATIENCE and min(tried, key=tried.__getitem__) not in list(tried)[-PATIENCE:]:
                break
    if len(trees) not in tried:
        tried[len(trees)] = unprofiled_sigma(store.held)
    return _mean_of_sums(trees[: min(tried, key=tried.__getitem__)])


def _mean_of_sums(trees: Sequence[Nodes]) -> tuple[Nodes, ...]:
    """Trees whose sum is the mean of the sums of the first of these, the first two, and so on."""
    for i, nodes in enumerate(trees):
        nodes["value"] *= 1.0 - i / len(trees)
    return tuple(trees)
