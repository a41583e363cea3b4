"""The first sum of trees: F = ln[(s/S)/(b/B)], by a logistic loss on signal and background of equal sums.

With it r₀ = s/(s + b) = 1/(1 + exp(−F − ln(S/B))), docs/profiled-method.md, "How it learns it", step 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats, Nodes
from qbdt.threads import Workers
from qbdt.training.inputs import make_feature_rules
from qbdt.training.partitions.protocol import total
from qbdt.training.profile.expectation import unprofiled_sigma
from qbdt.training.profile.inner_folds import N_FOLDS
from qbdt.training.profile.joint_end import JointEnd
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.pair_rows import STEP, grow_next, with_yields
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.ratio_rows import RatioRows
from qbdt.training.settings import Settings
from qbdt.trees.rows import Side

RIDGE = 0.2
LEAST = 0.2
"""Curvature that is added to a node's (λ of N²/(D + λ), the usual one of boosted trees), and the least of a node. An
event of unit weight has 1/4 where F says nothing, so at first a node has at least one. Both were 1 and 5 until measured
(`make capacity`): a fit lives on the events that are almost surely signal, where p(1 − p) is small,
and with more the trees cannot follow them there."""

CAUTIOUS = 5.0
FEW = 100.0
"""Least curvature, that of twenty events, where there are fewer effective events than these on one side: those held out
are then too few to say how many trees are too many."""

SHARES = (1 / 32, *(sixteenth / 16 for sixteenth in range(1, 17)))
"""Shares of the trees that are looked at with held-out events: few where densities are smooth, all for a steep tail."""

PATIENCE = 3
WORSE = 1.1
ENOUGH = 0.5
"""No more trees are grown after so many looks in a row with a σ_μ so many times the smallest; and, once there is this
share of them, after as many looks without a smaller one: then more trees are for samples that are large enough to
fill them (`make capacity`)."""

LOOKS = 2
CERTAIN = 0.01
"""All folds end together after so many looks in a row that the choice of their number would not take, where the error
of what is lost is less than this share of the information: 0.5 % of σ_μ. So chosen in 22 trainings (shares of the
bundled sample, scattered weights, INFERNO's, benchmark S5), all of which then have as many trees as without this end.
With twice the share one of them had half of the trees, and one look instead of two changes two; thin samples, whose
looks fluctuate by more, rarely end so."""


@dataclass(frozen=True, eq=False)
class FittedRatio:
    """Trees of one fold, and σ_μ of its held-out events, without sources, after some numbers of trees."""

    trees: tuple[Nodes, ...]
    looks: Mapping[int, float]

    def at(self, number: int) -> float:
        """σ_μ after so many trees, or at the look before, where there was none."""
        return self.looks[max((one for one in self.looks if one <= number), default=min(self.looks))]

    def cut(self, number: int) -> FittedRatio:
        """Return the first trees, so many of them, or all where there are fewer."""
        return FittedRatio(self.trees[:number], {one: sigma for one, sigma in self.looks.items() if one <= number})


def fit_ratio(
    strength: int,
    fold: int,
    settings: Settings,
    after_tree: Callable[[Nodes], None],
    joint: JointEnd[Mapping[int, float]],
    all_events: ProfiledEvents,
    workers: Workers,
) -> FittedRatio:
    """Fit F of one strength's signal without the events of one fold, until `joint` says that all folds have enough.

    How many of its trees are taken is decided for all folds together.
    """
    events = all_events.of_strength(strength)
    # Both sides are scaled to the effective number of events (Σw)²/Σw² of the poorer one: then F = 0 means no
    # preference, and curvatures count simulated events, which RIDGE and LEAST are made for.
    sums = [events.trained(fold, side) for side in Side]
    n_effective = min(one.first * one.first / one.second for one in sums)
    scale, held = events.build_ratio_rows(fold, [n_effective / one.first for one in sums])
    yields = np.array([one.first for one in sums]) / n_effective  # scaled weights back to events
    least = max(LEAST if n_effective >= FEW else CAUTIOUS, settings.min_leaf_entries / 4)
    criterion = NewtonCriterion(RIDGE, least, make_feature_rules(events.binning, settings), workers)
    features = np.arange(len(events.features))
    numbers = {max(1, round(share * settings.n_trees)) for share in SHARES}
    trees: list[Nodes] = []
    looks: dict[int, float] = {}
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
        if len(trees) in numbers:
            looks[len(trees)] = unprofiled_sigma(held)
            joint.report(fold, dict(looks), len(trees))
            worse = WORSE if len(trees) < ENOUGH * settings.n_trees else 1.0
            if all(sigma > worse * min(looks.values()) for sigma in list(looks.values())[-PATIENCE:]):
                break
        if joint.is_over:
            break
    if len(trees) not in looks and not joint.is_over:
        looks[len(trees)] = unprofiled_sigma(held)
    joint.report(fold, looks)
    return FittedRatio(tuple(trees), looks)


def choose_size(folds: Sequence[FittedRatio]) -> int:
    """Number of trees, the same in all folds: the most whose σ_μ is not worse than the best beyond its error.

    A fold alone has too few events for this choice, and the smallest σ_μ of all of them together is mostly that of a
    fluctuation: it asks for too few trees. So this is the rule of one standard error, that of the mean difference of
    information over the folds. (Their loss would stop too early for the tail of pure signal, which matters in a fit.)
    """
    numbers, information = _collect_looks(end_together(folds))
    lost, error = _find_lost(information)
    return numbers[int(np.flatnonzero(lost <= error)[-1])]


def end_together(folds: Sequence[FittedRatio]) -> list[FittedRatio]:
    """Leave out trees that were grown beyond the end of all folds."""
    numbers, information = _collect_looks(folds)
    end = _find_end(information)
    return list(folds) if end is None else [fold.cut(numbers[end]) for fold in folds]


def is_joint_end(looks: Sequence[Mapping[int, float]], number: int) -> bool:
    """Whether the looks of all folds up to a number of trees say that none needs more."""
    numbers, information = _collect_looks([FittedRatio((), own) for own in looks])
    return _find_end(information[: np.searchsorted(numbers, number, side="right")]) is not None


def _collect_looks(folds: Sequence[FittedRatio]) -> tuple[list[int], Floats]:
    """All numbers of trees that some fold was looked at with, and the information 1/σ_μ² there, as (look, fold)."""
    numbers = sorted({number for fold in folds for number in fold.looks})
    return numbers, np.array([[fold.at(number) ** -2 for fold in folds] for number in numbers])


def _find_lost(information: Floats) -> tuple[Floats, Floats]:
    """Information that each look has less than the best, as the mean over the folds, and its error."""
    lost = information[np.argmax(information.mean(axis=1))] - information
    n_looks, n_folds = information.shape
    error = lost.std(axis=1, ddof=1) / math.sqrt(n_folds) if n_folds > 1 else np.zeros(n_looks)
    return lost.mean(axis=1), error


def _find_end(information: Floats) -> int | None:
    """Look after which all folds have enough; None where they may need more, or are too few to know an error."""
    for end in range(LOOKS, len(information) if information.shape[-1] >= N_FOLDS else 0):
        lost, error = _find_lost(information[: end + 1])
        least = CERTAIN * information[: end + 1].mean(axis=1).max()
        if np.all((lost > error)[-LOOKS:] & (error < least)[-LOOKS:]):
            return end
    return None


def fade(n_trees: int) -> Floats:
    """Weights 1, 1 − 1/n, … 1/n of n trees: their sum is the mean of the sums of the first, the first two, and so on.

    The last ones, which learn the most noise, count least.

    Examples
    --------
    >>> fade(4)
    array([1.  , 0.75, 0.5 , 0.25])
    """
    return 1.0 - np.arange(n_trees) / max(n_trees, 1)
