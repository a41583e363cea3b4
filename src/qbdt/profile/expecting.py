"""The σ_μ to expect of a trained score, from a histogram of it over events that its trees were not trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from qbdt.dataset import Dataset, Events
from qbdt.dtypes import Yields
from qbdt.information import Expectation, SourceExpectation, profiled_information
from qbdt.profile.plan import shift_segments
from qbdt.store import Segment, ShiftSegment, Side

__all__ = ["Scored", "binned_uncertainty", "chosen_share", "scored"]

BINS = 20
"""Bins of equal signal, as many as a typical fit has."""

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the shifts' coefficients that are tried: less than all where shifts are too noisy to be trusted."""


class Scored(NamedTuple):
    """Held-out events of one part: their segments, and for the rows of each r₀ and g = Σ_k c_k f_k."""

    segments: list[ShiftSegment]
    ratio: list[Yields]
    shift: list[Yields]

    def score(self, share: float) -> list[Yields]:
        """Return r₀ − share × g."""
        return [ratio - share * shift for ratio, shift in zip(self.ratio, self.shift, strict=True)]


def scored(held: Dataset, sums: Callable[[Events], tuple[Yields, Yields]]) -> Scored:
    """Evaluate r₀ and g on held-out events."""
    segments = shift_segments(held)
    values = [sums(one.segment.events) for one in segments]
    return Scored(segments, [ratio for ratio, _ in values], [shift for _, shift in values])


def binned_uncertainty(segments: Sequence[Segment], values: Sequence[Yields]) -> float:
    """σ_μ without sources of a histogram of some score; `values` are those of the rows of each nominal segment."""
    without = [ShiftSegment(segment, np.zeros(0)) for segment in segments]
    one = Scored(without, list(values), [np.zeros(len(own)) for own in values])
    return _sigma(*_templates([one], 0.0, 0))


def chosen_share(parts: Sequence[Scored], sources: tuple[str, ...], pulls: Yields) -> tuple[float, Expectation]:
    """Share of the shifts' coefficients with the smallest expected σ_μ, the larger of equals, and what it promises.

    Expected are σ_μ with that score and with r₀ alone, each as a histogram of all parts' held-out events.
    """
    tried = {share: _templates(parts, share, len(sources)) for share in SHARES}
    share = min(reversed(SHARES), key=lambda one: _sigma(*tried[one]))
    with_t, with_ratio = tried[share], tried[0.0]
    costs = zip(*(_costs(*templates) for templates in (with_ratio, with_t)), strict=True)
    each = zip(sources, pulls.tolist(), costs, strict=True)
    return share, Expectation(
        _sigma(with_ratio[0], with_ratio[1][:0], with_ratio[2]),
        _sigma(*with_t),
        _sigma(*with_ratio),
        tuple(SourceExpectation(name, pull, *cost) for name, pull, cost in each),
    )


def _templates(parts: Sequence[Scored], share: float, n_sources: int) -> tuple[Yields, Yields, Yields]:
    """Signal, shifts and variance of each bin."""
    rows = [row for part in parts for row in zip(part.segments, part.score(share), strict=True)]
    signal = [(own, one.segment.events.weight) for one, own in rows if _is_signal(one)]
    edges = _equal_signal(signal)
    s, shifts, variance = np.zeros(BINS), np.zeros((n_sources, BINS)), np.zeros(BINS)
    for one, own in rows:
        bins = np.searchsorted(edges, own, side="right")
        weight = _summable(one.segment.events.weight)
        filled = np.bincount(bins, weight, BINS)
        shifts += one.factors[:, None] * filled
        for source, column in one.columns:
            shifts[source] += np.bincount(bins, _summable(column()), BINS)
        if one.segment.nominal:
            variance += filled + np.bincount(bins, _summable(np.square(weight)), BINS)
        if _is_signal(one):
            s += filled
    usable = variance > 0
    return s[usable], shifts[:, usable], variance[usable]


def _is_signal(one: ShiftSegment) -> bool:
    return one.segment.nominal and one.segment.side is Side.SIGNAL


def _equal_signal(signal: Iterable[tuple[Yields, Yields]]) -> Yields:
    """Inner edges between bins of equal absolute signal."""
    values, weights = (np.concatenate(column) for column in zip(*signal, strict=True))
    order = np.argsort(values, kind="stable")
    running = np.cumsum(_summable(np.abs(weights[order])))
    at = np.searchsorted(running, np.arange(1, BINS) / BINS * running[-1])
    return np.asarray(values[order][np.minimum(at, len(order) - 1)])


def _summable(weight: Yields) -> Yields:
    """Round weights to multiples of a power of two whose sums are exact, so that no order of rows changes them."""
    bound = float(np.abs(weight).max(initial=0.0)) * len(weight)
    unit = math.ldexp(1.0, math.frexp(bound)[1] - 52)
    return np.asarray(np.rint(weight / unit) * unit)


def _sigma(signal: Yields, shifts: Yields, variance: Yields) -> float:
    return 1.0 / math.sqrt(float(profiled_information(signal, shifts, variance)))


def _costs(signal: Yields, shifts: Yields, variance: Yields) -> list[float]:
    """What each source adds to σ_μ, in quadrature."""
    full = _sigma(signal, shifts, variance)
    others = [_sigma(signal, np.delete(shifts, k, axis=0), variance) for k in range(len(shifts))]
    return [math.sqrt(max(full**2 - other**2, 0.0)) for other in others]
