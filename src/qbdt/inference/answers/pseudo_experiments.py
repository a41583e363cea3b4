"""Pseudo-experiments of a likelihood: counts and auxiliary data drawn at a point, and test statistics of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats
from qbdt.inference.analytic_likelihood import AnalyticLikelihood, ManyFits, fit_many


@dataclass(frozen=True, eq=False)
class Experiments:
    """Drawn experiments: counts (experiments, bins), auxiliary data (experiments, constraints), and the truth."""

    counts: Floats
    centres: Floats
    truth: Floats


def draw_experiments(likelihood: AnalyticLikelihood, truth: Floats, n: int, rng: np.random.Generator) -> Experiments:
    """Draw counts from Poisson distributions and auxiliary data from the constraints, at given parameter values."""
    terms = likelihood.constraints
    counts = rng.poisson(likelihood.expected(truth), (n, len(likelihood.data))).astype(float)
    at, poisson = truth[terms.index], terms.rates > 0
    gaussian = rng.normal(at, np.where(poisson, 0.0, terms.widths), (n, len(at)))
    drawn = rng.poisson(np.where(poisson, terms.rates * at, 0.0), (n, len(at)))
    return Experiments(counts, np.where(poisson, drawn, gaussian), truth)


def fit_experiments(
    likelihood: AnalyticLikelihood, experiments: Experiments, hold: dict[str, float] | None = None
) -> ManyFits:
    """Fit all experiments, starting from their truth."""
    return fit_many(likelihood, experiments.counts, experiments.centres, dict(hold or {}), experiments.truth)


def measure_tilde(likelihood: AnalyticLikelihood, experiments: Experiments, strength: str, mu: float) -> Floats:
    """Test statistic q̃_μ of all experiments, for upper limits on a strength."""
    free = _fit_physically(likelihood, experiments, strength)
    held = fit_experiments(likelihood, experiments, {strength: mu}).twice_nll
    found = free.values[:, likelihood.names.index(strength)]
    return np.where(found > mu, 0.0, np.maximum(held - free.twice_nll, 0.0))


def _fit_physically(likelihood: AnalyticLikelihood, experiments: Experiments, strength: str) -> ManyFits:
    """Free fits of all experiments, those with a negative strength replaced by fits at 0."""
    free = fit_experiments(likelihood, experiments)
    negative = free.values[:, likelihood.names.index(strength)] < 0
    if not negative.any():
        return free
    null = fit_experiments(likelihood, experiments, {strength: 0.0})
    return ManyFits(
        np.where(negative[:, None], null.values, free.values), np.where(negative, null.twice_nll, free.twice_nll)
    )
