"""Fits by pyhf and iminuit: relations that must hold between their results, data, impacts, and hard cases."""

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.inference.fit import fit_templates, write_fit
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.settings import FitSettings
from qbdt.inference.source_significance import background_uncertainty, source_significances
from qbdt.inference.summary import _find_crossing, fit_freely, scan_mu, summarise
from qbdt.inference.templates.repair import bound_shifts, merge_unusable_bins
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import build_workspace
from tests.inference.models import smooth_templates

QUICK = FitSettings(scan=False)


@pytest.fixture(scope="module")
def templates():
    return smooth_templates(8, 3)


@pytest.fixture(scope="module")
def likelihood(templates):
    return Likelihood(build_workspace(templates))


@pytest.fixture(scope="module")
def summary(likelihood):
    return summarise(fit_freely(likelihood))


def test_asimov_fit_finds_its_own_truth(summary):
    assert summary.mu == pytest.approx(1.0, abs=1e-4)
    assert all(abs(p.value) < 1e-4 for p in summary.sources)


def test_more_uncertainties_give_less_significance(summary):
    z = {name: z for name, (z, _) in summary.variants.items()}
    assert z["full"] < z["stat"] < z["stat, no MC stat"]
    assert z["full"] < z["full, no MC stat"] < z["stat, no MC stat"]
    assert summary.delta_mu == pytest.approx(
        np.sqrt(summary.sigma_mu**2 - summary.sensitivity.sigma_stat**2), rel=1e-12
    )


def test_one_bin_without_uncertainties_is_the_textbook_formula():
    s = ProcessTemplates("s", Role.SIGNAL, np.array([10.0]), np.zeros(1))
    b = ProcessTemplates("b", Role.BACKGROUND, np.array([100.0]), np.zeros(1))
    result = fit_templates(TemplateSet("score", np.array([0.0, 1.0]), (s, b)), FitSettings(mc_stat=False, scan=False))
    assert result.expected.z**2 == pytest.approx(2 * (110 * np.log(1.1) - 10), rel=1e-5)
    assert result.expected.sigma_mu == pytest.approx(np.sqrt(110) / 10, rel=1e-5)


def test_the_interval_agrees_with_the_scan(likelihood, summary):
    low, high = summary.interval
    scan = scan_mu(fit_freely(likelihood), 9)
    curve = np.interp(summary.mu + np.array([low, high]), scan.mu, scan.full)
    assert curve == pytest.approx([1, 1], abs=0.12)  # nine points, linear in between
    assert np.all(scan.stat >= scan.full - 1e-6)
    assert scan.full.min() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("rise", "end", "most"),
    [
        (lambda d: d**2 / 9, 3.0, 3),
        (lambda d: (d / 70) ** 3.4, 70.0, 14),  # steps for a square overshoot by more each time
        (lambda d: 0.3 * d if d < 2.5 else 40.0 + d, 2.5, 28),  # another minimum takes over
        (lambda d: 0.2 + 0.9 * np.arctan(d / 30), 30 * np.tan(0.8 / 0.9), 14),  # it saturates
        (lambda d: 0.9 - 1 / (1 + d), None, 30),  # and never gets there
        (lambda d: 2 * d if d < 0.5 else 1.6 - 0.1 * d, 0.5, 30),  # it falls again
    ],
)
def test_ends_of_intervals_of_any_shape(rise, end, most):
    asked = []

    class Best:
        mu, index = 0.0, 0
        likelihood = Mock(bounds=np.array([[-1e6, 1e6]]))

        def rise(self, mu, held):
            asked.append(mu)
            return rise(abs(mu))

    for sign in (1.0, -1.0):
        asked.clear()
        best: Any = Best()
        found = _find_crossing(best, 5.0 * sign)
        assert found == (None if end is None else pytest.approx(sign * end, rel=1e-4))
        assert len(asked) <= most


def test_impacts_from_the_covariance_equal_refits(likelihood, summary):
    refitted = {impact.source: impact for impact in summarise(fit_freely(likelihood), refit=True).impacts}
    for impact in summary.impacts:
        # The covariance is linear; a refit has the curvature of the likelihood.
        assert impact.up == pytest.approx(refitted[impact.source].up, abs=0.02 * summary.sigma_mu)
        assert impact.prefit_down == pytest.approx(refitted[impact.source].prefit_down, abs=0.03 * summary.sigma_mu)


def test_parts_of_sigma_mu(summary):
    parts = dict(summary.breakdown)
    assert parts["total"] == summary.sigma_mu
    assert parts["all sources"] == pytest.approx(summary.delta_mu)
    assert parts["data statistics"] == pytest.approx(summary.without_mc_stat.sigma_stat)
    assert max(parts[p.name] for p in summary.sources) <= parts["all sources"]


def test_recorded_data_are_fitted(templates):
    truth = templates.background + 2.0 * templates.signal
    result = fit_templates(replace(templates, data=np.round(truth)), FitSettings())
    assert result.observed is not None
    assert result.observed.mu == pytest.approx(2.0, abs=0.1)
    assert result.expected.mu == pytest.approx(1.0, abs=1e-4)
    assert result.observed.z > result.expected.z
    assert result.best is result.observed
    assert sum(v.sum() for v in result.observed.postfit.values()) == pytest.approx(np.round(truth).sum(), rel=0.02)


def test_a_deficit_has_no_significance(templates):
    data = np.round(templates.background - 0.5 * templates.signal)
    result = fit_templates(replace(templates, data=data), QUICK)
    assert result.observed is not None
    assert result.observed.mu < 0
    assert result.observed.z == 0.0


def test_data_without_events_leave_the_expected_result(templates):
    result = fit_templates(replace(templates, data=np.zeros(templates.n_bins)), QUICK)
    assert result.observed is None
    assert result.expected.z == fit_templates(replace(templates, data=None), QUICK).expected.z
    assert any("no events" in str(note) or "empty" in str(note) for note in result.templates.notes), (
        result.templates.notes
    )


def test_tables_and_plain_data(templates, tmp_path):
    import json

    result = fit_templates(templates, FitSettings())
    assert "Fit to Asimov data" in str(result)
    assert "Total background after the fit" in str(result)
    paths = write_fit(result, tmp_path)
    assert all(path.exists() for path in paths)
    plain = json.loads((tmp_path / "fit.json").read_text())
    assert plain["expected"]["z"] == result.expected.z
    again = TemplateSet.from_dict(json.loads((tmp_path / "templates.json").read_text()))
    assert again.to_dict() == templates.to_dict()


def test_appendix_with_a_small_source_is_the_significance_without(templates):
    rows = source_significances(templates)
    for row in rows:
        assert row.z_chi2 >= row.z_0
        assert row.z_constrained == pytest.approx(row.z_exact, rel=0.02)
        assert row.z_free <= row.z_constrained + 1e-9
    assert [row.source for row in rows] == list(templates.sources)


def test_total_background_uncertainty(templates, summary):
    result = background_uncertainty(templates, summary)
    prior = np.sqrt(sum(templates.process("major").linear_shift(n).sum() ** 2 for n in templates.sources))
    assert 0 < result.correlated < prior
    assert 0 < result.uncorrelated <= prior * 1.0001


def with_sources(**shifts):
    """One signal and one background in four bins, with the given relative effects on the background."""
    s, b = np.array([1.0, 2.0, 4.0, 8.0]), np.array([400.0, 200.0, 60.0, 20.0])
    sources = {name: Shift(b * (1 + f), b * (1 - f), mirrored=True) for name, f in shifts.items()}
    signal = ProcessTemplates("s", Role.SIGNAL, s, 0.01 * s)
    background = ProcessTemplates("b", Role.BACKGROUND, b, 0.2 * b, sources)
    return TemplateSet("score", np.arange(5.0), (signal, background), tuple(sources))


def test_a_source_without_effect_stays_as_it_was():
    summary = fit_templates(with_sources(nothing=np.zeros(4), tilt=np.linspace(-0.1, 0.1, 4)), QUICK).expected
    assert summary.parameter("nothing").error == pytest.approx(1.0, rel=1e-4)
    assert summary.impacts[-1].up == pytest.approx(0.0, abs=1e-6)


def test_two_identical_sources_act_as_one_of_larger_size():
    tilt = np.linspace(-0.1, 0.1, 4)
    two = fit_templates(with_sources(a=tilt, b=tilt), QUICK).expected
    one = fit_templates(with_sources(a=np.sqrt(2) * tilt), QUICK).expected
    assert two.z == pytest.approx(one.z, abs=1e-4)
    assert two.sigma_mu == pytest.approx(one.sigma_mu, rel=1e-4)
    names = [p.name for p in two.parameters]
    assert two.correlation[names.index("a"), names.index("b")] < -0.1


def test_a_source_ten_times_the_background():
    templates = bound_shifts(with_sources(huge=np.full(4, 10.0)))
    assert [note.subject for note in templates.notes] == ["source huge"]
    summary = fit_templates(templates, QUICK).expected
    assert summary.parameter("huge").error < 0.1
    assert 0 < summary.z < fit_templates(with_sources(), QUICK).expected.z


def test_no_background_in_a_bin_is_named_and_can_be_merged():
    templates = with_sources()
    b = templates.process("b")
    empty = replace(b, nominal=b.nominal * [1, 1, 1, 0], variance=b.variance * [1, 1, 1, 0])
    broken = replace(templates, processes=(templates.process("s"), empty))
    with pytest.raises(FitError, match=r"bin 4 \(3 to 4\) expects 0 background and 8 signal events: merge it"):
        fit_templates(broken, QUICK)
    merged = merge_unusable_bins(broken)
    assert merged.n_bins == 3
    assert fit_templates(merged, QUICK).expected.z > 0


def test_no_signal():
    templates = with_sources()
    none = replace(templates.process("s"), nominal=np.zeros(4))
    with pytest.raises(FitError, match="no bin expects signal"):
        fit_templates(replace(templates, processes=(none, templates.process("b"))), QUICK)


def test_a_fit_that_does_not_converge_names_the_source(likelihood, monkeypatch):
    """−2 ln L that falls without end in one nuisance parameter."""
    index = likelihood.names.index("source1")
    monkeypatch.setattr(likelihood, "twice_nll", lambda x: -1e6 * abs(x[index]) ** 0.5 + np.sin(1e5 * x[0]))
    with pytest.raises(FitError, match=r"did not converge.*the source pulled most is source1"):
        likelihood.minimise()


def test_data_of_another_length(templates):
    with pytest.raises(FitError, match="3 counts for a model of 8 bins"):
        Likelihood(build_workspace(templates), data=np.ones(3))
