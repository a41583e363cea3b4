"""One Poisson factor per bin for all backgrounds: the likelihood written out, pyhf, and the Gaussian limit."""

from dataclasses import replace

import numpy as np
import pyhf
import pytest
from pydantic import ValidationError
from scipy.optimize import minimize
from scipy.stats import norm

from qbdt.errors import FitError
from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.answers.pseudo_experiments import draw_experiments, fit_experiments
from qbdt.inference.fit import fit_measurement
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.mc_statistics import take_constraints
from qbdt.inference.measurement import Measurement
from qbdt.inference.settings import FitSettings
from qbdt.inference.summary import fit_freely
from qbdt.inference.templates.template_set import ProcessTemplates, TemplateSet
from qbdt.inference.workspace import describe_measurement
from tests.inference.test_measurement import ROLES, pyhf_model, regions


def draw(events_per_weight, data, **yields):
    """Templates without sources, of which each event has the same weight."""
    processes = tuple(
        ProcessTemplates(name, ROLES[name], np.array(y, dtype=float), np.array(y) / events_per_weight)
        for name, y in yields.items()
    )
    return TemplateSet("score", np.arange(len(data) + 1.0), processes, (), np.array(data, dtype=float))


def one_region(events_per_weight=0.3):
    data = [66.0, 30.0, 11.0]
    return Measurement(
        {"signal": draw(events_per_weight, data, ggH=[2, 6, 7], ttbar=[40, 20, 4], W=[20, 5, 2])}, {"mu": ["ggH"]}
    )


def two_regions():
    signal = draw(0.5, [70.0, 22.0], ggH=[3, 9], ttbar=[40, 10], W=[20, 5])
    control = draw(0.2, [330.0, 120.0], ggH=[0.1, 0.1], ttbar=[250, 90], W=[50, 8])
    return Measurement({"signal": signal, "control": control}, {"mu": ["ggH"]}, free=["ttbar"])


def minimise_directly(model, mu=None):
    """−2 ln L of the counts and of (Σw)²/Σw² simulated events, minimised over μ, the free norm and all factors."""
    free = bool(model.free)

    def twice_nll(x):
        total, place = 0.0, 1 + free
        for region in model.regions.values():
            strength = x[0] if mu is None else mu
            scaled = {"ggH": strength, "ttbar": x[1] if free else 1.0, "W": 1.0}
            nominal = {p.name: p.nominal for p in region.processes}
            gamma = x[place : place + region.n_bins]
            background = nominal["ttbar"] * scaled["ttbar"] + nominal["W"]
            events = region.background**2 / (region.process("ttbar").variance + region.process("W").variance)
            expected = np.concatenate([scaled["ggH"] * nominal["ggH"] + gamma * background, gamma * events])
            counts = np.concatenate([region.data, events])
            total += 2 * np.sum(expected - counts + counts * np.log(counts / expected))
            place += region.n_bins
        return total

    n = 1 + free + sum(region.n_bins for region in model.regions.values())
    limits = [(0.0, 9.0), *[(0.1, 5.0)] * (n - 1)]
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000, "maxfun": 100_000}
    found = minimize(twice_nll, np.ones(n), method="L-BFGS-B", bounds=limits, options=options)
    return found.x, float(found.fun)


@pytest.mark.parametrize("model", [one_region(), two_regions()])
@pytest.mark.parametrize("kind", [Likelihood, AnalyticLikelihood])
def test_it_is_the_likelihood_written_out(model, kind):
    best = fit_freely(kind(describe_measurement(model, mc_model="bin_poisson")))
    values, lowest = minimise_directly(model)
    assert best.minimum.twice_nll == pytest.approx(lowest, abs=1e-6)
    assert best.mu == pytest.approx(values[0], abs=1e-4)  # −2 ln L is flat there: 1e-8 of it
    assert best.rise(0.0, {}) == pytest.approx(minimise_directly(model, mu=0.0)[1] - lowest, abs=1e-6)


def fit_observed(model, mc_model="bin_poisson"):
    result = fit_measurement(model, FitSettings(scan=False, mc_model=mc_model))
    assert result.observed is not None
    return result.observed, result.workspace


def test_pyhf_finds_the_same_in_the_workspace():
    observed, workspace = fit_observed(two_regions())
    model, data = pyhf_model(workspace)
    p0 = float(pyhf.infer.hypotest(0.0, data, model, test_stat="q0"))
    assert observed.z == pytest.approx(norm.isf(p0), abs=1e-3)
    fitted = dict(zip(model.config.par_names, pyhf.infer.mle.fit(data, model), strict=True))
    assert {p.name for p in observed.parameters} == set(fitted)
    for parameter in observed.parameters:
        assert parameter.value == pytest.approx(fitted[parameter.name], abs=1e-3)
    assert set(observed.regions) == {"signal", "control"}


def test_with_many_simulated_events_it_is_the_gaussian_one():
    for events, agrees in ((0.3, False), (3000.0, True)):
        one, two = (fit_observed(one_region(events), model)[0] for model in ("bin", "bin_poisson"))
        assert (abs(one.sigma_mu - two.sigma_mu) < 1e-4 * one.sigma_mu) is agrees
        assert (abs(one.z - two.z) < 1e-4) is agrees


def test_bins_without_an_error_are_held():
    region = one_region().regions["signal"]
    processes = tuple(replace(p, variance=p.variance * [1, 0, 1]) for p in region.processes)
    held = Measurement({"signal": replace(region, processes=processes)}, {"mu": ["ggH"]})
    spec = describe_measurement(held, mc_model="bin_poisson")
    likelihood = Likelihood(spec)
    constant = [name for name, held in zip(likelihood.names, likelihood.constant, strict=True) if held]
    assert constant == ["staterror_signal[1]"]
    plain, poisson = take_constraints(spec)
    assert poisson == {"staterror_signal"}
    errors = plain["channels"][0]["samples"][1]["modifiers"][-1]["data"]
    assert errors == pytest.approx(np.sqrt(processes[1].variance))


def test_toys_draw_its_counts():
    spec = describe_measurement(one_region(), mc_model="bin_poisson")
    likelihood = AnalyticLikelihood(spec)
    rng = np.random.default_rng(3)
    drawn = draw_experiments(likelihood, likelihood.start, 50, rng)
    assert np.all(drawn.centres == np.round(drawn.centres))  # counts
    assert np.all(np.isfinite(fit_experiments(likelihood, drawn).twice_nll))


def test_refused():
    with pytest.raises(ValidationError, match="'bin', 'bin_poisson', 'process' or 'process_poisson'"):
        FitSettings(mc_model="poisson")
    with pytest.raises(FitError, match="the name staterror_signal means something else in HistFactory"):
        Measurement({"signal": regions()["signal"], "staterror_signal": regions()["control"]}, {"mu": ["ggH", "VBF"]})
