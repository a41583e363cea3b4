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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.errors import require
from qbdt.training.profile.ratios import find_share
from qbdt.trees import Ensemble, Tree

__all__ = ["ProfiledEnsemble"]


@dataclass(frozen=True, eq=False)
class ProfiledEnsemble:
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

    @property
    def trees(self) -> tuple[Tree, ...]:
        """All trees: those of the ratio, then those of the shifts."""
        return self.ratio.trees + self.shift.trees

    @property
    def weights(self) -> Floats:
        """Tree weights, in the order of `trees`."""
        return np.concatenate([self.ratio.weights, self.shift.weights])

    @property
    def folds(self) -> None:
        """No fold rule: one model scores all events."""

    @property
    def members(self) -> tuple[ProfiledEnsemble, ...]:
        """The model itself: there are no folds."""
        return (self,)

    @property
    def components(self) -> dict[str, Ensemble]:
        """The two sums of trees by name."""
        return {"ratio": self.ratio, "shift": self.shift}

    @property
    def constants(self) -> dict[str, float]:
        """Numbers in the formula of the score besides the two sums."""
        return {"log_odds": self.log_odds, "share": self.share}

    @property
    def share(self) -> float:
        """Share t₀ = S/(S + B) of the signal in all events."""
        return 1.0 / (1.0 + math.exp(-self.log_odds))

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        """Score of every event, in (−1, 1)."""
        return self.combine({name: one.score(events, n_threads) for name, one in self.components.items()})

    def terms(self, events: Events, n_threads: int | None = None) -> tuple[Floats, Floats]:
        """Return p and g of every event, t* = p − g."""
        return self.probability(self.ratio.score(events, n_threads)), self.shift.score(events, n_threads)

    def average(self, events: Events, n_threads: int | None = None) -> Floats:
        """The score: there is one model to average."""
        return self.score(events, n_threads)

    def combine(self, sums: Mapping[str, Floats]) -> Floats:
        """Score from the two sums of trees, F and g."""
        above = (self.probability(sums["ratio"]) - sums["shift"]) / self.share - 1.0
        return np.asarray(above / (1.0 + np.abs(above)))

    def bound_error(self, errors: Mapping[str, float]) -> float:
        """Upper bound on the error of a score: |dp/dF| is at most 1/4, and |d score/du| at most 1."""
        return (errors["ratio"] / 4 + errors["shift"]) / self.share + 1e-15

    def probabilities(self, score: Floats) -> Floats:
        """Return (1 − score)/2 and (1 + score)/2, which order events as t* does but estimate no probability."""
        return np.stack([0.5 * (1.0 - score), 0.5 * (1.0 + score)], axis=1)

    def probability(self, log_ratio: Floats) -> Floats:
        """Share p = s/n of the signal, from F."""
        return find_share(log_ratio, self.log_odds)

    def staged_scores(self, events: Events, n_threads: int | None = None) -> Iterator[Floats]:
        """Scores with one tree of each sum, with two, and so on; the shorter sum stays as it is at its end."""
        sums = dict.fromkeys(self.components, np.zeros(events.n_rows))
        stages = (component.staged_scores(events, n_threads) for component in self.components.values())
        for stage in zip_longest(*stages):
            sums |= {name: value for name, value in zip(sums, stage, strict=True) if value is not None}
            yield self.combine(sums)

    def leaves(self, events: Events, n_threads: int | None = None) -> NDArray[np.int32]:
        """Index, in each tree's array of nodes, of the leaf that each event falls into, as (event, tree)."""
        return np.concatenate([one.leaves(events, n_threads) for one in self.components.values()], axis=1)

    def gains(self) -> Floats:
        """Gain of all splits on each feature, in units of the profiled information."""
        return self.ratio.gains() + self.shift.gains()

    def to_frame(self) -> Any:
        """Return all nodes as a pandas table; the column `sum` says which of the two sums a tree belongs to."""
        pandas = require("pandas", "to_frame")
        frames = {name: one.to_frame() for name, one in self.components.items()}
        return pandas.concat(frames, names=["sum"]).reset_index(level=0).reset_index(drop=True)
