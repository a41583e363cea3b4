"""The paper's study on its own events: published split and settings, fitted on the even events.

Values are those of `design/algorithm.md`, section 3, and the author's own σ_μ; c = 0.25 is the paper's constant, 0.30
what the scan finds.
"""

import pytest

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.examples import example_text
from qbdt.analysis.loader import load, training_settings
from qbdt.inference.asimov import fit_asimov
from qbdt.inference.construction import build_templates
from qbdt.inference.fit import fit_templates
from qbdt.inference.settings import FitSettings
from qbdt.inference.source_significance import background_uncertainty
from qbdt.inference.templates.scores import scan_transform
from qbdt.training.methods import train

pytestmark = [pytest.mark.shared, pytest.mark.xdist_group("paper")]


def scored_by(model, events):
    return events.transform(lambda part: {"score": model.score(part)})


@pytest.fixture(scope="module")
def scored(paper_files):
    """Even events scored by QBDT0 and QBDT7, trained on the odd ones."""
    analysis = parse_analysis(example_text("tautaugamma"), "tautaugamma.yaml")
    events = load(analysis, paper_files)
    found = {}
    for name, sources, n_trees in (("QBDT0", [], 100), ("QBDT7", [s.name for s in events.systematics], 200)):
        training = analysis.training.model_copy(update={"n_trees": n_trees})
        settings = training_settings(analysis.model_copy(update={"training": training}))
        model = train(events.fold(1).with_systematics(sources), settings).ensemble
        found[name] = scored_by(model, events.fold(0))
    return found


def templates_of(scored, c):
    return build_templates(scored, FitSettings(c=c, min_entries=0, scale=2)).templates


@pytest.mark.parametrize(
    ("name", "c", "z_stat", "z_full"),
    [
        ("QBDT0", 0.25, 0.92, None),
        ("QBDT0", 0.30, 0.93, None),
        ("QBDT7", 0.25, 0.93, 0.82),
        ("QBDT7", 0.30, 0.93, 0.85),
    ],
)
def test_significances(scored, name, c, z_stat, z_full):
    model = templates_of(scored[name], c).arrays()
    assert float(fit_asimov(model.without_systematics()).z) == pytest.approx(z_stat, abs=0.03)
    if z_full is not None:
        assert float(fit_asimov(model).z) == pytest.approx(z_full, abs=0.03)


@pytest.mark.parametrize("c", [0.25, 0.30])
def test_without_mc_statistics(scored, c):
    model = templates_of(scored["QBDT0"], c).arrays().without_systematics().without_mc_stat()
    assert 1.47 <= round(float(fit_asimov(model).z), 2) <= 1.50


def test_uncertainties_of_the_signal_strength(scored):
    """The author's 1.088 and 1.195; 5 % is what the author's rounding, c and single-precision histograms can move."""
    result = fit_templates(templates_of(scored["QBDT7"], 0.25), FitSettings(scan=False)).expected
    assert result.sensitivity.sigma_stat == pytest.approx(1.088, rel=0.05)
    assert result.sigma_mu == pytest.approx(1.195, rel=0.05)
    assert result.z == pytest.approx(0.83, abs=0.03)
    total = background_uncertainty(templates_of(scored["QBDT7"], 0.25), result)
    assert total.correlated == pytest.approx(247.85, rel=0.05)  # the paper's table of σ_b, case III


def test_the_scan_finds_the_papers_constant(scored):
    for name in scored:
        best = scan_transform(scored[name]).best
        assert best == pytest.approx(0.25, abs=0.051), name  # the paper's 0.25 or the next step of 0.05
