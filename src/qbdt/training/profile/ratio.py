"""The first sum of trees: F = ln[(s/S)/(b/B)], by a logistic loss on signal and background of equal sums.

With it r₀ = s/(s + b) = 1/(1 + exp(−F − ln(S/B))), docs/profiled-method.md, "How it learns it", step 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qbdt.arrays import Nodes
from qbdt.threads import Workers
from qbdt.training.inputs import make_feature_rules
from qbdt.training.partitions.protocol import total
from qbdt.training.profile.expectation import unprofiled_sigma
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.pair_rows import STEP, grow_next, with_yields
from qbdt.training.profile.profiled_events import SignalEvents
from qbdt.training.profile.ratio_rows import RatioRows
from qbdt.training.settings import Settings
from qbdt.trees.rows import Side

__all__ = ["fit_ratio"]

RIDGE = 1.0
LEAST = 5.0
"""Curvature that is added to a node's (λ of N²/(D + λ), the usual one of boosted trees), and the least of a node
(measured on the physics benchmark, P2): an event of unit weight has at most 1/4, so a node has 20 of them or more."""

SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)
"""Shares of the trees that are tried on held-out events: few where densities are smooth, all for a steep tail."""

PATIENCE = 2
"""Shares in a row without a smaller σ_μ after which no more trees are grown: one may be a fluctuation."""


def fit_ratio(
    events: SignalEvents, fold: int, settings: Settings, workers: Workers, after_tree: Callable[[Nodes], None]
) -> tuple[Nodes, ...]:
    """Fit F without the events of one fold; returns its trees.

    F is the mean of the sums of 1, 2, … n trees, so the i-th tree counts 1 − (i − 1)/n: the last ones, which learn the
    most noise, count least. n is best for the events of the fold: the smallest σ_μ, without sources, of a histogram of
    F. Their loss would stop too early for what a fit sees of F, the tail of pure signal.
    """
    # Both sides are scaled to the effective number of events (Σw)²/Σw² of the poorer one: then F = 0 means no
    # preference, and curvatures count simulated events, which RIDGE and LEAST are made for.
    sums = [events.trained(fold, side) for side in Side]
    strength = min(one.first * one.first / one.second for one in sums)
    scale, held = events.build_ratio_rows(fold, [strength / one.first for one in sums])
    yields = np.array([one.first for one in sums]) / strength  # scaled weights back to events
    criterion = NewtonCriterion(RIDGE, LEAST, make_feature_rules(events.binning, settings), workers)
    features = np.arange(len(events.features))
    looks = {max(1, round(share * settings.n_trees)) for share in SHARES}
    trees: list[Nodes] = []
    tried: dict[int, float] = {}
    for number in range(settings.n_trees):
        # A Newton step for the logistic loss: a leaf's output is −Σ gradient/(Σ curvature + λ), see `logistic_pairs`.
        grown = grow_next(events.rows, (scale, scale), criterion, features, settings, number)
        if grown is None:
            break
        nodes = grown.with_thresholds(events.binning.edges)
        nodes["value"] *= STEP * settings.learning_rate
        events.rows.tell(RatioRows.add, grown.leaves, nodes["value"][nodes["feature"] < 0])
        s, b = (events.rows.ask(total(RatioRows.yields, grown.leaves, scale))[0] / scale * yields).T
        trees.append(with_yields(nodes, s, b))
        after_tree(trees[-1])
        if len(trees) in looks:
            tried[len(trees)] = unprofiled_sigma(held)
            if len(tried) > PATIENCE and _best(tried) not in list(tried)[-PATIENCE:]:
                break
    if len(trees) not in tried:
        tried[len(trees)] = unprofiled_sigma(held)
    return _mean_of_sums(trees[: _best(tried)])


def _best(tried: dict[int, float]) -> int:
    """Number of trees with the smallest σ_μ."""
    return min(tried, key=tried.__getitem__)


def _mean_of_sums(trees: Sequence[Nodes]) -> tuple[Nodes, ...]:
    """Trees whose sum is the mean of the sums of the first of these, the first two, and so on."""
    for i, nodes in enumerate(trees):
        nodes["value"] *= 1.0 - i / len(trees)
    return tuple(trees)
