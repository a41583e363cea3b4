"""Figures: each draws what it should, saves in every format, and leaves matplotlib's settings alone."""

from contextlib import contextmanager
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

from qbdt.errors import OutputError
from qbdt.inference.fit import fit_templates
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.template_set import Shift
from qbdt.report.figures.fits import correlation, likelihood_scan, pulls, ranking, write_figures
from qbdt.report.figures.inputs import SourceShape, source_shapes, stacked_variable
from qbdt.report.figures.templates import envelope, stacked
from qbdt.report.labels import Labels
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


def test_ranking_shows_every_pull(result):
    far = replace(result.expected.parameters[-1], name="norm", kind="source", value=-4.1, error=0.9)
    others = [p for p in result.expected.parameters if p.name != "norm"]
    pulled = ranking(replace(result.expected, parameters=(*others, far)))
    assert pulled.axes[1].get_xlim()[0] < -5.0
    assert ranking(result.expected).axes[1].get_xlim() == (-2.0, 2.0)


def test_ranking_can_be_cut(result):
    assert len(labels(ranking(result.expected, top=1).axes[0].yaxis)) == 1


def test_correlation_matrix_starts_with_the_signal_strength(result):
    axes = correlation(result.expected).axes[0]
    assert sorted(labels(axes.yaxis)) == ["$\\mu$", "norm", "source0", "source1"]
    assert labels(axes.yaxis)[0] == "$\\mu$"
    assert axes.images[0].get_array().shape == (4, 4)
    assert np.diag(np.asarray(axes.images[0].get_array())) == pytest.approx(np.full(4, 100))


def test_scan_shows_both_curves(result):
    (axes,) = likelihood_scan(result.scan, result.expected).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["full", "sources held"]


@pytest.mark.parametrize("postfit", [False, True])
def test_stacked_templates(templates, result, postfit):
    main, ratio = stacked(templates, result.expected, postfit).axes
    shown = [text.get_text() for text in main.get_legend().get_texts()]
    assert set(shown) == {"signal", "signal × 10", "major", "minor", "uncertainty", "Asimov data"}
    points = ratio.containers[0].lines[0].get_ydata()
    assert points == pytest.approx(np.ones(6), abs=1e-3)


@pytest.mark.parametrize("name", ["$_{$", "$", r"$\frac{$", r"\alpha", "%", "{"])
def test_names_that_are_no_formulas_are_drawn_as_they_are(templates, tmp_path, name):
    odd = fit_templates(templates.renamed({"major": name}, {"source0": name}), FitSettings(scan=False))
    figures = stacked(odd.templates, odd.expected), ranking(odd.expected), envelope(odd.templates, name)
    for number, drawn in enumerate(figures):
        assert save(drawn, tmp_path / f"{number}.png").stat().st_size > 5000


def test_labels_colours_and_the_line_above(templates, result):
    known = Labels(
        processes={"signal": r"$H\to\tau\tau$"},
        colours={"major": "#112233"},
        experiment="EXP",
        status="Simulation",
        energy=13.6,
        luminosity=62,
    )
    main = stacked(templates, result.expected, labels=known).axes[0]
    shown = [text.get_text() for text in main.get_legend().get_texts()]
    assert {r"$H\to\tau\tau$", r"$H\to\tau\tau$ × 10", "major"} <= set(shown)
    assert (0x11 / 255, 0x22 / 255, 0x33 / 255, 1.0) in [tuple(patch.get_facecolor()) for patch in main.patches]
    assert {"EXP", "Simulation"} <= {text.get_text() for text in main.texts}
    assert main.get_title("right") == "62 fb$^{-1}$ (13.6 TeV)"
    for drawn in (ranking(result.expected, labels=known), correlation(result.expected, known)):
        assert {"EXP", "Simulation"} <= {text.get_text() for text in drawn.axes[0].texts}


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_a_full_disk_is_one_message(result, tmp_path, suffix):
    resource = pytest.importorskip("resource")
    drawn, (soft, hard) = pulls(result.expected), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # files end there, as on a disk that is full
    try:
        with pytest.raises(OutputError, match=rf"pulls\.{suffix}: "):
            save(drawn, tmp_path / f"pulls.{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_a_user_saves_is_the_one_that_commands_save(result, tmp_path, caplog):
    save(correlation(result.expected), tmp_path / "a.png")
    correlation(result.expected).savefig(tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "a.png").read_bytes()
    assert not caplog.records  # no fonts that are not there


def test_every_process_has_its_own_colour():
    found = Labels(colours={"z": "#3f90da"}).fill_colours([f"b{i}" for i in range(20)], ["ggH", "VBF", "VH"])
    assert len({str(colour) for colour in found.values()}) == 24


def test_a_logarithmic_axis_begins_below_the_smallest_background(templates, result):
    signal, major, minor = templates.processes
    flat = replace(major, nominal=np.full(6, 1000.0))
    rare = replace(minor, nominal=np.full(6, 2.0))
    main = stacked(replace(templates, processes=(signal, flat, rare)), result.expected, postfit=False).axes[0]
    assert main.get_ylim()[0] == pytest.approx(0.2)


def test_blind_results_say_that_the_fit_saw_no_data(templates, result):
    main = stacked(templates, result.expected, shown=np.ones(templates.n_bins)).axes[0]
    assert main.texts[0].get_text() == "after the fit to Asimov data, μ = 1.00"


def test_the_ratio_holds_its_band(templates, result):
    ratio = stacked(templates, result.expected, postfit=False).axes[1]
    total = templates.signal + templates.background
    low, high = ratio.get_ylim()
    assert low <= np.min(1 - result.expected.prefit_error / total)
    assert high >= np.max(1 + result.expected.prefit_error / total)


def test_a_total_that_is_negative_after_the_fit_has_no_ratio(templates, result):
    """Of variables that are drawn and not fitted, a pull can take a bin below 0."""
    first = next(iter(result.expected.postfit))
    below = {**result.expected.postfit, first: result.expected.postfit[first].copy()}
    below[first][-1] = -1e6
    ratio = stacked(templates, replace(result.expected, postfit=below)).axes[1]
    assert len(ratio.containers[0].lines[0].get_ydata()) == templates.n_bins - 1


@pytest.mark.parametrize(
    ("variable", "edges", "wanted"),
    [
        ("bin of score", [0, 1, 2, 4, 5, 6, 7], ["1", "2", "3–4", "5", "6", "7"]),
        ("score", [-1, 0.9, 0.995, 0.999, 0.9999, 0.99999, 1], ["1", "2", "3", "4", "5", "6"]),
        ("score", [0, 1, 2, 3, 4, 5, 6], None),
    ],
)
def test_bins_are_labelled_by_what_they_are(templates, result, variable, edges, wanted):
    changed = replace(templates, variable=variable, edges=np.array(edges, dtype=float))
    ratio = stacked(changed, result.expected).axes[1]
    assert (labels(ratio.xaxis) == wanted) == (wanted is not None)
    assert ratio.get_xlabel() == ("score" if wanted is None else "bin of the score")


def test_envelope(templates):
    main, ratio = envelope(templates, "source0").axes
    shown = [text.get_text() for text in main.get_legend().get_texts()]
    assert shown[:2] == ["source0 up", "source0 down"]
    assert shown[2].startswith("signal × 10")
    assert ratio.get_xlabel() == "score"


def test_a_source_of_the_signal_alone_is_drawn_on_the_signal(templates):
    signal, *others = templates.processes
    mass = Shift(1.2 * signal.nominal, 0.8 * signal.nominal)
    empty = np.where(np.arange(6) == 0, 0.0, signal.nominal)
    moved = replace(signal, nominal=empty, shifts={"mass": mass})
    several = replace(templates, processes=(moved, *others), sources=(*templates.sources, "mass"))
    main, ratio = envelope(several, "mass").axes
    assert [text.get_text() for text in main.get_legend().get_texts()] == ["mass up", "mass down", "signal"]
    low, high = ratio.get_ylim()
    assert 0.2 < high - 1 < 1
    assert low == pytest.approx(2 - high)


def test_a_region_without_signal_has_no_line_of_it(templates, result):
    signal, *others = templates.processes
    none = replace(templates, processes=(replace(signal, nominal=np.zeros(6)), *others))
    for drawn in (stacked(none, result.expected, postfit=False), envelope(none, "source0")):
        shown = [text.get_text() for text in drawn.axes[0].get_legend().get_texts()]
        assert not [text for text in shown if "×" in text]


def test_what_is_no_strength_has_its_label(result):
    """A mass is at 0 before the fit, and -1e-12 is no negative mass."""
    mass = replace(result.expected.strengths[0], name="mass", mu=-1e-12, is_strength=False)
    summary, labels = replace(result.expected, strengths=(mass,)), Labels(sources={"mass": "$m_H$"})
    (scan,) = likelihood_scan(result.scan, summary, labels).axes
    assert scan.get_xlabel() == "$m_H$"
    assert scan.texts[2].get_text().startswith("$m_H$ $= 0.00")
    assert ranking(summary, labels=labels).axes[0].get_xlabel() == r"$\Delta$ $m_H$"
    texts = [stacked(result.templates, summary, after, labels).axes[0].texts[0].get_text() for after in (False, True)]
    assert texts == ["before the fit", "after the fit\n$m_H$ = 0.00"]
    assert mass.tables("mass")[0].rows[0][1].startswith("0.000 ±")


def test_settings_of_the_user_do_not_reach_figures(templates, tmp_path):
    wanted = save(envelope(templates, "source1"), tmp_path / "a.png").read_bytes()
    with mpl.rc_context({"text.usetex": True, "lines.linestyle": ":", "axes.facecolor": "red"}):
        assert save(envelope(templates, "source1"), tmp_path / "b.png").read_bytes() == wanted


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_saving_leaves_no_trace_in_the_settings(templates, tmp_path, suffix):
    before = dict(mpl.rcParams)
    path = save(envelope(templates, "source1"), tmp_path / "figures" / f"envelope.{suffix}")
    assert path.stat().st_size > 5000
    assert dict(mpl.rcParams) == before


def test_points_outside_of_the_ratio_are_arrows(templates):
    data = templates.asimov.copy()
    data[-1] *= 30
    ratio = stacked_variable(templates, data=data).axes[1]
    arrows = {line.get_marker(): line.get_xydata() for line in ratio.lines if line.get_marker() in ("^", "v")}
    assert arrows["^"][:, 0] == pytest.approx([(templates.edges[-2] + templates.edges[-1]) / 2])
    assert arrows["v"].size == 0


def test_bins_of_a_few_events_set_no_scale():
    one, noise = np.ones(10), np.full(10, 0.01)
    up = 1.05 * one
    up[-1], noise[-1] = 6.0, 4.0
    drawn = source_shapes("jes", "m", np.arange(11.0), {"signal": SourceShape(one, up, 2 * one - up, noise, noise)})
    low, high = drawn.axes[0].get_ylim()
    assert 0.9 < low < high < 1.1


def test_drawing_tells_how_far_it_is(templates, tmp_path):
    done = []

    @contextmanager
    def told(what, total=None):
        yield lambda n: done.append((what, total, n))

    without = replace(templates, processes=[replace(p, shifts={}) for p in templates.processes], sources=())
    saved = write_figures(fit_templates(without, FitSettings(scan=False)), tmp_path, progress=told)
    assert done == [("drawing", 2, 1)] * 2
    assert [path.name for path in saved] == ["prefit.png", "prefit.pdf", "postfit.png", "postfit.pdf"]
