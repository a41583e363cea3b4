"""Expectation and derivatives by formula against pyhf's, and fits of many counts against single ones."""

import numpy as np
import pytest

from qbdt.inference import analytic_likelihood
from qbdt.inference.analytic_likelihood import AnalyticLikelihood, fit_many
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.workspace import describe_measurement
from tests.inference.test_measurement import measurement


@pytest.fixture(scope="module", params=[False, True], ids=["smooth", "linear"])
def both(request):
    spec = describe_measurement(measurement())
    return Likelihood(spec, linear=request.param), AnalyticLikelihood(spec, linear=request.param)


def points(likelihood, n=8):
    random = np.random.default_rng(1)
    spread = [2.0 if p.kind == "source" else 0.3 for p in likelihood.parameters]
    return np.clip(likelihood.start + random.normal(0, spread, (n, len(spread))), *likelihood.bounds.T)


def test_expectation_is_that_of_pyhf(both):
    reference, likelihood = both
    for point in points(reference):
        assert likelihood.expected(point) == pytest.approx(reference.expected(point), rel=1e-12)
        rows, other = likelihood.expected_by_process(point), reference.expected_by_process(point)
        assert {k: v.tolist() for k, v in rows.items()} == {k: pytest.approx(v, rel=1e-12) for k, v in other.items()}


def test_derivatives_are_those_of_pyhf(both):
    reference, likelihood = both
    free = list(range(len(reference.names)))
    for point in points(reference, 4):
        assert likelihood.jacobian(point, free) == pytest.approx(reference.jacobian(point, free), rel=1e-6, abs=1e-6)
        point[likelihood.poi] = 0.0  # a factor of 0 leaves the derivative
        assert likelihood.jacobian(point, free) == pytest.approx(reference.jacobian(point, free), rel=1e-6, abs=1e-6)


def test_second_derivatives_are_those_of_pyhf(both):
    reference, likelihood = both
    reference.data = likelihood.data = np.round(1.1 * reference.expected(reference.start))
    minimum = reference.minimise()
    assert likelihood.hessian(minimum) == pytest.approx(reference.hessian(minimum), rel=1e-4, abs=1e-4)


def test_many_fits_are_single_fits():
    likelihood = AnalyticLikelihood(describe_measurement(measurement()))
    random = np.random.default_rng(2)
    counts = random.poisson(likelihood.expected(likelihood.start), (6, len(likelihood.data))).astype(float)
    terms = likelihood.constraints
    centres = random.normal(terms.centres, terms.widths, (6, len(terms.centres)))
    names = [likelihood.names[i] for i in terms.index]
    for hold in ({}, {"mu_ggH": 0.0}):
        many = fit_many(likelihood, counts, centres, hold)
        for row in range(6):
            one = likelihood.with_data(counts[row], dict(zip(names, centres[row], strict=True))).minimise(hold)
            assert many.twice_nll[row] == pytest.approx(one.twice_nll, abs=1e-6)
            assert many.values[row] == pytest.approx(one.values, abs=1e-3)


def test_more_than_500_fits_may_need_exact_second_derivatives(monkeypatch):
    likelihood = AnalyticLikelihood(describe_measurement(measurement()))
    counts = np.random.default_rng(4).poisson(likelihood.data, (600, len(likelihood.data))).astype(float)
    centres = np.tile(likelihood.constraints.centres, (600, 1))
    wanted = fit_many(likelihood, counts, centres).twice_nll
    monkeypatch.setattr(analytic_likelihood, "FIRST_STEPS", 1)
    assert fit_many(likelihood, counts, centres).twice_nll == pytest.approx(wanted, abs=1e-6)


def test_many_fits_stay_within_bounds():
    likelihood = AnalyticLikelihood(describe_measurement(measurement(bounds={"mu_ggH": (0.0, 10.0)})))
    index, truth = likelihood.names.index("mu_ggH"), likelihood.start.copy()
    truth[index] = -0.5
    counts = likelihood.expected(truth)[None]
    fit = fit_many(likelihood, counts, likelihood.constraints.centres[None])
    assert fit.values[0, index] == 0.0
    held = fit_many(likelihood, counts, likelihood.constraints.centres[None], {"mu_ggH": 0.0})
    assert fit.twice_nll[0] == pytest.approx(held.twice_nll[0], abs=1e-8)
