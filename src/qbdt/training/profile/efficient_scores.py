"""`EfficientScores`: a score for each of several parameters of interest, or for one that is no signal strength.

With r_0i = s_i/n the share of each strength's signal and f_k the fitted shifts of the sources, the score of parameter j
is

    t_j(x) = Σ_i a_ji r_0i(x) − Σ_k c_jk f_k(x),

the efficient score of j with all other parameters profiled. It is given as (t_j − m_j)/w_j, with m_j its value where
nothing is known of x, and w_j its root mean square: linear, so that cells in the space of several scores can be chosen
by distances in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.training.profile.ratios import find_shares
from qbdt.training.profile.sums_of_trees import SumsOfTrees
from qbdt.trees import Ensemble, Tree


@dataclass(frozen=True, eq=False)
class EfficientScores(SumsOfTrees):
    """Sums of trees for the ratio of each strength, one for the shifts, and the coefficients of the scores.

    Parameters
    ----------
    ratios
        Trees that add up to F_i = ln[(s_i/S_i)/(b/B)], for each strength.
    shift
        Trees of the shifts f_k; their outputs are those of the first score.
    log_odds
        ln(S_i/B) of the yields.
    strengths, sources
        Names of the strengths i and of the sources k.
    parameters
        Names of the parameters of interest j.
    ratio_coefficients
        a_ji, as (score, strength).
    coefficients
        c_jk, as (score, source).
    widths
        w_j, the root mean square of each t_j.
    source_values
        For every tree of `shift` an array (node, source) of what the node adds to f_k.
    """

    ratios: tuple[Ensemble, ...]
    shift: Ensemble
    log_odds: tuple[float, ...]
    strengths: tuple[str, ...]
    sources: tuple[str, ...]
    parameters: tuple[str, ...]
    ratio_coefficients: Floats
    coefficients: Floats
    widths: Floats
    source_values: tuple[Floats, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return self.shift.features

    @property
    def _named_ratios(self) -> dict[str, Ensemble]:
        return {f"ratio of {name}": one for name, one in zip(self.strengths, self.ratios, strict=True)}

    @property
    def sums(self) -> dict[str, Ensemble]:
        """Sums of trees by name: the ratio of each strength, and the shifts."""
        return self._named_ratios | {"shift": self.shift}

    @property
    def components(self) -> dict[str, Ensemble]:
        """Sums of trees by name: the ratio of each strength, and Σ_k c_jk f_k of each score."""
        return self._named_ratios | {
            f"shift for {name}": one for name, one in zip(self.parameters, self._shifts, strict=True)
        }

    @property
    def constants(self) -> dict[str, Floats]:
        """Numbers in the formulas of the scores besides the sums."""
        formula = {"ratio_coefficients": self.ratio_coefficients, "centres": self.centres, "widths": self.widths}
        return {"log_odds": np.array(self.log_odds), **formula}

    @cached_property
    def _shifts(self) -> tuple[Ensemble, ...]:
        return tuple(
            Ensemble(
                self.features,
                tuple(
                    _with_outputs(tree, values @ np.ascontiguousarray(own))
                    for tree, values in zip(self.shift.trees, self.source_values, strict=True)
                ),
            )
            for own in self.coefficients
        )

    @property
    def centres(self) -> Floats:
        """m_j: the scores of an event of which nothing is known, for which r_0i is S_i/(S + B)."""
        # Added up like the shares of events: a product of matrices rounds by their layout, which files do not keep.
        return np.stack([_add_shares(own, self._average_shares) for own in self.ratio_coefficients])

    @property
    def _average_shares(self) -> Floats:
        return find_shares(np.zeros((len(self.strengths), 1)), self.log_odds)[:, 0]

    def shares(self, events: Events, n_threads: int | None = None) -> Floats:
        """Share of each strength's signal in all events like these, as (strength, event)."""
        return find_shares(np.stack([one.score(events, n_threads) for one in self.ratios]), self.log_odds)

    def combine(self, sums: Mapping[str, Floats]) -> Floats:
        """Scores from the sums of trees, as (event, parameter); of one parameter as (event)."""
        values = np.stack([sums[name] for name in self.components])
        ratios, shifts = values[: len(self.ratios)], values[len(self.ratios) :]
        shares = find_shares(ratios, self.log_odds)
        t = np.stack([_add_shares(own, shares) for own in self.ratio_coefficients]) - shifts
        scores = (t - self.centres[:, None]) / self.widths[:, None]
        return np.asarray(scores[0] if len(scores) == 1 else scores.T)

    def bound_error(self, errors: Mapping[str, float]) -> float:
        """Upper bound on the error of a score: a share changes by at most 1/4 of the errors of all F."""
        values = np.array([errors[name] for name in self.components])
        ratios, shifts = values[: len(self.ratios)], values[len(self.ratios) :]
        most = np.abs(self.ratio_coefficients).sum(axis=1) * ratios.sum() / 4
        return float(((most + shifts) / self.widths).max()) + 1e-15

    def classify(self, sums: Mapping[str, Floats]) -> Floats:
        """Shares of the background and of each strength's signal, where all have the same yield."""
        shares = find_shares(np.stack([sums[name] for name in self._named_ratios]), [0.0] * len(self.ratios))
        return np.column_stack([1.0 - shares.sum(axis=0), *shares])

    def of_parameter(self, number: int) -> ScoreTerms:
        """Return the two terms of one score."""
        return ScoreTerms(self, number)


@dataclass(frozen=True, eq=False)
class ScoreTerms:
    """One score of several as r − g, r = Σ_i a_ji r_0i and g = Σ_k c_jk f_k."""

    scores: EfficientScores
    number: int

    def terms(self, events: Events, n_threads: int | None = None) -> tuple[Floats, Floats]:
        """Return r and g of every event."""
        scores = self.scores
        ratio = _add_shares(scores.ratio_coefficients[self.number], scores.shares(events, n_threads))
        return ratio, scores._shifts[self.number].score(events, n_threads)


def _add_shares(coefficients: Floats, shares: Floats) -> Floats:
    """Σ_i a_i r_0i of every event, from shares (strength, event); or of one event, from its shares.

    Added up strength by strength: a product of matrices rounds an event by where it stands among the others.
    """
    return np.asarray(reduce(np.add, (a * own for a, own in zip(coefficients, shares, strict=True))))


def _with_outputs(tree: Tree, outputs: Floats) -> Tree:
    nodes = tree.nodes.copy()
    nodes["value"] = outputs
    return replace(tree, nodes=nodes)
