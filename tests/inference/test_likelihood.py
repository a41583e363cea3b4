"""The likelihood against pyhf's own, its derivatives against finite differences, and extreme numbers of events."""

from unittest.mock import Mock

import numpy as np
import pyhf
import pytest

from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.fit import fit_templates
from qbdt.inference.likelihood import Likelihood, turn_positive
from qbdt.inference.newton_fit import maximise
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import build_workspace
from tests.inference.models import smooth_templates

SETTINGS = {"histosys": {"interpcode": "code4p"}, "normsys": {"interpcode": "code4"}}


def poisson_constrained():
    """A workspace of somebody else: two bins with Poisson-constrained uncertainties."""
    model = pyhf.simplemodels.uncorrelated_background([5.0, 10.0], [50.0, 60.0], [5.0, 12.0])
    return pyhf.Workspace.build(model, [53.0, 65.0])


@pytest.mark.parametrize(
    "spec", [build_workspace(smooth_templates(5, 2, signal_shifts=True, norm=0.1)), poisson_constrained()]
)
def test_differences_equal_those_of_pyhf(spec):
    likelihood = Likelihood(spec)
    workspace = pyhf.Workspace(spec)
    model = workspace.model(modifier_settings=SETTINGS)
    data = workspace.data(model)
    rng = np.random.default_rng(1)
    points = [likelihood.start * rng.uniform(0.95, 1.05, len(likelihood.start)) for _ in range(4)]
    ours = [likelihood.twice_nll(p) for p in points]
    theirs = [-2 * float(model.logpdf(p, data)[0]) for p in points]
    assert np.diff(ours) == pytest.approx(np.diff(theirs), abs=1e-9)


@pytest.mark.parametrize(
    "spec", [build_workspace(smooth_templates(4, 2, signal_shifts=True, norm=0.1)), poisson_constrained()]
)
def test_derivatives_equal_finite_differences(spec):
    likelihood = Likelihood(spec)
    likelihood.data = likelihood.data * np.linspace(0.9, 1.2, len(likelihood.data))
    best = likelihood.minimise()
    assert likelihood.gradient(best.values) == pytest.approx(np.zeros(len(best.values)), abs=1e-3)
    step = [0.02 * p.width for p in likelihood.parameters]
    moved = np.diag(step)
    naive = np.empty((len(step), len(step)))
    for i in range(len(step)):
        for j in range(len(step)):
            corners = [
                likelihood.twice_nll(best.values + a * moved[i] + b * moved[j]) for a in (1, -1) for b in (1, -1)
            ]
            naive[i, j] = (corners[0] - corners[1] - corners[2] + corners[3]) / (8 * step[i] * step[j])
    scale = np.sqrt(np.outer(np.diag(naive), np.diag(naive)))
    assert likelihood.hessian(best) / scale == pytest.approx(naive / scale, abs=2e-3)  # the naive one is of finite step


@pytest.mark.parametrize(
    "spec", [build_workspace(smooth_templates(5, 2, signal_shifts=True, norm=0.1)), poisson_constrained()]
)
def test_gradients_by_formula_are_those_of_pyhfs_expectation(spec):
    likelihood = Likelihood(spec)
    rng = np.random.default_rng(3)
    for point in likelihood.start * rng.uniform(0.9, 1.1, (4, len(likelihood.start))):
        assert likelihood.gradient_by_formula(point) == pytest.approx(likelihood.gradient(point), rel=1e-6, abs=1e-6)
    point[likelihood.poi] = 0.0  # no formula divides by it
    assert likelihood.gradient_by_formula(point) == pytest.approx(likelihood.gradient(point), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("factor", [1e-4, 1.0, 1e4])
def test_any_number_of_events(factor):
    templates = smooth_templates(5, 2).scaled(factor)
    summary = fit_templates(templates, FitSettings(scan=False)).expected
    fast = fit_asimov(templates.arrays())
    assert summary.z == pytest.approx(float(fast.z), rel=1e-5)
    assert summary.sigma_mu == pytest.approx(float(fast.sigma_mu), rel=1e-5)


def test_a_bin_without_mc_uncertainty_has_no_parameter_to_fit():
    from dataclasses import replace

    templates = smooth_templates(5, 2)
    some = np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    templates = replace(templates, processes=tuple(replace(p, variance=p.variance * some) for p in templates.processes))
    summary = fit_templates(templates, FitSettings(scan=False)).expected
    assert summary.z == pytest.approx(float(fit_asimov(templates.arrays()).z), rel=1e-5)
    assert summary.parameter("staterror_signal_region[2]").error == 0


def test_no_interval_where_a_bin_would_be_negative():
    templates = smooth_templates(5, 2).scaled(1e-4)
    assert fit_templates(templates, FitSettings(scan=False)).expected.interval is None


@pytest.mark.parametrize("counts", [[400, 100, 20, 0], [400, 100, 20, 3]])
def test_an_empty_bin_with_signal(counts):
    """Signal strengths below −b/s have no likelihood: the fit, the interval and the scan stop there."""
    s, b = np.array([0.5, 1.0, 2.0, 1.5]), np.array([400.0, 100.0, 20.0, 0.4])
    signal = ProcessTemplates("s", Role.SIGNAL, s, 0.01 * s)
    background = ProcessTemplates("b", Role.BACKGROUND, b, 0.2 * b, {"k": Shift(1.05 * b, 0.95 * b, mirrored=True)})
    data = np.array(counts, dtype=float)
    templates = TemplateSet("score", np.arange(5.0), (signal, background), ("k",), data)
    result = fit_templates(templates, FitSettings())
    assert result.observed is not None
    assert result.scan is not None
    assert result.observed.mu == pytest.approx(float(maximise(templates.arrays(), data).mu), abs=0.05)
    assert result.scan.mu.min() > -1
    assert np.all(np.isfinite(result.scan.full))


def test_a_workspace_without_parameter_of_interest():
    spec = build_workspace(smooth_templates(3, 1))
    spec["measurements"][0]["config"]["poi"] = ""
    with pytest.raises(FitError, match="no parameter of interest"):
        Likelihood(spec)


@pytest.mark.parametrize("data", [[1.0, 9.0], [7.0, 0.0]])
def test_a_flat_likelihood_takes_few_steps(data, monkeypatch):
    samples = [
        {"name": "s", "data": [1.0, 3.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
        {
            "name": "b",
            "data": [10.0, 5.0],
            "modifiers": [
                {"name": "free", "type": "normfactor", "data": None},
                {"name": "source", "type": "histosys", "data": {"hi_data": [7.0, 11.0], "lo_data": [7.0, 10.0]}},
            ],
        },
    ]
    likelihood = Likelihood(
        {
            "version": "1.0.0",
            "channels": [{"name": "region", "samples": samples}],
            "observations": [{"name": "region", "data": data}],
            "measurements": [{"name": "measurement", "config": {"poi": "mu", "parameters": []}}],
        }
    )
    monkeypatch.setattr("qbdt.inference.likelihood.CHEAP_STEPS", 1000)
    slow = likelihood.minimise({"mu": 0.5})
    monkeypatch.undo()
    jacobian = Mock(wraps=likelihood.jacobian)
    monkeypatch.setattr(likelihood, "jacobian", jacobian)
    fast = likelihood.follow({"mu": 0.5}, likelihood.start)
    assert jacobian.call_count < 30
    assert abs(fast.twice_nll - slow.twice_nll) < 1e-8


def test_second_derivatives_are_made_positive():
    random = np.random.default_rng(1)
    factors = random.normal(size=(20, 4, 4))
    whole = factors @ np.swapaxes(factors, 1, 2)
    np.testing.assert_array_equal(turn_positive(whole, whole), whole)
    mixed = factors + np.swapaxes(factors, 1, 2)
    found = turn_positive(mixed, np.broadcast_to(np.eye(4), mixed.shape))
    np.testing.assert_allclose(found @ found, mixed @ mixed, atol=1e-12)
    assert np.all(np.linalg.eigvalsh(found) > 0)
