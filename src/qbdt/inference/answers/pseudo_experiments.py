"""Pseudo-experiments of a likelihood: counts and auxiliary data drawn at a point, and test statistics of them."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.analytic_likelihood import AnalyticLikelihood, ManyFits, fit_many

FEWEST_FITTED = 0.95
"""Share of pseudo-experiments that must be fitted: without more of them the distribution would be another one."""


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
    """Free fits of all experiments, with a strength that is not negative."""
    bounded, index = copy(likelihood), likelihood.names.index(strength)
    bounded.bounds = likelihood.bounds.copy()
    bounded.bounds[index, 0] = max(0.0, likelihood.bounds[index, 0])
    return fit_experiments(bounded, experiments)


def keep_fitted(values: Floats) -> Floats:
    """Values of the experiments that could be fitted; refused where too few of them could."""
    fitted = np.isfinite(values)
    if fitted.mean() < FEWEST_FITTED:
        raise FitError(
            f"{np.count_nonzero(~fitted)} of {len(values)} pseudo-experiments cannot be fitted: merge sparse bins "
            "(min_entries), or use the asymptotic formulae"
        )
    return values[fitted]
