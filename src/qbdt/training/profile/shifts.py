"""The second sum of trees: the relative shifts r_k = Δ_k/n of all sources, in leaves of several numbers.

A tree is grown for one combination, Σ_k c_k r_k, the one that the score needs: c_k = ∫ Δ_k t of the best score that
the trees so far allow, on held-out events. Its leaves then hold the shifts of every source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats, Nodes
from qbdt.threads import Workers
from qbdt.training.inputs import make_feature_rules
from qbdt.training.profile.inner_folds import N_FOLDS
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.noise import noise_shrinkage
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.trees import STEP, grow_next, with_yields
from qbdt.training.settings import Settings
from qbdt.trees.rows import Side

__all__ = ["FittedShifts", "fit_shifts"]

PERIOD = 5
"""Trees between two solutions for c."""

PATIENCE = 40
"""Trees without a smaller σ_μ of held-out events after which the shifts have learnt what they can."""

ENTRIES = 200.0
"""Least simulated events of average weight in a leaf: shifts of fewer are mostly noise."""


@dataclass(frozen=True)
class FittedShifts:
    """Trees, their numbers for each source (node, source), and the integrals over held-out events after each tree.

    The first integrals are those without any tree.
    """

    trees: tuple[Nodes, ...]
    values: tuple[Floats, ...]
    integrals: tuple[Integrals, ...]


def fit_shifts(
    events: ProfiledEvents,
    fold: int,
    model: ProfiledEnsemble,
    settings: Settings,
    workers: Workers,
    after_tree: Callable[[Nodes], None],
) -> FittedShifts:
    """Fit the shifts without the events of one fold, and follow what they do there, where the model gives r₀."""
    binning, means = events.binning, events.means(fold)
    start = events.held_integrals(fold, model)
    believed = np.sqrt(noise_shrinkage(start.blocks))
    store = events.shift_store(fold, model)
    now = Integrals.without_shifts(start.signal, store.gram(), believed[:, None] * start.shifts)
    background = events.trained(fold, Side.BACKGROUND)
    least = max(ENTRIES, settings.min_leaf_entries) * background.second / background.first
    rules = make_feature_rules(binning, settings)
    criterion = NewtonCriterion(0.0, least, rules.without_directions(), workers)
    features = np.flatnonzero(rules.directions == 0)  # t* = p − g can only be monotonic in what g does not look at
    trees: list[Nodes] = []
    values: list[Floats] = []
    history, uncertainties = [now.copy()], [now.scaled(N_FOLDS).uncertainty()]
    for number in range(settings.n_trees if events.sources and features.size else 0):
        if number % PERIOD == 0:
            scaled = now.scaled(N_FOLDS)
            store.direct(believed * scaled.pulls(scaled.best()))
        grown = grow_next(store, criterion, features, settings, number)
        if grown is None:
            break
        fitted, judged = store.sums(grown.leaves)
        outputs = STEP * settings.learning_rate * ((fitted.shifts - fitted.fitted) / fitted.n[:, None] - means)
        now.add_tree(judged._replace(shifts=believed * judged.shifts), outputs)
        store.add(grown.leaves, outputs)
        nodes = grown.with_thresholds(binning.edges)
        trees.append(with_yields(nodes, fitted.signal, fitted.n - fitted.signal))
        values.append(_of_nodes(nodes, outputs))
        history.append(now.copy())
        uncertainties.append(now.scaled(N_FOLDS).uncertainty())
        after_tree(trees[-1])
        if len(trees) - int(np.argmin(uncertainties)) >= PATIENCE:
            break
    return FittedShifts(tuple(trees), tuple(values), tuple(history))


def _of_nodes(nodes: Nodes, of_leaves: Floats) -> Floats:
    """Numbers of all nodes, zero for those that are not leaves."""
    out = np.zeros((len(nodes), of_leaves.shape[1]))
    out[nodes["feature"] < 0] = of_leaves
    return out
