"""The second sum of trees: the relative shifts r_k = Δ_k/n of all sources, in leaves of several numbers.

A tree is grown for one combination, Σ_k c_k r_k, which the score t* = (s − Σ_k c_k Δ_k)/n needs: c_k = ∫ Δ_k t of the
best score that the trees so far allow, on held-out events. Its leaves then hold the shifts of every source, so a
tree costs the same however many sources there are (docs/profiled-method.md, "How it learns it", step 2). With several
parameters of interest trees are grown for the score of each in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats, Nodes
from qbdt.threads import Workers
from qbdt.training.inputs import make_feature_rules
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.joint_end import JointEnd
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.noise import noise_shrinkage
from qbdt.training.profile.pair_rows import STEP, grow_next, with_yields
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.ratios import Ratios
from qbdt.training.profile.shift_sums import LeafSums, ShiftSums
from qbdt.training.settings import Settings
from qbdt.trees.growth import Grown
from qbdt.trees.rows import Side

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


class Judged(NamedTuple):
    """What held-out events say of the shifts so far: a figure that should be small, and c_k of each score."""

    figure: float
    pulls: Floats


def fit_shifts(
    fold: int,
    ratios: Ratios,
    settings: Settings,
    after_tree: Callable[[Nodes], None],
    joint: JointEnd[Sequence[Integrals]],
    events: ProfiledEvents,
    workers: Workers,
) -> FittedShifts:
    """Fit the shifts without the events of one fold, and follow what they do there, where `ratios` give each r₀.

    They end by themselves, or where `joint` says that all folds have enough.
    """
    parameters = events.parameters
    # Integrals a, G, D of f = (r₀, 1) over held-out events. D_k is multiplied by the square root of its shrinkage: DᵀD
    # then counts the part of (∫ Δ_k f)² that is not MC noise.
    held = events.held_integrals(fold, ratios)
    parameters.require_effects(held.blocks)
    shrunk = np.sqrt(noise_shrinkage(held.blocks)) if parameters.are_strengths else np.ones(len(events.sources))
    sums = events.build_shift_rows(fold, ratios)
    start = Integrals.without_shifts(held.signal, sums.gram(), shrunk[:, None] * held.shifts)
    # A split gains N²/D with N = Σ_k c_k ∫ (Δ_k − n (m_k + f_k)), the residual of the combination, and D = ∫ n.
    background = events.trained(fold, Side.BACKGROUND)
    least = max(ENTRIES, settings.min_leaf_entries) * background.second / background.first
    rules = make_feature_rules(events.binning, settings)
    criterion = NewtonCriterion(0.0, least, rules.without_directions(), workers)
    features = np.flatnonzero(rules.directions == 0)  # t* = p − g can only be monotonic in what g does not look at

    def judge(now: Integrals) -> Judged:
        # Only one fold of the events is held out: integrals are scaled to all, since σ_μ depends on the luminosity.
        best = now.scaled(events.n_folds).solve(parameters)
        return Judged(best.sigma, shrunk * best.pulls)

    def finish(grown: Grown, trained: LeafSums) -> Nodes:
        signal = np.atleast_2d(trained.signal).sum(axis=0)
        nodes = with_yields(grown.with_thresholds(events.binning.edges), signal, trained.n - signal)
        after_tree(nodes)
        return nodes

    def is_over(history: Sequence[Integrals]) -> bool:
        joint.report(fold, history, len(history) - 1)
        return joint.is_over

    fitted = grow_shifts(sums, start, shrunk, criterion, features, settings, judge, finish, is_over)
    joint.report(fold, fitted.integrals)
    return fitted


def grow_shifts(
    sums: ShiftSums,
    start: Integrals,
    shrunk: Floats,
    criterion: NewtonCriterion,
    features: Fixed,
    settings: Settings,
    judge: Callable[[Integrals], Judged],
    finish: Callable[[Grown, LeafSums], Nodes],
    is_over: Callable[[Sequence[Integrals]], bool] = lambda history: False,
) -> FittedShifts:
    """Grow trees for the combination that `judge` asks for, until it has had nothing to gain for some time.

    Parameters
    ----------
    sums
        The rows, trained on and held out.
    start
        Integrals over held-out events without shifts.
    shrunk
        What the shifts of each source over held-out events are multiplied by.
    criterion, features
        How, and by what, nodes are split.
    settings
        Of the training.
    judge
        Says how good shifts with some integrals are.
    finish
        Makes the nodes of a tree from it and the sums in its leaves.
    is_over
        Says, of the integrals after each number of trees so far, whether other folds have enough too.
    """
    now, judged = start, judge(start)
    trees: list[Nodes] = []
    values: list[Floats] = []
    history, figures, n_scores = [now.copy()], [judged.figure], len(judged.pulls)
    for number in range(settings.n_trees if features.size and np.any(judged.pulls) else 0):
        if number % PERIOD == 0:
            # c is solved for, not stepped to: v = (G + DᵀD)⁻¹ a gives the best score t = v·f, and c_k = ∫ Δ_k t.
            sums.direct(judged.pulls[number // PERIOD % n_scores])
        grown = grow_next(sums.rows, sums.pair_scales(), criterion, features, settings, number)
        if grown is None:
            break
        # Output of a leaf for every source: the mean of Δ_k/n − m_k − f_k over its trained events, times the step.
        trained, held = sums.sums(grown.leaves)
        outputs = STEP * settings.learning_rate * ((trained.shifts - trained.fitted) / trained.n[:, None] - sums.means)
        now.add_tree(held._replace(shifts=shrunk * held.shifts), outputs)
        sums.add(grown.leaves, outputs)
        trees.append(finish(grown, trained))
        values.append(_of_nodes(trees[-1], outputs))
        judged = judge(now)
        history.append(now.copy())
        figures.append(judged.figure)
        if len(trees) - int(np.argmin(figures)) >= PATIENCE * n_scores or is_over(history):
            break
    return FittedShifts(tuple(trees), tuple(values), tuple(history))


def _of_nodes(nodes: Nodes, of_leaves: Floats) -> Floats:
    """Numbers of all nodes, zero for those that are not leaves."""
    out = np.zeros((len(nodes), of_leaves.shape[1]))
    out[nodes["feature"] < 0] = of_leaves
    return out
