"""Histograms that no fit has seen, with the parameters of a fit: figures of variables in regions."""

from dataclasses import replace

import numpy as np
import pytest

from qbdt.data import Role
from qbdt.inference import FitSettings, fit_measurement
from qbdt.inference.answers import predict
from qbdt.inference.measurement import Measurement
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet


def region(signal, background, **shifts):
    s, b = np.array(signal, float), np.array(background, float)
    processes = (
        ProcessTemplates("s", Role.SIGNAL, s, 0 * s, shifts.get("s", {})),
        ProcessTemplates("b", Role.BACKGROUND, b, 0 * b, shifts.get("b", {})),
    )
    names = tuple({name: None for own in shifts.values() for name in own})
    return TemplateSet("x", np.arange(len(s) + 1.0), processes, names)


@pytest.mark.parametrize("bins", [([0, 0, 0], [1000, 800, 10]), ([0], [1000]), ([10], [1000])])
def test_bins_that_could_not_be_fitted_alone(bins):
    """Without signal, or with one bin for two factors: nothing is fitted there."""
    measurement = Measurement({"SR": region([10, 20], [100, 50]), "CR": region([0, 0], [1000, 800])}, free=["b"])
    fitted = fit_measurement(measurement, FitSettings(scan=False)).expected
    found = predict(Measurement({"CR": region(*bins)}, measurement.strengths, free=["b"]), fitted)
    assert found.postfit["b"] == pytest.approx(bins[1], rel=1e-6)
    assert found.postfit["s"] == pytest.approx(bins[0], rel=1e-6)
    assert found.prefit_error == pytest.approx(np.zeros(len(bins[0])))


def test_a_source_of_interest_has_its_parabola():
    mass = {"mass": Shift(np.array([25.0, 30, 41]), np.array([39.0, 30, 25]))}
    templates = replace(region([30] * 3, [100, 80, 60], s=mass), data=np.array([124.0, 110, 118]))
    measurement = Measurement({"r": templates}, of_interest=["mu", "mass"])
    fitted = fit_measurement(measurement, FitSettings(scan=False)).observed
    assert fitted is not None
    found = predict(replace(measurement, regions={"r": replace(templates, data=None)}), fitted)
    # θ = 2: nominal + θ (up − down)/2 + θ² (up + down − 2 nominal)/2
    assert fitted.postfit["s"] == pytest.approx([24, 30, 58], rel=1e-4)
    assert found.postfit["s"] == pytest.approx(fitted.postfit["s"], rel=1e-9)
    assert found.postfit_error == pytest.approx(fitted.postfit_error, rel=1e-6)


def test_sources_that_are_held_have_no_band():
    xs, lumi = (Shift(np.array(up), np.array(down)) for up, down in (([110.0], [90.0]), ([105.0], [95.0])))
    measurement = Measurement({"r": region([10], [100], b={"xs": xs, "lumi_": lumi})}, fixed={"xs": 0.0})
    fitted = fit_measurement(measurement, FitSettings(scan=False)).expected
    found = predict(measurement, fitted)
    assert found.prefit_error == pytest.approx([5.0])
    assert found.prefit_error == pytest.approx(fitted.prefit_error)
    assert found.postfit_error == pytest.approx(fitted.postfit_error)


def test_a_group_may_name_a_source_that_moves_nothing():
    templates = region([5], [50], b={"a": Shift(np.array([55.0]), np.array([45.0]))})
    measurement = Measurement({"r": replace(templates, sources=("a", "unused"))}, groups={"g": ["a", "unused"]})
    (found,) = fit_measurement(measurement, FitSettings(scan=False)).expected.strengths[0].group_impacts
    assert found.up == pytest.approx(1.0)
