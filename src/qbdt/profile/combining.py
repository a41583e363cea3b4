"""What the parts of a profiled training give together: one model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from qbdt.dtypes import Nodes, Yields
from qbdt.ensemble import Ensemble, ProfiledEnsemble
from qbdt.profile.integrals import Integrals
from qbdt.profile.parts import N_PARTS
from qbdt.tree import Tree

__all__ = ["Combination", "Part", "combined"]


@dataclass(frozen=True, eq=False)
class Part:
    """Trees of F, trees of the shifts with their numbers for each source, and the integrals over held-out events."""

    ratio: tuple[Nodes, ...]
    shift: tuple[Nodes, ...]
    values: tuple[Yields, ...]
    integrals: Integrals


@dataclass(frozen=True, eq=False)
class Combination:
    """How the f's of all parts are added up.

    Attributes
    ----------
    coefficients
        Those of the shifts in t* = r₀ − Σ_k c_k f_k.
    pulls
        ∫ Δ_k t* over all held-out events: for exact f's the same.
    """

    coefficients: Yields
    pulls: Yields

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Combination:
        """Choose what is best for all held-out events together."""
        total = reduce(Integrals.__add__, (part.integrals for part in parts)).scaled(N_PARTS / len(parts))
        v = total.best()
        return cls(-v[2:], total.pulls(v))

    def times(self, share: float) -> Combination:
        """Return the same with a share of the coefficients."""
        return Combination(share * self.coefficients, self.pulls)


def combined(
    parts: Sequence[Part],
    combination: Combination,
    features: tuple[str, ...],
    sources: tuple[str, ...],
    log_odds: float,
    information: tuple[float, float] | None = None,
    categories: Mapping[int, Yields] | None = None,
) -> ProfiledEnsemble:
    """Average the sums of trees of some parts.

    Parameters
    ----------
    parts, combination
        The parts, and how to add them up.
    features, sources, log_odds
        Of the model.
    information
        What the gains of the two sums are to add up to: information about μ. None leaves them as they are.
    categories
        Those of the categorical features, by number.
    """
    known = categories or {}
    weight = 1.0 / len(parts)
    values = tuple(array for part in parts for array in part.values)
    ratio = [nodes.copy() for part in parts for nodes in part.ratio]
    shift = [nodes.copy() for part in parts for nodes in part.shift]
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
