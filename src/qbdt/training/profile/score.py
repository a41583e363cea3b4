"""The score of the profiled method: t*, from two sums of trees.

With s(x), b(x) and the shifts Δ_k(x) at true yields and n = s + b,

    t*(x) = [s(x) − Σ_k c_k Δ_k(x)] / n(x) = p(x) − g(x),   p = s/n,   g = Σ_k c_k r_k,   r_k = Δ_k/n.

The first sum of trees, F, is the logarithm of the ratio of densities (s/S)/(b/B); p = 1/(1 + exp(−F − ln(S/B))). The
second one is g itself. The score is a monotonic map of t* to (−1, 1) with its zero where t* is what it would be without
any knowledge of x, t₀ = S/(S + B):

    score = u/(1 + |u|),   u = t*/t₀ − 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.training.profile.ratios import find_share
from qbdt.training.profile.sums_of_trees import SumsOfTrees
from qbdt.trees import Ensemble


@dataclass(frozen=True, eq=False)
class ProfiledEnsemble(SumsOfTrees):
    """Two sums of trees whose combination is t*.

    Parameters
    ----------
    ratio
        Trees that add up to F, the logarithm of the ratio of the densities of signal and background.
    shift
        Trees that add up to g = Σ_k c_k r_k; none where there are no sources.
    log_odds
        ln(S/B) of the yields.
    sources
        Names of the sources k.
    coefficients
        Their c_k.
    source_values
        For every tree of `shift` an array (node, source) of what the node adds to r_k; a node's output is its product
        with the coefficients.

    Examples
    --------
    >>> empty = Ensemble(("pt",), ())
    >>> ProfiledEnsemble(empty, empty, -2.0).score(Events({"pt": [1.0, 2.0]}, np.ones(2)))
    array([0., 0.])
    """

    ratio: Ensemble
    shift: Ensemble
    log_odds: float
    sources: tuple[str, ...] = ()
    coefficients: tuple[float, ...] = ()
    source_values: tuple[Floats, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return self.ratio.features

    parameters: ClassVar[tuple[str, ...]] = ()
    """No names of scores: there is one, for the signal strength."""

    strengths: ClassVar[tuple[str, ...]] = ()
    """No names of signals: there is one."""

    def of_parameter(self, number: int) -> ProfiledEnsemble:
        """Return the two terms of the only score: the model itself."""
        return self

    @property
    def sums(self) -> dict[str, Ensemble]:
        """The two sums of trees by name."""
        return {"ratio": self.ratio, "shift": self.shift}

    @property
    def components(self) -> dict[str, Ensemble]:
        """The same: the formula takes both as they are."""
        return self.sums

    @property
    def constants(self) -> dict[str, float]:
        """Numbers in the formula of the score besides the two sums."""
        return {"log_odds": self.log_odds, "share": self.share}

    @property
    def share(self) -> float:
        """Share t₀ = S/(S + B) of the signal in all events."""
        return 1.0 / (1.0 + math.exp(-self.log_odds))

    def terms(self, events: Events, n_threads: int | None = None) -> tuple[Floats, Floats]:
        """Return p and g of every event, t* = p − g."""
        return self.probability(self.ratio.score(events, n_threads)), self.shift.score(events, n_threads)

    def combine(self, sums: Mapping[str, Floats]) -> Floats:
        """Score from the two sums of trees, F and g."""
        above = (self.probability(sums["ratio"]) - sums["shift"]) / self.share - 1.0
        return np.asarray(above / (1.0 + np.abs(above)))

    def bound_error(self, errors: Mapping[str, float]) -> float:
        """Upper bound on the error of a score: |dp/dF| is at most 1/4, and |d score/du| at most 1."""
        return (errors["ratio"] / 4 + errors["shift"]) / self.share + 1e-15

    def classify(self, sums: Mapping[str, Floats]) -> Floats:
        """Return (1 − score)/2 and (1 + score)/2, which order events as t* does but estimate no probability."""
        score = self.combine(sums)
        return np.stack([0.5 * (1.0 - score), 0.5 * (1.0 + score)], axis=1)

    def probability(self, log_ratio: Floats) -> Floats:
        """Share p = s/n of the signal, from F."""
        return find_share(log_ratio, self.log_odds)
