"""What the parts of a profiled training give together: one model, and the σ_μ to expect of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from qbdt.dtypes import Nodes, Yields
from qbdt.ensemble import Ensemble, ProfiledEnsemble
from qbdt.information import Expectation, SourceExpectation
from qbdt.profile.integrals import Integrals
from qbdt.profile.parts import N_PARTS
from qbdt.tree import Tree

__all__ = ["Part", "combined"]


@dataclass(frozen=True, eq=False)
class Part:
    """Trees of F, trees of the shifts with their numbers for each source, and the integrals over held-out events."""

    ratio: tuple[Nodes, ...]
    shift: tuple[Nodes, ...]
    values: tuple[Yields, ...]
    integrals: Integrals

    def in_information(self) -> Part:
        """Return the part with gains in information about μ.

        Those of F add up to what r₀ alone has without systematics, those of the shifts to what they win back.
        """
        events = self.integrals.scaled(N_PARTS)
        none = np.zeros(len(events.shifts), dtype=bool)
        stat, plain = events.uncertainty(events.plain, none), events.uncertainty(events.plain)
        won = events.uncertainty(events.best()) ** -2 - plain**-2
        ratio, shift = _with_gain(self.ratio, stat**-2), _with_gain(self.shift, max(won, 0.0))
        return Part(ratio, shift, self.values, self.integrals)


def combined(
    parts: Sequence[Part], features: tuple[str, ...], sources: tuple[str, ...], log_odds: float
) -> tuple[ProfiledEnsemble, Expectation]:
    """Average the sums of trees, and choose the coefficients that are best for all held-out events together."""
    total = reduce(Integrals.__add__, (part.integrals for part in parts)).scaled(N_PARTS / len(parts))
    v = total.best()
    weight = 1.0 / len(parts)
    values = tuple(array for part in parts for array in part.values)
    shift = zip((nodes for part in parts for nodes in part.shift), values, strict=True)
    model = ProfiledEnsemble(
        Ensemble(features, tuple(Tree(nodes, weight) for part in parts for nodes in part.ratio)),
        Ensemble(features, tuple(Tree(_with_output(nodes, own @ -v[1:]), weight) for nodes, own in shift)),
        log_odds,
        sources,
        tuple((-v[1:]).tolist()),
        values,
    )
    return model, _expectation(total, v, sources)


def _with_gain(trees: tuple[Nodes, ...], information: float) -> tuple[Nodes, ...]:
    """Scale the gains of all splits such that they add up to some information."""
    total = sum(float(nodes["gain"].sum()) for nodes in trees)
    scaled = tuple(nodes.copy() for nodes in trees)
    for nodes in scaled:
        nodes["gain"] *= information / total
    return scaled


def _with_output(nodes: Nodes, outputs: Yields) -> Nodes:
    nodes = nodes.copy()
    nodes["value"] = outputs
    return nodes


def _expectation(total: Integrals, v: Yields, sources: Sequence[str]) -> Expectation:
    """Expected σ_μ: what sources add to its square is (∫ Δ_k t)²/(∫ s t)² each."""
    plain = total.plain
    none = np.zeros(len(sources), dtype=bool)
    costs = [np.abs(total.pulls(t)) / float(total.signal @ t) for t in (plain, v)]
    each = zip(sources, total.pulls(v).tolist(), costs[0].tolist(), costs[1].tolist(), strict=True)
    return Expectation(
        total.uncertainty(plain, none),
        total.uncertainty(v),
        total.uncertainty(plain),
        tuple(SourceExpectation(*one) for one in each),
    )
