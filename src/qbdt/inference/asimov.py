"""Expected results without a minimiser in the loop: Asimov significance, σ_μ and constraints of templates.

At μ = 1 the best fit of the Asimov data is known, so σ_μ is one matrix inverse; the significance takes one fit at μ = 0
by Newton's method. Thousands of models go through in one call.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.likelihood import invert
from qbdt.inference.measurement import Measurement
from qbdt.inference.newton_fit import maximise
from qbdt.inference.templates.template_set import ModelArrays
from qbdt.statistics import FittedSensitivity, information_matrix

__all__ = ["AsimovFit", "expected_errors", "fit_asimov", "measure_sensitivity"]

ALIKE = 1e-5
"""Smallest eigenvalue of the information on all factors, each scaled to 1, that a fit can use. Below, a combination of
them is measured some hundred times worse than one alone, and its error depends on the last digits of the fit."""


@dataclass(frozen=True, eq=False)
class AsimovFit:
    """Expected results at μ = 1 of a batch of models.

    Attributes
    ----------
    z
        Discovery significance sqrt(q0), in standard deviations; shape (…).
    sigma_mu
        Uncertainty of the signal strength from the second derivatives; shape (…).
    null_theta
        Nuisance parameters that fit the Asimov data best at μ = 0, in prior standard deviations; shape (…, sources).
    sigma_theta
        Post-fit uncertainties of the nuisance parameters, prior standard deviations; shape (…, sources).
    correlation
        Of (μ, θ) at μ = 1; shape (…, 1 + sources, 1 + sources).
    """

    z: Floats
    sigma_mu: Floats
    null_theta: Floats
    sigma_theta: Floats
    correlation: Floats


def fit_asimov(model: ModelArrays) -> AsimovFit:
    """Expected discovery significance and σ_μ of templates, with systematics and MC statistics.

    Agrees with pyhf on the same model with linear interpolation (code 0) to 1e-3; the tests hold it to that.

    Parameters
    ----------
    model
        From `TemplateSet.arrays()`; `without_systematics()` and `without_mc_stat()` give the stat-only fits.

    Examples
    --------
    >>> s, b = np.array([1.0, 4.0]), np.array([90.0, 10.0])
    >>> none = np.zeros((0, 2))
    >>> result = fit_asimov(ModelArrays(s, b, none, none, np.zeros(2)))
    >>> round(float(result.z), 4), round(float(result.sigma_mu), 4)
    (1.1968, 0.9309)
    """
    data = model.signal + model.background
    # The Asimov data are fitted exactly, −2 ln L = 0, at μ = 1 and θ = 0: no fit is needed there, σ_μ is that of the
    # Fisher information, and q0 = −2 ln L(μ = 0) (arXiv:1007.1727, section 3.2).
    null = maximise(model, data, mu=0.0)
    covariance = np.linalg.inv(information_matrix(model.signal, model.shifts, data + model.mc_variance))
    sigma = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    correlation = covariance / (sigma[..., :, None] * sigma[..., None, :])
    z = np.sqrt(np.maximum(null.twice_nll, 0.0))
    return AsimovFit(z, sigma[..., 0], null.theta, sigma[..., 1:], correlation)


def measure_sensitivity(model: ModelArrays) -> FittedSensitivity:
    """σ_μ and Z of one model on its Asimov data, without and with the sources; MC statistics as they are in it."""
    stat, full = fit_asimov(model.without_systematics()), fit_asimov(model)
    return FittedSensitivity(float(stat.sigma_mu), float(full.sigma_mu), float(stat.z), float(full.z))


def expected_errors(measurement: Measurement, mc_stat: bool = True) -> dict[str, float]:
    """Expected uncertainty of each factor and source that is not fixed, from the Fisher information; no fit is made.

    Raises `FitError` where the regions cannot measure a factor, or cannot tell two of them apart.
    """
    regions = [
        _region_slopes(measurement, name, region.asimov + mc_stat * region.arrays().mc_variance)
        for name, region in measurement.regions.items()
    ]
    information = np.sum([slopes @ np.swapaxes(slopes, 0, 1) for slopes in regions], axis=0)
    names = [*measurement.factors, *measurement.sources]
    without_prior = (*measurement.factors, *measurement.unconstrained)
    information += np.diag([float(name not in without_prior) for name in names])
    free = [i for i, name in enumerate(names) if name not in measurement.fixed]
    factors = [i for i in free if names[i] in without_prior]
    _require_distinct(information[np.ix_(factors, factors)], [names[i] for i in factors])
    covariance = invert(information[np.ix_(free, free)], [names[i] for i in free])
    errors = dict(zip((names[i] for i in free), np.sqrt(np.diag(covariance)).tolist(), strict=True))
    return {name: errors.get(name, 0.0) for name in names}


def _require_distinct(information: Floats, names: list[str]) -> None:
    """Refuse parameters without prior that no fit tells apart, even with all others held."""
    scale = np.sqrt(np.diag(information))
    if len(names) < 2 or np.any(scale <= 0):
        return
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    if values[0] < ALIKE:
        first, second = (names[i] for i in sorted(np.argsort(-np.abs(vectors[:, 0]))[:2]))
        raise FitError(f"{first} and {second} change all bins alike, so that no fit tells them apart: fix or join them")


def _region_slopes(measurement: Measurement, name: str, variance: Floats) -> Floats:
    """Change of the bins of one region with each parameter, over the standard deviation of the bins."""
    region = measurement.regions[name]
    acting = {process.name: measurement.factors_of(name, process.name) for process in region.processes}
    rows = [[p.nominal for p in region.processes if factor in acting[p.name]] for factor in measurement.factors]
    rows += [[p.linear_shift(name) for p in region.processes] for name in measurement.sources]
    return np.array([np.sum([np.zeros(region.n_bins), *row], axis=0) for row in rows]) / np.sqrt(variance)
