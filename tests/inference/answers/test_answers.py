"""Limits, scans, goodness of fit and yields against pyhf and cabinetry on the same workspace."""

from dataclasses import replace

import cabinetry
import numpy as np
import pyhf
import pytest

from qbdt.errors import FitError
from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.answers import (
    Answers,
    PairScan,
    UpperLimit,
    find_limit,
    find_limit_with_toys,
    measure_goodness,
    measure_yields,
    scan_pair,
)
from qbdt.inference.answers.yields import Yield, Yields
from qbdt.inference.fit import fit_measurement, fit_templates
from qbdt.inference.settings import FitSettings
from qbdt.inference.summary import fit_freely
from qbdt.inference.workspace import describe_measurement
from tests.inference.models import smooth_templates
from tests.inference.test_measurement import measurement, pyhf_model, regions

COUNTS = {"signal": np.array([301.0, 122.0, 55.0]), "control": np.array([1002.0, 360.0])}


@pytest.fixture(scope="module")
def spec():
    with_data = {name: replace(templates, data=COUNTS[name]) for name, templates in regions().items()}
    return describe_measurement(replace(measurement(), regions=with_data))


@pytest.fixture(scope="module")
def best(spec):
    return fit_freely(AnalyticLikelihood(spec))


@pytest.fixture(scope="module")
def limit(best):
    return find_limit(best)


def test_limits_are_those_of_pyhf(spec, limit):
    model, data = pyhf_model(spec)
    bounds = model.config.suggested_bounds()
    bounds[model.config.poi_index] = (0.0, 20.0)
    options = {"test_stat": "qtilde", "par_bounds": bounds, "return_expected_set": True}
    observed, expected = pyhf.infer.hypotest(limit.observed, data, model, **options)
    assert float(observed) == pytest.approx(0.05, abs=1e-4)
    here = [np.interp(limit.observed, limit.mu, curve) for curve in limit.expected_cls.T]
    assert here == pytest.approx([float(e) for e in expected], abs=0.02)  # straight lines between the points
    for number in (0, 2, 4):
        _, expected = pyhf.infer.hypotest(limit.expected[number], data, model, **options)
        assert float(expected[number]) == pytest.approx(0.05, abs=1e-4)


def test_limits_grow_with_the_band(limit):
    assert list(limit.expected) == sorted(limit.expected)
    again = UpperLimit.from_dict(limit.to_dict())
    assert again.to_dict() == limit.to_dict()
    assert "Upper limit on mu_ggH, 95 % CLs, asymptotic" in str(limit.tables()[0])


def test_expected_limit_without_data(spec, best):
    blind = find_limit(best, observed=False, points=2)
    assert blind.observed is None
    values = best.likelihood.start.copy()
    values[best.index] = 0.0
    nominal = fit_freely(AnalyticLikelihood(spec, data=best.likelihood.expected(values)))
    assert find_limit(nominal, points=2).observed == pytest.approx(blind.expected[2], rel=1e-3)
    assert UpperLimit.from_dict(blind.to_dict()).to_dict() == blind.to_dict()


def test_limits_with_toys_agree_where_events_are_many(best, limit):
    toys = find_limit_with_toys(best, 150, points=4)
    # 150 toys: CLs of 0.05 is known to about a third of it, which is about a tenth of the limit.
    assert toys.observed == pytest.approx(limit.observed, rel=0.25)
    assert toys.expected[2] == pytest.approx(limit.expected[2], rel=0.25)


def test_scan_of_two_strengths(best):
    scan = scan_pair(best, ("mu_ggH", "mu_VBF"), points=7)
    alone = replace(best, poi="mu_ggH")
    assert np.nanmin(scan.rise) >= -1e-6
    fewer_held = [alone.rise(mu, {}) for mu in scan.x]
    assert np.all(np.nanmin(scan.rise, axis=0) >= np.array(fewer_held) - 1e-6)
    reference = best.likelihood.minimise({"mu_ggH": scan.x[1], "mu_VBF": scan.y[5]})
    assert scan.rise[5, 1] == pytest.approx(reference.twice_nll - best.minimum.twice_nll, abs=1e-5)
    assert PairScan.from_dict(scan.to_dict()).to_dict() == scan.to_dict()
    with pytest.raises(FitError, match="two different parameters"):
        scan_pair(best, ("mu_ggH", "mu_ggH"))
    with pytest.raises(FitError, match="parameter='other'"):
        scan_pair(best, ("mu_ggH", "other"))


def test_goodness_of_fit_is_that_of_cabinetry(spec, best):
    goodness = measure_goodness(best, n_toys=200)
    model, data = cabinetry.model_utils.model_and_data(spec)
    found = cabinetry.fit.fit(model, data, goodness_of_fit=True)
    assert goodness.p_value == pytest.approx(found.goodness_of_fit, abs=1e-3)
    assert goodness.degrees == 2
    assert goodness.p_value_toys == pytest.approx(goodness.p_value, abs=0.15)


def test_yields_are_those_of_cabinetry(spec, best):
    yields = measure_yields(best, recorded=True)
    model, data = cabinetry.model_utils.model_and_data(spec)
    results = cabinetry.fit.fit(model, data)
    exact = results._replace(
        bestfit=best.minimum.values,
        uncertainty=np.sqrt(np.diag(best.likelihood.covariance(best.minimum, best.hessian))),
        corr_mat=correlation(best),
    )
    for prediction, value in (
        (cabinetry.model_utils.prediction(model), "prefit"),
        (cabinetry.model_utils.prediction(model, fit_results=exact), "postfit"),
    ):
        for channel, region in enumerate(model.config.channels):
            errors = prediction.total_stdev_model_channels[channel]
            for number, process in enumerate([*model.config.samples, "total"]):
                (row,) = (y for y in yields.rows if (y.region, y.process) == (region, process))
                if process != "total":
                    events = np.sum(prediction.model_yields[channel][number])
                    assert getattr(row, value) == pytest.approx(events, rel=1e-3)
                assert getattr(row, f"{value}_error") == pytest.approx(errors[number], rel=2e-3, abs=1e-3)
    assert "Yields in control" in str(yields.tables()[0])
    rounded = Yields(
        (Yield("a", "b", 0.249, 0.0112, 32924.9, 2872.3), Yield("a", "c", 3, 2e-13, 98.3, 6.31)), {"a": 1.0}, False
    )
    assert rounded.tables()[0].rows == (("b", "0.249 ± 0.011", "32925 ± 2872"), ("c", "3.0 ± 0.0", "98.3 ± 6.3"))
    assert len(yields.table().rows) == len(yields.rows) + 2


def correlation(best):
    covariance = best.likelihood.covariance(best.minimum, best.hessian)
    errors = np.sqrt(np.diag(covariance))
    return covariance / np.outer(errors, errors)


def test_answers_of_a_fit(tmp_path):
    settings = FitSettings(scan=False, limits="asymptotic", contours=True)
    result = fit_measurement(measurement(), settings)
    answers = result.answers
    assert answers is not None
    assert [limit.strength for limit in answers.limits] == ["mu_ggH", "mu_VBF"]
    assert [scan.parameters for scan in answers.contours] == [("mu_ggH", "mu_VBF")]
    assert answers.goodness is None
    assert Answers.from_dict(answers.to_dict()).to_dict() == answers.to_dict()
    assert answers.yields.table().to_csv().startswith("region,process,prefit,prefit_error,postfit,postfit_error\n")
    assert r"\pm" in answers.yields.tables()[0].to_latex()
    assert "Upper limit on mu_VBF" in str(result)
    assert fit_templates(smooth_templates(3, 1), FitSettings(scan=False)).answers is None
