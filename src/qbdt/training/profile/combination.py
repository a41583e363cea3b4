"""The model of all folds together: how many trees of the shifts, which coefficients, and the mean of their sums.

With f = (r₀, 1, f_1 … f_K) and a, G, D summed over the held-out events of all folds, the score t = v·f has
σ_μ² = vᵀ(G + DᵀD)v/(a·v)² (docs/profiled-method.md, "How it learns it", step 3; `Integrals`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from qbdt.arrays import Floats, Nodes
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.ratio import fade
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.shifts import FittedShifts
from qbdt.trees import Ensemble, Tree

__all__ = ["Combination", "best_number", "combine"]


def best_number(folds: Sequence[FittedShifts]) -> int:
    """Number of trees of the shifts, the same in all folds, with the smallest σ_μ of all held-out events together.

    A fold alone has too few events for this choice.
    """
    numbers = range(max(fold.fewest for fold in folds), max(len(fold.trees) for fold in folds) + 1)
    return min(numbers, key=lambda number: _total([fold.cut(number) for fold in folds], len(folds)).uncertainty())


def _total(folds: Sequence[FittedShifts], n_folds: int) -> Integrals:
    """Integrals over the held-out events of some of `n_folds` folds, for as many events as there are in all of them."""
    return reduce(Integrals.__add__, (fold.integrals[-1] for fold in folds)).scaled(n_folds / len(folds))


@dataclass(frozen=True, eq=False)
class Combination:
    """Coefficients c_k in t* = r₀ − Σ_k c_k f_k, and `pulls` ∫ Δ_k t* over held-out events: for exact f's the same."""

    coefficients: Floats
    pulls: Floats

    @classmethod
    def of(cls, folds: Sequence[FittedShifts], n_folds: int) -> Combination:
        """Best for the held-out events of some of `n_folds` folds.

        It is t = r₀ + v_1 + Σ_k v_k f_k with v of `Integrals.best`, c_k = −v_k.
        """
        total = _total(folds, n_folds)
        v = total.best()
        return cls(-v[2:], total.pulls(v))

    def times(self, share: float) -> Combination:
        """Return the same with a share of the coefficients."""
        return Combination(share * self.coefficients, self.pulls)


def combine(
    ratios: Sequence[Sequence[Nodes]],
    folds: Sequence[FittedShifts],
    combination: Combination,
    features: tuple[str, ...],
    sources: tuple[str, ...],
    log_odds: float,
    information: tuple[float, float] | None = None,
    categories: Mapping[int, Floats] | None = None,
) -> ProfiledEnsemble:
    """Average the sums of trees of some folds: those of F, and those of the shifts.

    The gains of the two sums are scaled to add up to `information` about μ, where it is given; `categories` are by
    number of the feature.
    """
    known = categories or {}
    values = tuple(array for fold in folds for array in fold.values)
    ratio = [nodes.copy() for own in ratios for nodes in own]
    shift = [nodes.copy() for fold in folds for nodes in fold.trees]
    weights = [w / len(ratios) for own in ratios for w in fade(len(own)).tolist()]
    shift_weights = [1.0 / len(folds)] * len(shift) if folds else []
    if information is not None:
        _scale_gain(ratio, weights, information[0])
        _scale_gain(shift, shift_weights, information[1])
    for nodes, own in zip(shift, values, strict=True):
        nodes["value"] = own @ combination.coefficients
    return ProfiledEnsemble(
        Ensemble(features, tuple(Tree(*one, known) for one in zip(ratio, weights, strict=True))),
        Ensemble(features, tuple(Tree(*one, known) for one in zip(shift, shift_weights, strict=True))),
        log_odds,
        sources,
        tuple(combination.coefficients.tolist()),
        values,
    )


def _scale_gain(trees: Sequence[Nodes], weights: Sequence[float], total: float) -> None:
    """Scale the gains of all splits such that they add up to some total, each times the weight of its tree."""
    found = math.fsum(weight * float(nodes["gain"].sum()) for nodes, weight in zip(trees, weights, strict=True))
    for nodes in trees:
        nodes["gain"] *= total / found if found > 0 else 0.0
