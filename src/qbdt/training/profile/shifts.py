"""The second sum of trees: the relative shifts r_k = Δ_k/n of all sources, in leaves of several numbers.

A tree is grown for one combination, Σ_k c_k r_k, which the score t* = (s − Σ_k c_k Δ_k)/n needs: c_k = ∫ Δ_k t of the
best score that the trees so far allow, on held-out events. Its leaves then hold the shifts of every source, so a
tree costs the same however many sources there are (docs/profiled-method.md, "How it learns it", step 2). With several
parameters of interest trees are grown for the score of each in turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats, Nodes
from qbdt.threads import Workers
from qbdt.training.inputs import make_feature_rules
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.noise import noise_shrinkage
from qbdt.training.profile.pair_rows import STEP, grow_next, with_yields
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.ratios import Ratios
from qbdt.training.settings import Settings
from qbdt.trees.rows import Side

__all__ = ["ENTRIES", "PATIENCE", "PERIOD", "FittedShifts", "fit_shifts", "of_nodes"]

PERIOD = 5
"""Trees between two solutions for c. Chosen, not tuned: with a step of 0.2, c moves little in fewer."""

PATIENCE = 40
"""Trees without a smaller σ_μ of held-out events after which the shifts have learnt what they can: those of eight
solutions for c, since trees for a new combination need some time to show what they gain. Chosen, not tuned. It is that
of each parameter of interest."""

ENTRIES = 200.0
"""Least simulated events of average weight in a leaf: shifts of fewer are mostly noise, since a relative yield is known
to 1/√200 = 7 %. Chosen, not tuned."""


@dataclass(frozen=True)
class FittedShifts:
    """Trees of one fold, and their `values` for each source (node, source).

    `integrals` are those over held-out events after some of the trees: the last after all of them, the one before
    without the last tree, and so on.
    """

    trees: tuple[Nodes, ...]
    values: tuple[Floats, ...]
    integrals: tuple[Integrals, ...]

    @property
    def fewest(self) -> int:
        """Smallest number of trees for which integrals are known."""
        return len(self.trees) + 1 - len(self.integrals)

    def cut(self, number: int) -> FittedShifts:
        """Return the first trees, so many of them, or all where there are fewer."""
        left_out = max(len(self.trees) - number, 0)
        kept = len(self.trees) - left_out
        return FittedShifts(self.trees[:kept], self.values[:kept], (self.integrals[-1 - left_out],))


def fit_shifts(
    fold: int,
    ratios: Ratios,
    settings: Settings,
    after_tree: Callable[[Nodes], None],
    events: ProfiledEvents,
    workers: Workers,
) -> FittedShifts:
    """Fit the shifts without the events of one fold, and follow what they do there, where `ratios` give each r₀."""
    means, parameters = events.means(fold), events.parameters
    # Integrals a, G, D of f = (r₀, 1) over held-out events. D_k is multiplied by the square root of its shrinkage: DᵀD
    # then counts the part of (∫ Δ_k f)² that is not MC noise.
    held = events.held_integrals(fold, ratios)
    parameters.require_effects(held.blocks)
    shrunk = np.sqrt(noise_shrinkage(held.blocks)) if parameters.are_strengths else np.ones(len(events.sources))
    sums = events.build_shift_rows(fold, ratios)
    now = Integrals.without_shifts(held.signal, sums.gram(), shrunk[:, None] * held.shifts)
    # A split gains N²/D with N = Σ_k c_k ∫ (Δ_k − n (m_k + f_k)), the residual of the combination, and D = ∫ n.
    background = events.trained(fold, Side.BACKGROUND)
    least = max(ENTRIES, settings.min_leaf_entries) * background.second / background.first
    rules = make_feature_rules(events.binning, settings)
    criterion = NewtonCriterion(0.0, least, rules.without_directions(), workers)
    features = np.flatnonzero(rules.directions == 0)  # t* = p − g can only be monotonic in what g does not look at
    trees: list[Nodes] = []
    values: list[Floats] = []
    # Only one fold of the events is held out: integrals are scaled to all, since σ_μ depends on the luminosity.
    best = now.scaled(events.n_folds).solve(parameters)
    history, uncertainties, n_scores = [now.copy()], [best.sigma], len(parameters.interest)
    events.before_trees()
    for number in range(settings.n_trees if events.sources and features.size else 0):
        if number % PERIOD == 0:
            # c is solved for, not stepped to: v = (G + DᵀD)⁻¹ a gives the best score t = v·f, and c_k = ∫ Δ_k t.
            sums.direct(shrunk * best.pulls[number // PERIOD % n_scores])
        grown = grow_next(sums.rows, sums.pair_scales(), criterion, features, settings, number)
        if grown is None:
            break
        # Output of a leaf for every source: the mean of Δ_k/n − m_k − f_k over its trained events, times the step.
        trained, judged = sums.sums(grown.leaves)
        outputs = STEP * settings.learning_rate * ((trained.shifts - trained.fitted) / trained.n[:, None] - means)
        now.add_tree(judged._replace(shifts=shrunk * judged.shifts), outputs)
        sums.add(grown.leaves, outputs)
        nodes = grown.with_thresholds(events.binning.edges)
        signal = np.atleast_2d(trained.signal).sum(axis=0)
        trees.append(with_yields(nodes, signal, trained.n - signal))
        values.append(of_nodes(nodes, outputs))
        best = now.scaled(events.n_folds).solve(parameters)
        history.append(now.copy())
        uncertainties.append(best.sigma)
        after_tree(trees[-1])
        if len(trees) - int(np.argmin(uncertainties)) >= PATIENCE * n_scores:
            break
    return FittedShifts(tuple(trees), tuple(values), tuple(history))


def of_nodes(nodes: Nodes, of_leaves: Floats) -> Floats:
    """Numbers of all nodes, zero for those that are not leaves."""
    out = np.zeros((len(nodes), of_leaves.shape[1]))
    out[nodes["feature"] < 0] = of_leaves
    return out
