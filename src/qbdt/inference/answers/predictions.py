"""Other histograms of the fitted events at the best values of a fit: any variable, before and after it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qbdt.arrays import Floats
from qbdt.inference.fit_summary import FitSummary
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.measurement import Measurement
from qbdt.inference.summary import expected_error
from qbdt.inference.workspace import describe_measurement


def predict(measurement: Measurement, summary: FitSummary) -> FitSummary:
    """Expectation of histograms that were not fitted, with the uncertainty that the parameters of the fit have.

    Parameters
    ----------
    measurement
        Templates of other variables of the same events, with the strengths, factors and sources of the fit.
    summary
        The fit. Its values, uncertainties and correlations are those of the parameters; the MC statistics of the new
        bins, which no data constrain, are added.

    Returns
    -------
    FitSummary
        The fit with the bins of these templates in place of its own; `counts` are the Asimov data.
    """
    spec = describe_measurement(measurement)
    likelihood = Likelihood(spec, data=measurement.asimov)
    prior = np.array([0.0 if p.kind in ("poi", "free") else p.width**2 for p in likelihood.parameters])
    values, covariance = _take_over(likelihood, summary, prior)
    return replace(
        summary,
        regions=likelihood.channels,
        counts=likelihood.data,
        postfit=likelihood.expected_by_process(values),
        postfit_error=expected_error(likelihood, values, covariance),
        prefit_error=expected_error(likelihood, likelihood.start, np.diag(prior)),
    )


def _take_over(likelihood: Likelihood, summary: FitSummary, prior: Floats) -> tuple[Floats, Floats]:
    """Values and covariance of the parameters of a fit; parameters that it does not have stay nominal."""
    fitted = {p.name: i for i, p in enumerate(summary.parameters) if p.kind != "mc_stat"}
    shared = [(i, fitted[name]) for i, name in enumerate(likelihood.names) if name in fitted]
    mine, its = (np.array([pair[k] for pair in shared], dtype=np.intp) for k in (0, 1))
    values, covariance = likelihood.start.copy(), np.diag(prior)
    values[mine] = [summary.parameters[i].value for i in its]
    errors = np.array([summary.parameters[i].error for i in its])
    covariance[np.ix_(mine, mine)] = summary.correlation[np.ix_(its, its)] * np.outer(errors, errors)
    return values, covariance
