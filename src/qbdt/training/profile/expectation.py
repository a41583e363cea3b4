"""The σ_μ to expect of a trained score, from a histogram of it over events that its trees were not trained on."""

from __future__ import annotations

import math

import numpy as np

from qbdt.arrays import Floats
from qbdt.statistics import Expectation, SourceExpectation, profiled_information, quadratic_difference
from qbdt.training.profile.score_rows import HeldScores, Templates

__all__ = ["SHARES", "choose_share", "expect_result", "unprofiled_sigma"]

BINS = 20
"""Bins of equal signal, as many as a typical fit has."""

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the shifts' coefficients that are tried: less than all where shifts are too noisy to be trusted; σ_μ is
flat near its minimum, so a finer grid gains little."""


def unprofiled_sigma(scores: HeldScores) -> float:
    """σ_μ without sources of a histogram of the only score."""
    (found,) = scores.templates(BINS)
    signal, _, variance = _usable(*found)
    return _sigma(signal, np.zeros((0, len(signal))), variance)


def choose_share(scores: HeldScores, sources: tuple[str, ...], pulls: Floats) -> tuple[float, Expectation]:
    """Share of the shifts' coefficients with the smallest expected σ_μ, the larger of equals; and the result.

    Expected are σ_μ with that score and with r₀ alone, each as a histogram of all folds' held-out events; there is a
    score for each of `SHARES`.
    """
    tried = {share: _usable(*found) for share, found in zip(SHARES, scores.templates(BINS), strict=True)}
    share = min(reversed(SHARES), key=lambda one: _sigma(*tried[one]))
    return share, _expect(tried[0.0], tried[share], sources, pulls)


def expect_result(scores: HeldScores, sources: tuple[str, ...], pulls: Floats) -> Expectation:
    """Return the result to expect of r₀, the first of two scores, and of the chosen one, the second."""
    with_ratio, with_t = (_usable(*found) for found in scores.templates(BINS))
    return _expect(with_ratio, with_t, sources, pulls)


def _expect(with_ratio: Templates, with_t: Templates, sources: tuple[str, ...], pulls: Floats) -> Expectation:
    costs = zip(*(_costs(*templates) for templates in (with_ratio, with_t)), strict=True)
    each = zip(sources, pulls.tolist(), costs, strict=True)
    return Expectation(
        _sigma(with_ratio[0], with_ratio[1][:0], with_ratio[2]),
        _sigma(*with_t),
        unprofiled=_sigma(*with_ratio),
        sources=tuple(SourceExpectation(name, pull, *cost) for name, pull, cost in each),
    )


def _usable(signal: Floats, shifts: Floats, variance: Floats) -> Templates:
    """Leave out bins of no positive variance."""
    usable = variance > 0
    return Templates(signal[usable], shifts[:, usable], variance[usable])


def _sigma(signal: Floats, shifts: Floats, variance: Floats) -> float:
    return 1.0 / math.sqrt(float(profiled_information(signal, shifts, variance)))


def _costs(signal: Floats, shifts: Floats, variance: Floats) -> list[float]:
    """What each source adds to σ_μ, in quadrature."""
    full = _sigma(signal, shifts, variance)
    others = [_sigma(signal, np.delete(shifts, k, axis=0), variance) for k in range(len(shifts))]
    return [quadratic_difference(full, other) for other in others]
