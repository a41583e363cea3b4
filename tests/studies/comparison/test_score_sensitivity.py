"""The measure of a comparison against the fit that a run makes."""

import numpy as np
import pytest

from qbdt import Events, Sample, Systematic
from qbdt.data import Dataset, Role
from qbdt.inference import FitSettings, build_templates, run_fit
from qbdt.studies.comparison.score_sensitivity import measure_fit


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(1)
    signal = Sample("s", Role.SIGNAL, Events({"score": rng.normal(1, 1, 900)}, np.full(900, 0.05)))
    background = Sample("b", Role.BACKGROUND, Events({"score": rng.normal(-1, 1, 900)}, np.full(900, 0.4)))
    return Dataset([signal, background], [Systematic.norm("xs", 0.1, processes=["b"])])


@pytest.mark.parametrize("mc_stat", [True, False])
def test_mc_statistics_are_as_the_fit_says(scored, mc_stat):
    settings = FitSettings(transform="none", binning="equal_signal", bins=5, min_entries=2, mc_stat=mc_stat, scan=False)
    found, fitted = measure_fit(scored, settings), run_fit(scored, settings)
    assert found.sigma_full == pytest.approx(fitted.expected.sigma_mu, rel=0.01)
    assert found.z_full == pytest.approx(fitted.expected.z, rel=0.01)


def test_without_mc_statistics_only_the_counts_fluctuate(scored):
    settings = FitSettings(transform="none", binning="equal_signal", bins=5, min_entries=2, mc_stat=False)
    model = build_templates(scored, settings).templates.arrays()
    by_hand = np.sum(model.signal**2 / (model.signal + model.background)) ** -0.5
    assert measure_fit(scored, settings).sigma_stat == pytest.approx(by_hand)
