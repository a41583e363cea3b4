"""A random measurement fitted here and by pyhf; `make fits` has 500."""

import numpy as np
import pytest
from validation.fits import compare, draw_measurement

from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.answers.limits import make_null
from qbdt.inference.summary import fit_freely
from qbdt.inference.workspace import describe_measurement


@pytest.mark.parametrize("number", [0, 124, 1106])
def test_a_fit_of_a_random_measurement_is_that_of_pyhf(number):
    """Regions, asymmetric shapes, free normalisations and empty bins, drawn at random; always the same ones here.

    At no signal the others have another minimum of the likelihood than the one that is near to the best fit; that of
    the third is less than a standard deviation away.
    """
    done = compare(*draw_measurement(np.random.default_rng([1, number])))
    assert done.outcome.startswith("agrees"), done
    assert done.largest < 1e-3


def test_minima_on_the_other_side_of_a_source_are_found():
    """The lower ones of two, at no signal and for the expected limit; searches from the nominal values miss both."""
    (best, null), (other, other_null) = (_fit(number) for number in (222, 246))
    assert best.rise(0.0, {}) == pytest.approx(3.60155, abs=1e-4)  # 3.639 is another minimum
    assert null.rise(1.754179, {}) == pytest.approx(13.58817, abs=1e-3)  # 13.709
    assert other_null.rise(1.24208, {}) == pytest.approx(3.78583, abs=1e-3)  # 7.383
    assert other.rise(0.0, {}) == pytest.approx(11.33724, abs=1e-4)


def _fit(number):
    drawn, mc_stat = draw_measurement(np.random.default_rng([1, number]))
    best = fit_freely(AnalyticLikelihood(describe_measurement(drawn, mc_stat=mc_stat)))
    return best, make_null(best, observed=True)


def test_strengths_that_no_fit_tells_apart_are_refused():
    done = compare(*draw_measurement(np.random.default_rng([1, 483])))
    assert "mu_ggH and mu_VBF change all bins alike" in done.message
