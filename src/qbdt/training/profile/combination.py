"""The model of all folds together: how many trees of the shifts, which coefficients, and the mean of their sums.

With f = (r₀, 1, f_1 … f_K) and a, G, D summed over the held-out events of all folds, the score t = v·f has
σ_μ² = vᵀ(G + DᵀD)v/(a·v)² (docs/profiled-method.md, "How it learns it", step 3; `Integrals`). With several parameters
of interest there is a v of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from qbdt.arrays import Floats, Nodes
from qbdt.training.profile.efficient_scores import EfficientScores
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.parameters import Parameters
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.trees import Binning, Ensemble, Tree
from qbdt.trees.device import DeviceEnsemble, DeviceMemory

__all__ = ["Combination", "FoldTrees", "ModelFrame", "best_number", "combine"]


@dataclass(frozen=True, eq=False)
class FoldTrees:
    """Trees of one fold: those of F of each strength, and those of the shifts with `values` of sources (node, source).

    `integrals` are those over held-out events after some of the shifts' trees: the last after all of them, the one
    before without the last tree, and so on.
    """

    ratios: tuple[tuple[Nodes, ...], ...]
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
        return FoldTrees(self.ratios, self.shift[:kept], self.values[:kept], (self.integrals[-1 - left_out],))


def best_number(folds: Sequence[FoldTrees], parameters: Parameters) -> int:
    """Number of trees of the shifts, the same in all folds, with the smallest σ_μ of all held-out events together.

    A fold alone has too few events for this choice.
    """
    numbers = range(max(fold.fewest for fold in folds), max(len(fold.shift) for fold in folds) + 1)

    def expect(number: int) -> float:
        return _total([fold.with_shifts(number) for fold in folds], len(folds)).solve(parameters).sigma

    return min(numbers, key=expect)


def _total(folds: Sequence[FoldTrees], n_folds: int) -> Integrals:
    """Integrals over the held-out events of some of `n_folds` folds, for as many events as there are in all of them."""
    return reduce(Integrals.__add__, (fold.integrals[-1] for fold in folds)).scaled(n_folds / len(folds))


@dataclass(frozen=True, eq=False)
class Combination:
    """Coefficients of the scores t_j = Σ_i a_ji r_0i − Σ_k c_jk f_k; one strength alone has a = 1.

    Attributes
    ----------
    ratio_coefficients, coefficients
        a_ji and c_jk, by score.
    pulls
        For each score how far a fit pulls θ_k: ∫ Δ_k t* over held-out events. For exact f's the same as c_k.
    widths
        Root mean square of each score.
    """

    ratio_coefficients: Floats
    coefficients: Floats
    pulls: Floats
    widths: Floats

    @classmethod
    def of(cls, folds: Sequence[FoldTrees], n_folds: int, parameters: Parameters) -> Combination:
        """Best for the held-out events of some of `n_folds` folds.

        It is t = Σ_i v_i r_0i + v_c + Σ_k v_k f_k with v of `Integrals.solve`, c_k = −v_k.
        """
        total = _total(folds, n_folds)
        best, n_ratios = total.solve(parameters), total.n_ratios
        if best.covariance is not None:
            parameters.require_separable(best.covariance)
        v = best.coefficients
        squares = np.einsum("ja,ab,jb->j", v, total.gram, v) / total.gram[n_ratios, n_ratios]
        return cls(v[:, :n_ratios], -v[:, n_ratios + 1 :], best.pulls, np.sqrt(np.maximum(squares, 1e-300)))

    def times(self, shares: Sequence[float]) -> Combination:
        """Return the same with a share of the coefficients of each score."""
        return replace(self, coefficients=np.array(shares)[:, None] * self.coefficients)


@dataclass(frozen=True, eq=False)
class ModelFrame:
    """What the models of all folds have in common; `categories` are by number of the feature.

    Where the rows of a training are on a device, `judging` is that memory and the bins, for models that score them.
    """

    features: tuple[str, ...]
    parameters: Parameters
    log_odds: tuple[float, ...]
    categories: Mapping[int, Floats]
    judging: tuple[DeviceMemory, Binning] | None = None

    def make_ensemble(self, trees: Sequence[Nodes], weight: float = 1.0) -> Ensemble:
        """Return a sum of trees of the same weight."""
        made = tuple(Tree(nodes, weight, self.categories) for nodes in trees)
        if self.judging is not None:
            return DeviceEnsemble(self.features, made, *self.judging)
        return Ensemble(self.features, made)


def combine(
    folds: Sequence[FoldTrees],
    combination: Combination,
    frame: ModelFrame,
    information: tuple[float, float] | None = None,
) -> ProfiledEnsemble | EfficientScores:
    """Average the sums of trees of some folds.

    The gains of the ratios and of the shifts are scaled to add up to `information` about μ, where it is given.
    """
    weight, parameters = 1.0 / len(folds), frame.parameters
    values = tuple(array for fold in folds for array in fold.values)
    by_strength = zip(*(fold.ratios for fold in folds), strict=True)
    ratios = [[nodes.copy() for trees in own for nodes in trees] for own in by_strength]
    shift = [nodes.copy() for fold in folds for nodes in fold.shift]
    if information is not None:
        _scale_gain([nodes for own in ratios for nodes in own], information[0] / weight)
        _scale_gain(shift, information[1] / weight)
    for nodes, own in zip(shift, values, strict=True):
        nodes["value"] = own @ combination.coefficients[0]
    sums = tuple(frame.make_ensemble(own, weight) for own in ratios)
    shifts, sources = frame.make_ensemble(shift, weight), parameters.sources
    if parameters.is_single_strength:
        coefficients = tuple(combination.coefficients[0].tolist())
        return ProfiledEnsemble(sums[0], shifts, frame.log_odds[0], sources, coefficients, values)
    return EfficientScores(
        sums,
        shifts,
        frame.log_odds,
        parameters.strengths,
        sources,
        tuple(parameters.names[i] for i in parameters.interest),
        combination.ratio_coefficients,
        combination.coefficients,
        combination.widths,
        values,
    )


def _scale_gain(trees: Sequence[Nodes], total: float) -> None:
    """Scale the gains of all splits such that they add up to some total."""
    found = math.fsum(float(nodes["gain"].sum()) for nodes in trees)
    for nodes in trees:
        nodes["gain"] *= total / found if found > 0 else 0.0
