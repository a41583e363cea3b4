"""`qbdt plot`: histograms of inputs, their uncertainties and what they hide."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.inputs import inputs_document, plot_inputs
from qbdt.analysis.inputs.histograms import choose_edges, correlate, source_shape
from qbdt.analysis.inputs.yields import count_cuts
from qbdt.analysis.loader import load
from qbdt.analysis.schema import Variable
from qbdt.data import Role
from qbdt.errors import ConfigError, DataError, ExpressionError, OutputError
from qbdt.report import Fold
from qbdt.tables import Table

ANALYSIS = """\
name: small
features: [pt, n, m]
weight: w
missing: {m: -999}
selection: pt > 15 and (n >= 0 or pt > 100)
samples:
  higgs: {role: signal, files: higgs.parquet, label: '$H$'}
  ttbar: {role: background, files: ttbar.parquet, color: orange}
  wjets: {role: background, files: wjets.parquet}
  data: {role: data, files: data.parquet}
systematics:
  scale: {kind: shape, up: {columns: {pt: pt * 1.1}}, down: {columns: {pt: pt * 0.9}}}
  sf: {kind: weight, processes: ttbar, up: nominal * 1.2}
  xs: {kind: norm, processes: wjets, size: 0.1}
folds: {columns: event, k: 2}
variables:
  pt: {label: '$p_T$', unit: GeV, range: [0, 200], bins: 10}
  ratio: {expression: m / pt, bins: 5}
"""
REGIONS = """\
regions:
  sr: {selection: pt > 40}
  cr: {selection: pt <= 40, observable: yield}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    random = np.random.default_rng(4)
    for name, n, weight, mean in (("higgs", 300, 0.05, 60), ("ttbar", 800, 1.0, 40), ("wjets", 500, 2.0, 30)):
        _write(folder, name, random, n, weight, mean)
    _write(folder, "data", random, 1777, 1.0, 38)
    return folder


def _write(folder, name, random, n, weight, mean):
    columns = {
        "pt": random.exponential(mean, n) + 10,
        "n": random.poisson(2, n),
        "m": np.where(random.random(n) < 0.2, -999.0, random.normal(100, 10, n)),
        "w": np.full(n, weight),
        "event": np.arange(n),
    }
    pa.parquet.write_table(pa.table(columns), folder / f"{name}.parquet")


def figures(document):
    return {figure.name: figure for figure in document.figures()}


def test_every_variable_source_and_table_is_on_the_page(folder):
    document = inputs_document(parse_analysis(ANALYSIS), folder, ["n * 2"])
    assert [section.title for section in document.sections] == [
        "Variables",
        "Sources",
        "Correlations of features",
        "Yields",
    ]
    names = set(figures(document))
    variables = {name for name in names if not name.startswith(("source", "correlation"))}
    assert {name.removesuffix("-log") for name in variables} == {"pt", "n", "m", "ratio", "n___2"}
    assert {"source-scale", "source-sf", "correlation-signal", "correlation-background"} <= names
    assert not any(name.startswith("source-sf-") for name in names)
    pt = figures(document)["pt"].data
    raw = pa.parquet.read_table(folder / "ttbar.parquet")["pt"].to_numpy()
    expected = np.histogram(np.clip(raw[raw > 15], 0, 199.9), np.linspace(0, 200, 11))[0]
    np.testing.assert_allclose(pt["ttbar"], expected)
    assert isinstance(document.sections[0].blocks[-1], Fold)


def test_data_are_hidden_as_the_fit_hides_them(folder):
    blind = inputs_document(parse_analysis(ANALYSIS), folder)
    shown = figures(blind)["pt"].data["data"]
    assert None in shown
    assert any(value is not None for value in shown)
    yields = next(block for block in blind.sections[-1].blocks if isinstance(block, Table))
    assert ("data", "blind", "", "", "") in yields.rows
    flow = blind.sections[-1].blocks[-1]
    assert isinstance(flow, Table)
    assert "data" not in flow.header


def test_regions_have_figures_of_their_own(folder):
    text = ANALYSIS.replace("[pt, n, m]", "[pt]").replace("missing: {m: -999}\n", "missing: {ratio: -999}\n")
    labelled = REGIONS.replace("sr: {", "sr: {label: signal region, ")
    document = inputs_document(parse_analysis(text + labelled), folder, every_source=True)
    texts = [text.get_text() for text in figures(document)["sr-pt"].drawn.axes[0].texts]
    assert "signal region" in texts
    texts = [text.get_text() for axes in figures(document)["sr-source-sf"].drawn.axes for text in axes.texts]
    assert "signal region, background" in texts
    assert [s.title for s in document.sections][:2] == ["Region sr", "Region cr"]
    found = figures(document)
    assert None not in found["cr-pt"].data["data"]  # a control region is open
    assert None in found["sr-pt"].data["data"]
    np.testing.assert_allclose(np.array(found["sr-pt"].data["ttbar"])[:2], 0)
    sources = {name for name in found if "-source-" in name}
    assert {"sr-source-sf", "cr-source-sf", "cr-source-scale"} <= sources
    assert len(sources) == 2 * 2 * 2  # regions, sources that are no normalisation, variables


def test_cut_flow(folder):
    flow = count_cuts(parse_analysis(ANALYSIS), folder)
    assert flow is not None
    assert flow.cuts == ("pt > 15", "n >= 0 or pt > 100")
    raw = pa.parquet.read_table(folder / "wjets.parquet")["pt"].to_numpy()
    left = (raw > 15).sum()
    np.testing.assert_allclose(flow.yields[:, flow.processes.index("wjets")], [1000, 2 * left, 2 * left])
    assert re.fullmatch(r"[\d,.]+ \(\d+\.\d%\)", flow.table().rows[1][1])
    everything = parse_analysis(ANALYSIS.replace("selection: pt > 15 and (n >= 0 or pt > 100)\n", ""))
    assert count_cuts(everything, folder) is None


def test_errors_of_a_shift_know_which_events_are_shared(folder):
    data = load(parse_analysis(ANALYSIS), folder)
    edges = np.array([0.0, 40.0, 500.0])
    shape = source_shape(data, "scale", "pt", edges, Role.BACKGROUND)
    assert shape is not None
    # The obvious version: events that change bins count once in each of the two.
    expected = np.zeros(2)
    for process, weight in (("ttbar", 1.0), ("wjets", 2.0)):
        raw = pa.parquet.read_table(folder / f"{process}.parquet")["pt"].to_numpy()
        for low, high, i in ((15, 40, 0), (40, 1e9, 1)):
            inside = [(low < raw * f) & (raw * f <= high) if i == 0 else raw * f > low for f in (1.0, 1.1)]
            expected[i] += weight**2 * np.sum(inside[0] != inside[1])
    np.testing.assert_allclose(shape.up_error**2, expected, rtol=1e-12)
    reweighted = source_shape(data, "sf", "pt", edges, Role.BACKGROUND)
    assert reweighted is not None
    raw = pa.parquet.read_table(folder / "ttbar.parquet")["pt"].to_numpy()
    n = np.array([np.sum((raw > 15) & (raw < 40)), np.sum(raw >= 40)])
    np.testing.assert_allclose(reweighted.up_error, 0.2 * np.sqrt(n), rtol=1e-9)
    np.testing.assert_allclose(reweighted.down, 2 * reweighted.nominal - reweighted.up, rtol=1e-12)
    assert source_shape(data, "sf", "pt", edges, Role.SIGNAL) is None


def test_bins_of_whole_numbers_and_of_the_analysis(folder):
    data = load(parse_analysis(ANALYSIS), folder)
    whole = choose_edges(data, "n", Variable())
    assert set(np.diff(whole)) == {1.0}
    assert whole[0] % 1 == 0.5
    np.testing.assert_array_equal(choose_edges(data, "pt", Variable(range=(0, 10), bins=2)), [0, 5, 10])
    matrix = correlate(data, Role.BACKGROUND)
    np.testing.assert_allclose(np.diag(matrix), 1)
    assert np.abs(matrix[0, 1]) < 0.2


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("range: [0, 200]", "range: [3, 1]", ConfigError, r"variables.pt: range: \[3, 1\]: two ascending numbers"),
        ("  pt: {label", "  pt: {expression: n, label", ConfigError, "variables.pt: a feature has no expression here"),
        ("expression: m / pt, ", "", ConfigError, "variables: no feature ratio; there are: pt, n, m"),
        ("expression: m / pt", "expression: m / ptt", DataError, "no branch ptt"),
    ],
)
def test_bad_variables(folder, old, new, error, message):
    assert old in ANALYSIS
    with pytest.raises(error, match=message):
        inputs_document(parse_analysis(ANALYSIS.replace(old, new)), folder)


def test_bad_arguments(folder, tmp_path):
    with pytest.raises(ConfigError, match="formats: 'gif': must be png, pdf, svg"):
        plot_inputs(parse_analysis(ANALYSIS), folder, tmp_path, formats=["gif"])
    with pytest.raises(ExpressionError, match="no function open"):
        plot_inputs(parse_analysis(ANALYSIS), folder, tmp_path, variables=["open(pt)"])
    assert not (tmp_path / "report.html").exists()
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(OutputError, match=r"report.html is there already; force=True replaces it"):
        plot_inputs(parse_analysis(ANALYSIS), folder, tmp_path)
    with pytest.raises(OutputError, match=r"report.html: a folder is needed, and this is a file"):
        plot_inputs(parse_analysis(ANALYSIS), folder, tmp_path / "report.html")


def test_the_command_writes_a_page_and_figures(folder, tmp_path, capsys):
    from qbdt.cli.plot import plot

    short = ANALYSIS.replace("[pt, n, m]", "[pt]").replace("  ratio: {expression: m / pt, bins: 5}\n", "")
    (folder / "a.yaml").write_text(re.sub(r"  scale: .*\n", "", short.replace("missing: {m: -999}\n", "")))
    plot(folder / "a.yaml", out=tmp_path / "plots", formats=["png"], unblind=True, as_json=True, quiet=True)
    page = Path(json.loads(capsys.readouterr().out)["page"])
    assert "Unblinded" in page.read_text()
    assert (page.parent / "figures" / "pt.png").stat().st_size > 10_000
