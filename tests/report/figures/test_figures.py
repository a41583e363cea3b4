"""Figures: each draws what it should, saves in every format, and leaves matplotlib's settings alone."""

import matplotlib as mpl
import numpy as np
import pytest

from qbdt.inference.fit import fit_templates
from qbdt.inference.settings import FitSettings
from qbdt.report.figures.fits import correlation, likelihood_scan, pulls, ranking
from qbdt.report.figures.templates import envelope, stacked
from qbdt.report.style import save
from tests.inference.models import smooth_templates


@pytest.fixture(scope="module")
def templates():
    return smooth_templates(6, 2, norm=0.1)


@pytest.fixture(scope="module")
def result(templates):
    return fit_templates(templates, FitSettings())


def labels(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def test_pulls_show_every_source_at_its_value(result):
    (axes,) = pulls(result.expected).axes
    assert labels(axes.yaxis) == ["source0", "source1", "norm"]
    points = axes.containers[0].lines[0].get_xydata()
    assert points[:, 0] == pytest.approx([p.value for p in result.expected.sources])


def test_ranking_is_ordered_by_impact(result):
    axes, above = ranking(result.expected).axes
    names = labels(axes.yaxis)
    assert names == [i.source for i in result.expected.impacts]
    widths = [bar.get_width() for bar in axes.containers[1]]
    assert widths == pytest.approx([i.up for i in result.expected.impacts])
    assert "points" in above.get_xlabel()


def test_ranking_can_be_cut(result):
    assert len(labels(ranking(result.expected, top=1).axes[0].yaxis)) == 1


def test_correlation_matrix_starts_with_the_signal_strength(result):
    axes = correlation(result.expected).axes[0]
    assert sorted(labels(axes.yaxis)) == ["mu", "norm", "source0", "source1"]
    assert labels(axes.yaxis)[0] == "mu"
    assert axes.images[0].get_array().shape == (4, 4)
    assert np.diag(np.asarray(axes.images[0].get_array())) == pytest.approx(np.full(4, 100))


def test_scan_shows_both_curves(result):
    (axes,) = likelihood_scan(result.scan, result.expected).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["full", "sources held"]


@pytest.mark.parametrize("postfit", [False, True])
def test_stacked_templates(templates, result, postfit):
    main, ratio = stacked(templates, result.expected, postfit).axes
    shown = [text.get_text() for text in main.get_legend().get_texts()]
    assert set(shown) == {"signal", "major", "minor", "uncertainty", "Asimov data"}
    points = ratio.containers[0].lines[0].get_ydata()
    assert points == pytest.approx(np.ones(6), abs=1e-3)


def test_envelope(templates):
    main, ratio = envelope(templates, "source0").axes
    shown = [text.get_text() for text in main.get_legend().get_texts()]
    assert shown[:2] == ["source0 up", "source0 down"]
    assert shown[2].startswith("signal × 10")
    assert ratio.get_xlabel() == "score"


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_saving_leaves_no_trace_in_the_settings(templates, tmp_path, suffix):
    before = dict(mpl.rcParams)
    path = save(envelope(templates, "source1"), tmp_path / "figures" / f"envelope.{suffix}")
    assert path.stat().st_size > 5000
    assert dict(mpl.rcParams) == before
