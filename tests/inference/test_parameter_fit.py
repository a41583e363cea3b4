"""Fits of sources without a constraint, and of several strengths, in cells."""

import re
from dataclasses import replace

import numpy as np
import pytest

from qbdt.data import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.systematic import Systematic
from qbdt.errors import FitError
from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.answers.scans import PairScan
from qbdt.inference.fit import fit_measurement, write_fit
from qbdt.inference.fit_summary import FitSummary
from qbdt.inference.likelihood import Likelihood
from qbdt.inference.measurement import Measurement
from qbdt.inference.settings import FitSettings
from qbdt.inference.strengths.cell_fit import fit_strengths
from qbdt.inference.summary import fit_freely
from qbdt.inference.templates.cells import CellTarget, choose_cells
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet
from qbdt.inference.workspace import describe_measurement, read_workspace

N = 3000


def peak(recorded=None, seed=1):
    """Return a peak over a wide background, with a mass of interest and a scale; data with the mass moved."""
    rng = np.random.default_rng(seed)
    x, b = rng.normal(125, 2, N), rng.normal(120, 20, N)

    def events(values, total):
        return Events({"m": values}, np.full(len(values), total / len(values)), {"event": np.arange(len(values))})

    samples = [Sample("s", Role.SIGNAL, events(x, 400.0)), Sample("b", Role.BACKGROUND, events(b, 2000.0))]
    if recorded is not None:
        data = np.concatenate([rng.normal(125 + recorded, 2, 400), rng.normal(120, 20, 2000)])
        samples.append(Sample("data", Role.DATA, events(data, len(data))))
    sources = [
        Systematic.shape("mass", {"s": events(x + 1, 400.0)}, {"s": events(x - 1, 400.0)}),
        Systematic.norm("xs", 0.1, processes=["s"]),
    ]
    return Dataset(samples, sources, ModuloFolds(2, "event"))


PLAIN = FitSettings(noise=False)


def fit_peak(dataset, of_interest=("mass",), settings=PLAIN):
    return fit_strengths(dataset, {"mu": ["s"]}, settings, of_interest=of_interest, free=["b"])


def test_a_mass_is_measured_where_it_is():
    nominal, moved = (fit_peak(peak(shift)) for shift in (None, 0.5))
    mass = nominal.expected.strength("mass")
    assert [one.name for one in nominal.expected.strengths] == ["mass"]
    assert {p.name: p.kind for p in nominal.expected.parameters if p.kind != "mc_stat"} == {
        "mass": "poi",
        "mu": "free",
        "norm_b": "free",
        "xs": "source",
    }
    assert mass.mu == pytest.approx(0.0, abs=1e-6)
    # 400 events of width 2: 2/√400 = 0.1 without a background; the mass itself is no score trained for it
    assert 0.1 < mass.sigma_mu < 0.25
    assert -mass.interval[0] == pytest.approx(mass.sigma_mu, rel=0.2)
    found = moved.observed.strength("mass")
    assert found.mu > 0.2
    assert abs(found.mu - 0.5) < 3 * found.sigma_mu


def test_a_mass_has_no_prior():
    """With a constraint the fit is that of a mass known to one unit beforehand: 1/σ² is larger by 1."""
    settings = FitSettings(noise=False, scan=False)
    free = fit_peak(peak(), settings=settings).measurement
    held = fit_measurement(replace(free, of_interest=("mu",)), settings).expected.parameter("mass").error
    alone = fit_measurement(free, settings).expected.sigma_mu
    assert held**-2 - alone**-2 == pytest.approx(1.0, rel=1e-3)


def test_results_of_a_mass_speak_of_no_strength():
    result = fit_peak(peak(), settings=FitSettings(noise=False, scan=False))
    text = str(result.expected)
    assert "signal strength" not in text
    assert "Discovery" not in text
    assert result.expected.headline.startswith("mass = ")
    again = FitSummary.from_dict(result.expected.to_dict())
    assert not again.strengths[0].is_strength
    assert str(again) == text


def test_a_mass_and_a_strength_are_measured_together():
    settings = FitSettings(noise=False, scan=False, contours=True)
    result = fit_peak(peak(), ("mass", "mu"), settings)
    mass, mu = result.expected.strengths
    assert (mass.z, mu.mu) == (0.0, pytest.approx(1.0, abs=1e-6))
    assert mu.z > 3
    (scan,) = result.answers.contours
    assert (scan.parameters, scan.nominal) == (("mass", "mu"), (0.0, 1.0))
    assert PairScan.from_dict(scan.to_dict()).nominal == (0.0, 1.0)


def test_a_coefficient_whose_square_counts_is_exact():
    """n(c) = n + l c + q c², also far beyond the samples at c = ±1."""
    n, linear, square = np.array([50.0, 80.0, 20.0]), np.array([3.0, -5.0, 4.0]), np.array([2.0, 1.0, 6.0])
    shift = Shift(n + linear + square, n - linear + square)
    signal = ProcessTemplates(
        "s", Role.SIGNAL, n, np.zeros(3), {"c": shift, "k": Shift(1.3 * n, 0.9 * n, factors=(0.9, 1.3))}
    )
    background = ProcessTemplates("b", Role.BACKGROUND, 2 * n, np.zeros(3))
    templates = TemplateSet("score", np.arange(4.0), (signal, background), ("c", "k"))
    measurement = Measurement({"region": templates}, of_interest=("c", "k"), fixed={"mu": 1.0})
    likelihood = AnalyticLikelihood(describe_measurement(measurement, mc_stat=False))
    values, at = likelihood.start.copy(), dict(zip(likelihood.names, range(9), strict=False))
    for c, k in ((1.0, 0.0), (-1.0, 1.0), (3.2, -1.0), (0.4, 0.5)):
        values[at["c"]], values[at["k"]] = c, k
        factor = 1 + 0.2 * k + 0.1 * k**2
        expected = (n + linear * c + square * c**2) * factor + 2 * n
        assert likelihood.expected(values) == pytest.approx(expected, rel=1e-12)
        numeric = Likelihood.jacobian(likelihood, values, [at["c"], at["k"]])
        assert likelihood.jacobian(values, [at["c"], at["k"]]) == pytest.approx(numeric, rel=1e-6)
    best = fit_freely(AnalyticLikelihood(describe_measurement(measurement, mc_stat=False), likelihood.expected(values)))
    assert {name: best.value(name) for name in ("c", "k")} == pytest.approx({"c": 0.4, "k": 0.5}, abs=1e-4)


def test_files_of_a_mass(tmp_path):
    """HS3 has no constraint for it and is read back to the same fit; combine has a flat prior; pyhf gets nothing."""
    result = fit_peak(peak(), settings=FitSettings(noise=False, scan=False))
    written = {path.name for path in write_fit(result, tmp_path)}
    assert written == {"fit.json", "measurement.json", "hs3.json", "datacard.txt"}
    assert not (tmp_path / "workspace.json").exists()
    again = fit_freely(Likelihood(read_workspace(tmp_path / "hs3.json")))
    assert again.poi == "mass"
    assert again.sigma_mu() == pytest.approx(result.expected.sigma_mu, rel=1e-5)
    assert again.likelihood.of_kind("source") == ("xs",)
    card = (tmp_path / "combine" / "datacard.txt").read_text()
    assert re.search(r"^mass shapeU +10 +-$", card, re.MULTILINE)
    assert "--redefineSignalPOIs mass" in card
    assert Measurement.from_dict(result.measurement.to_dict()).unconstrained == ("mass",)


def test_a_parameter_without_effect_is_named():
    dataset = peak()
    same = Systematic.norm("idle", 0.1, processes=["s"])
    with pytest.raises(FitError, match="mu and idle change all bins alike"):
        fit_peak(Dataset(dataset.samples, [same], dataset.folds), ["idle"])
    with pytest.raises(FitError, match="of_interest: no strength or source width; there are: mu, mass, xs"):
        fit_peak(dataset, ["width"])
    with pytest.raises(FitError, match="of_interest: mass is given twice"):
        fit_peak(dataset, ["mass", "mass"])
    with pytest.raises(FitError, match="limits: mass is measured"):
        fit_peak(dataset, settings=FitSettings(limits="asymptotic"))
    with pytest.raises(FitError, match="decorrelate: mass is of interest"):
        fit_peak(dataset, settings=FitSettings(scan=False)).measurement.decorrelate("mass", ["region"])


def two(n=4000, seed=2):
    """Return two scores of two signals and a background."""
    rng = np.random.default_rng(seed)

    def sample(name, role, at, total):
        scores = {"a": rng.normal(at[0], 1, n), "b": rng.normal(at[1], 1, n)}
        return Sample(name, role, Events(scores, np.full(n, total / n), {"event": np.arange(n)}))

    samples = [sample("x", Role.SIGNAL, (2, 0), 80.0), sample("y", Role.SIGNAL, (0, 2), 80.0)]
    return Dataset([*samples, sample("b", Role.BACKGROUND, (0, 0), 900.0)], (), ModuloFolds(2, "event"))


STRENGTHS = {"mu_x": ("x",), "mu_y": ("y",)}


def test_cells_keep_what_they_are_asked_to_keep():
    choose, test = two(), two(15_000, seed=3)
    found = {}
    for figure in ("determinant", "sum", "mu_x"):
        cells = choose_cells(choose, 10, CellTarget(STRENGTHS, figure=figure))
        found[figure] = np.sqrt(np.diag(CellTarget(STRENGTHS).covariance(fill(test, cells))))
        assert cells.n_bins <= 10
    fine = np.sqrt(
        np.diag(CellTarget(STRENGTHS).covariance(fill(test, choose_cells(choose, 60, CellTarget(STRENGTHS)))))
    )
    assert found["mu_x"][0] == min(sigmas[0] for sigmas in found.values())
    for sigmas in found.values():
        assert np.all(sigmas > 0.97 * fine)
    assert np.all(found["determinant"] < 1.2 * fine)


def test_cells_have_enough_simulated_events():
    cells = choose_cells(two(), 40, CellTarget(STRENGTHS), min_entries=100.0, by_folds=True)
    templates = fill(two(), cells)
    assert templates.effective_background.min() > 60  # chosen on half of the events each
    assert 2 < cells.n_bins < 40


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fit_strengths(two(), {}), "at least one signal strength is needed"),
        (
            lambda: fit_strengths(two(), STRENGTHS, figure="area"),
            "figure='area': must be one of determinant, sum, mu_x",
        ),
        (lambda: fit_strengths(two().with_folds(None), STRENGTHS), "cells must be chosen on other events"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(FitError, match=message):
        make()


def test_two_strengths_are_fitted():
    result = fit_strengths(two(), STRENGTHS, FitSettings(bins=12, scan=False))
    assert [one.name for one in result.expected.strengths] == ["mu_x", "mu_y"]
