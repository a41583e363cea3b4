"""The σ_μ to expect of a trained score, from a histogram of it over events that its trees were not trained on.

Where something is known besides these events, σ_μ is that of all together (`Parameters`).
"""

from __future__ import annotations

import numpy as np

from qbdt.arrays import Floats
from qbdt.statistics import Expectation, SourceExpectation, quadratic_difference
from qbdt.training.profile.parameters import Parameters, find_sigma
from qbdt.training.profile.score_rows import HeldScores, Templates

BINS = 20
"""Bins of equal signal, as many as a typical fit has."""

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the shifts' coefficients that are tried: less than all where shifts are too noisy to be trusted; σ_μ is
flat near its minimum, so a finer grid gains little."""

ALL = (1.0,)
"""The only share for a parameter that is a source itself: without shifts there is no score."""


def unprofiled_sigma(scores: HeldScores) -> float:
    """σ_μ without sources of a histogram of the only score."""
    (found,) = scores.templates(BINS)
    signal, _, variance = _usable(*found)
    return find_sigma(signal, np.zeros((0, len(signal))), variance)


def choose_share(
    scores: HeldScores, shares: tuple[float, ...], parameters: Parameters, number: int, pulls: Floats
) -> tuple[float, Expectation]:
    """Share of the shifts' coefficients with the smallest expected σ, the larger of equals; and the result.

    Expected are σ of the parameter of interest `number` with that score and with the first of `shares`, each as a
    histogram of all folds' held-out events; there is a score for each of `shares`.
    """
    parameter = parameters.interest[number]
    tried = {share: _usable(*found) for share, found in zip(shares, scores.templates(BINS), strict=True)}
    share = min(reversed(shares), key=lambda one: parameters.expect_sigma(parameter, *tried[one], without=()))
    return share, _expect(tried[shares[0]], tried[share], parameters, parameter, pulls)


def expect_result(scores: HeldScores, parameters: Parameters, number: int, pulls: Floats) -> Expectation:
    """Return the result to expect of r₀, the first of two scores, and of the chosen one, the second."""
    with_ratio, with_t = (_usable(*found) for found in scores.templates(BINS))
    return _expect(with_ratio, with_t, parameters, parameters.interest[number], pulls)


def _expect(
    with_ratio: Templates, with_t: Templates, parameters: Parameters, parameter: int, pulls: Floats
) -> Expectation:
    costs = zip(*(_costs(one, parameters, parameter) for one in (with_ratio, with_t)), strict=True)
    each = zip(parameters.sources, pulls.tolist(), costs, strict=True)
    return Expectation(
        parameters.expect_sigma(parameter, *with_ratio),
        parameters.expect_sigma(parameter, *with_t, without=()),
        unprofiled=parameters.expect_sigma(parameter, *with_ratio, without=()),
        sources=tuple(SourceExpectation(name, pull, *cost) for name, pull, cost in each),
        parameter=parameters.names[parameter],
    )


def _usable(signal: Floats, shifts: Floats, variance: Floats) -> Templates:
    """Leave out bins of no positive variance."""
    usable = variance > 0
    return Templates(signal[..., usable], shifts[:, usable], variance[usable])


def _costs(templates: Templates, parameters: Parameters, parameter: int) -> list[float]:
    """Part of each source in σ of a parameter, in quadrature; nothing where it is that parameter itself."""
    full = parameters.expect_sigma(parameter, *templates, without=())
    own = parameter - len(parameters.strengths)
    others = [
        full if k == own else parameters.expect_sigma(parameter, *templates, without=[k])
        for k in range(len(parameters.sources))
    ]
    return [quadratic_difference(full, other) for other in others]
