"""Pseudo-experiments of a few events, in which bins stay empty and a strength has no minimum but a wall."""

from dataclasses import replace

import numpy as np
import pytest

from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.inference.analytic_likelihood import AnalyticLikelihood, fit_many
from qbdt.inference.answers import find_limit, find_limit_with_toys, measure_goodness
from qbdt.inference.answers.pseudo_experiments import draw_experiments, keep_fitted, measure_tilde
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.measurement import Measurement
from qbdt.inference.summary import fit_freely
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import describe_measurement

SIGNAL, BACKGROUND = np.array([1.0, 3.0, 4.0, 2.0]), np.array([50.0, 20.0, 5.0, 1.0])
SCALE = {"j": Shift(BACKGROUND * 1.2, BACKGROUND * 0.8)}


@pytest.fixture(scope="module")
def thin():
    b = ProcessTemplates("b", Role.BACKGROUND, BACKGROUND, BACKGROUND**2 / np.array([30, 20, 10, 10]), SCALE)
    s = ProcessTemplates("s", Role.SIGNAL, SIGNAL, SIGNAL**2 / 50)
    return Measurement({"r": TemplateSet("x", np.arange(5.0), (s, b), ("j",), data=BACKGROUND)})


@pytest.fixture(scope="module")
def best(thin):
    return fit_freely(AnalyticLikelihood(describe_measurement(thin)))


def test_expected_limits_with_toys_are_those_of_the_nominal_background():
    """Where nothing is observed, not of the background that fits signal and background together without signal."""
    twenty = np.array([20.0])
    xs = {"xs": Shift(twenty * 1.5, twenty * 0.5, factors=(0.5, 1.5))}
    b = ProcessTemplates("b", Role.BACKGROUND, twenty, np.zeros(1), xs)
    s = ProcessTemplates("s", Role.SIGNAL, np.array([10.0]), np.zeros(1))
    measurement = Measurement({"r": TemplateSet("x", np.arange(2.0), (s, b), ("xs",))})
    best = fit_freely(AnalyticLikelihood(describe_measurement(measurement)))
    toys = find_limit_with_toys(best, 2000, observed=False)
    assert toys.expected == pytest.approx(find_limit(best, observed=False).expected, rel=0.12)


def test_a_strength_that_is_not_negative_is_held_at_zero(best):
    """As fits of negative ones repeated at 0."""
    drawn = draw_experiments(best.likelihood, best.profile(0.5, {}).values, 100, np.random.default_rng(2))
    filled = np.flatnonzero((drawn.counts > 0).all(axis=1))
    drawn = replace(drawn, counts=drawn.counts[filled], centres=drawn.centres[filled])
    mu = best.likelihood.names.index("mu")

    def fit(hold):
        return fit_many(best.likelihood, drawn.counts, drawn.centres, hold, drawn.truth)

    free, null, held = fit({}), fit({"mu": 0.0}), fit({"mu": 1.0})
    lowest = np.where(free.values[:, mu] < 0, null.twice_nll, free.twice_nll)
    wanted = np.where(free.values[:, mu] > 1, 0.0, held.twice_nll - lowest)
    assert (free.values[:, mu] < 0).any()
    np.testing.assert_allclose(measure_tilde(best.likelihood, drawn, "mu", 1.0), wanted, atol=1e-7)


def test_toys_with_empty_bins_need_no_search_by_migrad(thin, best, monkeypatch):
    searched = []
    original = Likelihood.minimise

    def search(*given):
        searched.append(given)
        return original(*given)

    monkeypatch.setattr(Likelihood, "minimise", search)
    drawn = draw_experiments(best.likelihood, best.minimum.values, 200, np.random.default_rng(1))
    assert (drawn.counts == 0).any(axis=1).sum() > 50
    assert np.isfinite(measure_tilde(best.likelihood, drawn, "mu", 1.0)).all()
    assert not searched
    found = fit_many(best.likelihood, drawn.counts, drawn.centres, start=drawn.truth)
    assert np.isfinite(found.twice_nll).mean() > 0.98
    assert len(searched) < 0.1 * 200


def test_walls_are_found_as_migrad_finds_them(best):
    """A bin without events and a strength that may be negative: −2 ln L falls until the bin expects nothing."""
    drawn = draw_experiments(best.likelihood, best.minimum.values, 60, np.random.default_rng(4))
    rows = np.flatnonzero((drawn.counts == 0).any(axis=1))
    found = fit_many(best.likelihood, drawn.counts, drawn.centres, start=drawn.truth)
    names = [best.likelihood.names[i] for i in best.likelihood.constraints.index]
    compared = 0
    for row in rows:
        toy = best.likelihood.with_data(drawn.counts[row], dict(zip(names, drawn.centres[row], strict=True)))
        try:
            reference = toy.minimise(start=drawn.truth)
        except FitError:
            continue
        compared += 1
        assert found.twice_nll[row] <= reference.twice_nll + 1e-4
    assert compared > 5


def test_no_data_fit_better_than_those_that_fit_exactly(thin):
    found = measure_goodness(fit_freely(AnalyticLikelihood(describe_measurement(thin))), 100)
    assert found.statistic == pytest.approx(0, abs=1e-9)
    assert found.p_value_toys == 1.0
    assert found.n_toys >= 95


def test_toys_that_cannot_be_fitted_are_left_out_and_too_many_are_refused():
    assert keep_fitted(np.array([1.0] * 99 + [np.nan])).tolist() == [1.0] * 99
    with pytest.raises(FitError, match="10 of 100 pseudo-experiments cannot be fitted: merge sparse bins"):
        keep_fitted(np.array([1.0] * 90 + [np.nan] * 10))
