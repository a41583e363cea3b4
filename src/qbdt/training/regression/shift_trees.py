"""The second sum of trees: the relative shifts Δ_k/n of all sources, for the combination that a prediction needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from qbdt.arrays import Floats, Nodes
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.noise import noise_shrinkage
from qbdt.training.profile.shift_sums import LeafSums
from qbdt.training.profile.shifts import ENTRIES, FittedShifts, Judged, grow_shifts
from qbdt.training.regression.profiling import ProfiledShifts, effects_in_blocks, profile_shifts
from qbdt.training.regression.regression_events import HeldPrediction, RegressionEvents
from qbdt.training.settings import Settings
from qbdt.trees.growth import Grown


def fit_shift_trees(
    fold: int,
    prediction: HeldPrediction,
    settings: Settings,
    after_tree: Callable[[], None],
    events: RegressionEvents,
) -> tuple[FittedShifts, Floats]:
    """Fit the shifts without the events of one fold; return them, and the share of each effect that is no noise.

    As in the profiled method, a tree is grown for Σ_k c_k r_k, with c_k the effect that the best prediction so far
    still has on held-out events, and its leaves hold the shifts of every source.
    """
    held, sums = events.held_integrals(fold, prediction), events.build_shift_rows(fold, prediction)
    start = Integrals.without_shifts(held.signal, sums.gram(), held.shifts)
    known = noise_shrinkage(effects_in_blocks(held.blocks, start.gram[0, 2] / start.gram[2, 2]))
    least = max(ENTRIES, settings.min_leaf_entries) * events.mean_weight
    criterion = NewtonCriterion(0.0, least, events.rules, events.workers)

    def judge(now: Integrals) -> Judged:
        best = profile_shifts(now.scaled(events.n_folds), prediction.scales, known)
        return Judged(best.loss, (np.sqrt(known) * best.pulls)[None])

    def finish(grown: Grown, trained: LeafSums) -> Nodes:
        after_tree()
        return grown.with_thresholds(events.binning.edges)

    features = np.arange(len(events.binning.features))
    fitted = grow_shifts(sums, start, np.ones(len(known)), criterion, features, settings, judge, finish)
    return fitted, known


def profile_folds(
    folds: Sequence[FittedShifts], prediction: HeldPrediction, known: Floats
) -> tuple[list[FittedShifts], ProfiledShifts]:
    """Take as many trees of all folds as are best for all held-out events together; return the profiled shifts too."""

    def profiled(number: int) -> ProfiledShifts:
        total = reduce(Integrals.__add__, (fold.cut(number).integrals[-1] for fold in folds))
        return profile_shifts(total, prediction.scales, known)

    results = [profiled(number) for number in range(max(len(fold.trees) for fold in folds) + 1)]
    best = min(range(len(results)), key=lambda number: results[number].loss)
    return [fold.cut(best) for fold in folds], results[best]
