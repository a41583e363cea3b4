"""Families of weights in an analysis: NanoAOD-like files read, trained with replicas as sources, and fitted."""

import numpy as np
import pytest

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.inputs import inspect_inputs
from qbdt.analysis.loader import load, load_partitions
from qbdt.analysis.run import run_analysis
from qbdt.errors import ConfigError, DataError
from tests.analysis.nanoaod import write_nanoaod

NANO = """\
features: [mass, ht, n_hard, best]
columns: {ht: sum(Jet_pt), n_hard: "len(Jet_pt[Jet_pt > 40])", best: "descending(Jet_pt, Jet_btag)[0]"}
tree: Events
weight: genWeight
luminosity: 1
samples:
  higgs: {role: signal, files: higgs.root, cross_section: 0.2, generated: {sum: genEventSumw, tree: Runs}}
  ttbar: {role: background, files: "ttbar_*.root", cross_section: 4, generated: {sum: genEventSumw, tree: Runs}}
systematics:
  pdf: {kind: replicas, weights: LHEPdfWeight, members: [1, 100]}
  scale: {kind: envelope, weights: LHEScaleWeight, processes: ttbar}
  isr: {kind: weight, up: "nominal * PSWeight[0]", down: "nominal * PSWeight[2]"}
folds: {columns: event, k: 2}
training: {n_trees: 4, n_leaves: 4, systematics: [pdf]}
fit:
  bins: 4
"""


@pytest.fixture(scope="module")
def nano(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nano")
    write_nanoaod(folder / "higgs.root", 900, 1, signal=True)
    write_nanoaod(folder / "ttbar_1.root", 800, 2)
    write_nanoaod(folder / "ttbar_2.root", 700, 3)
    return folder


def test_read_trained_with_replicas_and_fitted_in_one_run(nano, tmp_path):
    run = run_analysis(parse_analysis(NANO), nano, tmp_path / "run", figures=False)
    fitted = list(run.result["fit"]["expected"]["parameters"])
    assert [name for name in fitted if name.startswith("pdf#")] == ["pdf#1", "pdf#2", "pdf#3"]
    assert {"scale", "isr"} <= set(fitted)
    again = run_analysis(parse_analysis(NANO + "  systematics: [pdf]\n"), nano, tmp_path / "run", figures=False)
    assert "scores: there already" in again.steps
    assert "isr" not in again.result["fit"]["expected"]["parameters"]
    assert "pdf#3" in again.result["fit"]["expected"]["parameters"]
    assert any("pdf: 103 weights as 3 sources" in step for step in run.steps)


def test_components_act_on_all_processes_alike(nano):
    data = load(parse_analysis(NANO), nano)
    assert data.systematic("pdf#1").processes == ("higgs", "ttbar")
    assert data.systematic("scale").processes == ("ttbar",)
    factors = np.concatenate(
        [write_nanoaod(nano / f"again{i}.root", n, i)["LHEPdfWeight"] for i, n in ((2, 800), (3, 700))]
    )
    weight = data.sample("ttbar").events.weight
    spread = np.sqrt(sum(np.sum(data.varied(f"pdf#{k}", "up")["ttbar"].weight - weight) ** 2 for k in (1, 2, 3)))
    yields = [np.sum(weight * np.asarray(factors[:, j])) for j in range(1, 101)]
    assert spread == pytest.approx(np.std(yields, ddof=1), rel=0.02)


def test_inspect_says_what_was_kept(nano):
    found = inspect_inputs(parse_analysis(NANO), nano)
    table = next(t for t in found.tables() if t.title == "Families of weights")
    assert [row[:4] for row in table.rows] == [
        ("pdf", "replicas", "103", "higgs"),
        ("pdf", "replicas", "103", "ttbar"),
        ("scale", "envelope", "9", "ttbar"),
    ]
    assert all(float(row[-1].rstrip("%")) >= 99 for row in table.rows)
    assert found.to_dict()["families"]["pdf"]["sources"] == 3


def test_inspect_finds_replicas_that_do_not_vary(nano):
    idle = NANO.replace("weights: LHEPdfWeight", 'weights: "LHEPdfWeight * 0 + 1"')
    found = inspect_inputs(parse_analysis(idle), nano)
    assert [str(one) for one in found.findings] == [
        "pdf, higgs: its 103 weights do not vary: is the branch filled?",
        "pdf, ttbar: its 103 weights do not vary: is the branch filled?",
    ]


def test_partitions_agree_on_the_components(nano):
    analysis = parse_analysis(NANO)
    whole, parts = load(analysis, nano), [part() for part in load_partitions(analysis, nano, 2)]
    joined = np.concatenate([part.varied("pdf#2", "up")["ttbar"].weight for part in parts])
    np.testing.assert_allclose(joined, whole.varied("pdf#2", "up")["ttbar"].weight, rtol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("members: [1, 100]", "members: [5, 1]", r"systematics.pdf: members: \[5, 1\]: the first and the last"),
        ("weights: LHEScaleWeight", "weights: LHEScaleWeight, keep: 0.9", "keep is not a setting of kind: envelope"),
        ("members: [1, 100]", "keep: 1.5", "systematics.pdf.keep: input should be less than or equal to 1"),
        ("kind: replicas", "kind: replica", "kind 'replica': must be weight, shape, norm, replicas, hessian or"),
        ("  scale: {", '  "p#f": {', "systematics.p#f: # divides a source from its components"),
    ],
)
def test_bad_families(old, new, message):
    with pytest.raises(ConfigError, match=message):
        parse_analysis(NANO.replace(old, new, 1), "a.yaml")


def test_bad_lists_of_weights(nano, tmp_path):
    with pytest.raises(DataError, match="pdf: members 1 to 120, but there are 103 weights"):
        load(parse_analysis(NANO.replace("[1, 100]", "[1, 120]")), nano)
    with pytest.raises(DataError, match="weights of pdf has one value per event"):
        load(parse_analysis(NANO.replace("weights: LHEPdfWeight", "weights: genWeight")), nano)
    for name, n_members in (("higgs", 103), ("ttbar_1", 103), ("ttbar_2", 101)):
        write_nanoaod(tmp_path / f"{name}.root", 50, 1, n_members=n_members)
    with pytest.raises(
        DataError, match=r"ttbar_2.root:Events: pdf has 101 weights per event, 103 in files read before"
    ):
        load(parse_analysis(NANO), tmp_path)


def test_families_whose_names_begin_alike(nano):
    """One name is the other up to a blank: each keeps its own weights."""
    text = NANO.replace("  scale: {", '  "pdf x": {').replace("systematics: [pdf]", "method: profile")
    data, alone = load(parse_analysis(text), nano), load(parse_analysis(NANO), nano)
    assert [s.name for s in data.systematics] == ["pdf#1", "pdf#2", "pdf#3", "pdf x", "isr"]
    for name, other in (("pdf#1", "pdf#1"), ("pdf x", "scale")):
        found, expected = data.varied(name, "up")["ttbar"], alone.varied(other, "up")["ttbar"]
        np.testing.assert_array_equal(found.weight, expected.weight)
