"""The model of all folds together: how many trees of the shifts, which coefficients, and the mean of their sums.

With f = (r₀, 1, f_1 … f_K) and a, G, D summed over the held-out events of all folds, the score t = v·f has
σ_μ² = vᵀ(G + DᵀD)v/(a·v)² (docs/profiled-method.md, "How it learns it", step 3; `Integrals`). With several parameters
of interest there is a v of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from qbdt.arrays import Floats, Nodes
from qbdt.training.profile.efficient_scores import EfficientScores
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.parameters import Parameters
from qbdt.training.profile.ratio import fade
from qbdt.training.profile.ratios import Ratios
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.shifts import FittedShifts
from qbdt.trees import Binning, Ensemble, Tree
from qbdt.trees.device import DeviceEnsemble, DeviceMemory

JOINT_PATIENCE = 20
"""Trees without a smaller σ_μ of all held-out events together after which all folds have enough: half of those that a
fold alone waits for, which has fewer events. Of 18 trainings (shares of the bundled sample, INFERNO's, benchmark S5) 17
had the held-out σ_μ of folds that end by themselves to 0.01 %; one, of an eighth of the bundled sample, lost 1 % (0.8 %
with 40 trees). For each parameter of interest."""


class BestNumber:
    """The number of trees of the shifts with the smallest σ_μ of all held-out events together.

    A fold alone has too few events for this choice. `number` is the best so far; the search `is_over` where none was
    better for some time.
    """

    def __init__(self, parameters: Parameters, first: int = 0) -> None:
        self.number = first
        self._parameters = parameters
        self._smallest = math.inf
        self._next = first

    @property
    def is_over(self) -> bool:
        """Whether no better number was found for `JOINT_PATIENCE` trees."""
        return self._next - 1 - self.number >= JOINT_PATIENCE * max(len(self._parameters.interest), 1)

    def search(self, integrals: Callable[[int], Integrals], last: int) -> None:
        """Go on up to a last number, where `integrals` over all held-out events are known."""
        while self._next <= last and not self.is_over:
            sigma = integrals(self._next).solve(self._parameters).sigma
            if sigma < self._smallest:
                self._smallest, self.number = sigma, self._next
            self._next += 1

    def is_end(self, folds: Sequence[Sequence[Integrals]], number: int) -> bool:
        """Whether the integrals of all folds, up to a number of trees, say that none needs more."""
        self.search(lambda n: _total([own[min(n, len(own) - 1)] for own in folds], len(folds)), number)
        return self.is_over


def best_number(folds: Sequence[FittedShifts], parameters: Parameters) -> int:
    """Number of trees of the shifts, the same in all folds: see `BestNumber`."""
    best = BestNumber(parameters, max(fold.fewest for fold in folds))

    def integrals(number: int) -> Integrals:
        return _total([fold.cut(number).integrals[-1] for fold in folds], len(folds))

    best.search(integrals, max(len(fold.trees) for fold in folds))
    return best.number


def _total(integrals: Sequence[Integrals], n_folds: int) -> Integrals:
    """Integrals over the held-out events of some of `n_folds` folds, for as many events as there are in all of them."""
    return reduce(Integrals.__add__, integrals).scaled(n_folds / len(integrals))


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
    def of(cls, folds: Sequence[FittedShifts], n_folds: int, parameters: Parameters) -> Combination:
        """Best for the held-out events of some of `n_folds` folds.

        It is t = Σ_i v_i r_0i + v_c + Σ_k v_k f_k with v of `Integrals.solve`, c_k = −v_k.
        """
        total = _total([fold.integrals[-1] for fold in folds], n_folds)
        best, n_ratios = total.solve(parameters), total.n_ratios
        if best.covariance is not None:
            parameters.require_separable(best.covariance)
        v = best.coefficients
        squares = np.einsum("ja,ab,jb->j", v, total.gram, v) / total.gram[n_ratios, n_ratios]
        return cls(v[:, :n_ratios], -v[:, n_ratios + 1 :], best.pulls, np.sqrt(np.maximum(squares, 1e-300)))

    @classmethod
    def without_shifts(cls, parameters: Parameters) -> Combination:
        """Return scores that are the sum of all ratios, while nothing is known of the shifts."""
        n, n_sources = len(parameters.interest), len(parameters.sources)
        none = np.zeros((n, n_sources))
        return cls(np.ones((n, len(parameters.strengths))), none, none, np.ones(n))

    def times(self, shares: Sequence[float]) -> Combination:
        """Return the same with a share of the coefficients of each score."""
        return replace(self, coefficients=np.array(shares)[:, None] * self.coefficients)


@dataclass(frozen=True, eq=False)
class ModelFrame:
    """Common parts of the models of all folds; `categories` are by number of the feature.

    Where the rows of a training are on a device, `judging` is that memory and the bins, for models that score them.
    """

    features: tuple[str, ...]
    parameters: Parameters
    log_odds: tuple[float, ...]
    categories: Mapping[int, Floats]
    judging: tuple[DeviceMemory, Binning] | None = None

    def make_ensemble(self, trees: Sequence[Nodes], weights: Sequence[float]) -> Ensemble:
        """Return a sum of trees."""
        own = zip(trees, weights, strict=True)
        made = tuple(Tree(nodes, weight, self.categories) for nodes, weight in own)
        if self.judging is not None:
            return DeviceEnsemble(self.features, made, *self.judging)
        return Ensemble(self.features, made)

    def make_ratios(self, ratios: Sequence[Sequence[Nodes]]) -> Ratios:
        """Return the F of each strength of one fold."""
        sums = tuple(self.make_ensemble(trees, fade(len(trees)).tolist()) for trees in ratios)
        return Ratios(sums, self.log_odds)


def combine_folds(
    ratios: Sequence[Sequence[Sequence[Nodes]]],
    folds: Sequence[FittedShifts],
    combination: Combination,
    frame: ModelFrame,
    information: tuple[float, float] | None = None,
) -> ProfiledEnsemble | EfficientScores:
    """Average the sums of trees of some folds: those of the F of each strength, by fold, and those of the shifts.

    The gains of the ratios and of the shifts are scaled to add up to `information` about μ, where it is given.
    """
    parameters = frame.parameters
    values = tuple(array for fold in folds for array in fold.values)
    by_strength = [[fold[i] for fold in ratios if i < len(fold)] for i in range(len(parameters.strengths))]
    ratio = [[nodes.copy() for trees in own for nodes in trees] for own in by_strength]
    weights = [[w / len(own) for trees in own for w in fade(len(trees)).tolist()] for own in by_strength]
    shift = [nodes.copy() for fold in folds for nodes in fold.trees]
    shift_weights = [1.0 / max(len(folds), 1)] * len(shift)
    if information is not None:
        _scale_gain([nodes for own in ratio for nodes in own], [w for own in weights for w in own], information[0])
        _scale_gain(shift, shift_weights, information[1])
    for nodes, own in zip(shift, values, strict=True):
        nodes["value"] = own @ combination.coefficients[0]
    sums = tuple(frame.make_ensemble(*own) for own in zip(ratio, weights, strict=True))
    shifts, sources = frame.make_ensemble(shift, shift_weights), parameters.sources
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


def _scale_gain(trees: Sequence[Nodes], weights: Sequence[float], total: float) -> None:
    """Scale the gains of all splits such that they add up to some total, each times the weight of its tree."""
    found = math.fsum(weight * float(nodes["gain"].sum()) for nodes, weight in zip(trees, weights, strict=True))
    for nodes in trees:
        nodes["gain"] *= total / found if found > 0 else 0.0
