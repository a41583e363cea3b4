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
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.trees import Ensemble, Tree

__all__ = ["Combination", "FoldTrees", "best_number", "combine"]


@dataclass(frozen=True, eq=False)
class FoldTrees:
    """Trees of one fold: those of F, and those of the shifts with their `values` for each source (node, source).

    `integrals` are those over held-out events after some of the shifts' trees: the last after all of them, the one
    before without the last tree, and so on.
    """

    ratio: tuple[Nodes, ...]
    shift: tuple[Nodes, ...]
    values: tuple[Floats, ...]
    integrals: tuple[Integrals, ...]

    @property
    def fewest(self) -> int:
        """Smallest number of trees of the shifts for which integrals are known."""
        return len(self.shift) + 1 - len(self.integrals)

    def with_shifts(self, number: int) -> FoldTrees:
        """Return the fold with so many trees of the shifts, or all where there are fewer."""
        left_out = max(len(self.shift) - number, 0)
        kept = len(self.shift) - left_out
        return FoldTrees(self.ratio, self.shift[:kept], self.values[:kept], (self.integrals[-1 - left_out],))


def best_number(folds: Sequence[FoldTrees]) -> int:
    """Number of trees of the shifts, the same in all folds, with the smallest σ_μ of all held-out events together.

    A fold alone has too few events for this choice.
    """
    numbers = range(max(fold.fewest for fold in folds), max(len(fold.shift) for fold in folds) + 1)
    return min(
        numbers, key=lambda number: _total([fold.with_shifts(number) for fold in folds], len(folds)).uncertainty()
    )


def _total(folds: Sequence[FoldTrees], n_folds: int) -> Integrals:
    """Integrals over the held-out events of some of `n_folds` folds, for as many events as there are in all of them."""
    return reduce(Integrals.__add__, (fold.integrals[-1] for fold in folds)).scaled(n_folds / len(folds))


@dataclass(frozen=True, eq=False)
class Combination:
    """Coefficients c_k in t* = r₀ − Σ_k c_k f_k, and `pulls` ∫ Δ_k t* over held-out events: for exact f's the same."""

    coefficients: Floats
    pulls: Floats

    @classmethod
    def of(cls, folds: Sequence[FoldTrees], n_folds: int) -> Combination:
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
    folds: Sequence[FoldTrees],
    combination: Combination,
    features: tuple[str, ...],
    sources: tuple[str, ...],
    log_odds: float,
    information: tuple[float, float] | None = None,
    categories: Mapping[int, Floats] | None = None,
) -> ProfiledEnsemble:
    """Average the sums of trees of some folds.

    The gains of the two sums are scaled to add up to `information` about μ, where it is given; `categories` are by
    number of the feature.
    """
    known = categories or {}
    weight = 1.0 / len(folds)
    values = tuple(array for fold in folds for array in fold.values)
    ratio = [nodes.copy() for fold in folds for nodes in fold.ratio]
    shift = [nodes.copy() for fold in folds for nodes in fold.shift]
    if information is not None:
        _scale_gain(ratio, information[0] / weight)
        _scale_gain(shift, information[1] / weight)
    for nodes, own in zip(shift, values, strict=True):
        nodes["value"] = own @ combination.coefficients
    return ProfiledEnsemble(
        Ensemble(features, tuple(Tree(nodes, weight, known) for nodes in ratio)),
        Ensemble(features, tuple(Tree(nodes, weight, known) for nodes in shift)),
        log_odds,
        sources,
        tuple(combination.coefficients.tolist()),
        values,
    )


def _scale_gain(trees: Sequence[Nodes], total: float) -> None:
    """Scale the gains of all splits such that they add up to some total."""
    found = math.fsum(float(nodes["gain"].sum()) for nodes in trees)
    for nodes in trees:
        nodes["gain"] *= total / found if found > 0 else 0.0
