"""Normalisation by luminosity, cross section and generated events, and eras whose events are joined."""

import hist
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import uproot

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.input_files import list_files
from qbdt.analysis.inputs import inspect_inputs
from qbdt.analysis.loader import load, load_for_training, load_partitions
from qbdt.analysis.run import run_analysis
from qbdt.errors import ConfigError, DataError
from tests.analysis.nanoaod import write_nanoaod

NANO = """\
features: [mass, ht]
columns: {ht: sum(Jet_pt)}
tree: Events
weight: genWeight
luminosity: 36.3
selection: ht >= 0
samples:
  higgs: {role: signal, files: higgs.root, cross_section: 0.5, generated: {sum: genEventSumw, tree: Runs}}
  ttbar: {role: background, files: ttbar.root, cross_section: 800, generated: genWeight}
folds: {columns: event, k: 2}
"""


@pytest.fixture(scope="module")
def nano(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nano")
    write_nanoaod(folder / "higgs.root", 400, 1, signal=True)
    write_nanoaod(folder / "ttbar.root", 600, 2)
    counted = hist.Hist.new.Reg(4, 0, 4).Double().fill([0.5] * 500 + [1.5] * 300)
    with uproot.update(folder / "ttbar.root") as file:
        file["cutflow"] = counted
    return folder


def test_weights_are_scaled_to_the_luminosity(nano):
    data = load(parse_analysis(NANO), nano)
    # Runs holds twice the sum of weights of the events in the file; the other sum is that of the events themselves.
    np.testing.assert_allclose(data.sample("higgs").events.total, 1000 * 36.3 * 0.5 / 2, rtol=1e-9)
    np.testing.assert_allclose(data.sample("ttbar").events.total, 1000 * 36.3 * 800, rtol=1e-9)
    found = inspect_inputs(parse_analysis(NANO), nano)
    assert found.tables()[0].title == "Normalisation"
    assert [row[0] for row in found.tables()[0].rows] == ["higgs", "ttbar"]
    assert found.to_dict()["normalisation"][1]["factor"] == pytest.approx(1000 * 36.3 * 800 / 534, rel=0.1)


@pytest.mark.parametrize(
    ("generated", "n"), [("{histogram: cutflow, bin: 1}", 500), ("{histogram: cutflow}", 800), ("1.0e6", 1e6)]
)
def test_generated_events_from_a_histogram_or_a_number(nano, generated, n):
    text = NANO.replace("generated: genWeight", f"generated: {generated}")
    assert inspect_inputs(parse_analysis(text), nano).normalisations[1].generated == n


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("generated: genWeight", "generated: 0", r"a.yaml:9: samples.ttbar.generated: input should be greater than 0"),
        ("generated: genWeight", "generated: {tree: Runs}", "one of a number, sum and histogram is needed, not none"),
        (", generated: genWeight", "", "samples.ttbar: cross_section without generated: both are needed"),
        ("cross_section: 800, ", "", "samples.ttbar: generated without cross_section: both are needed"),
        ("role: background", "role: data", "samples.ttbar: cross_section: recorded data are not scaled"),
        ("luminosity: 36.3", "luminosity: -1", "a.yaml:5: luminosity: input should be greater than 0"),
        ("luminosity: 36.3", "", "luminosity is missing: higgs has a cross section"),
        ("luminosity: 36.3", "eras: {a: {luminosity: 3}, b: {}}", "eras.b: luminosity is missing: higgs has a cross"),
        ("luminosity: 36.3", "luminosity: 3\neras: {a: {luminosity: 3}}", "each era has its own; remove the one at"),
        ("files: higgs.root", "files: h.root, eras: {c: {}}", "samples.higgs.eras: no era c; there are: none"),
    ],
)
def test_bad_normalisations(old, new, message):
    assert old in NANO
    with pytest.raises(ConfigError, match=message):
        parse_analysis(NANO.replace(old, new), "a.yaml")


@pytest.mark.parametrize(
    ("generated", "message"),
    [
        ("{sum: genWeight * 0}", r"samples.ttbar: generated: the sum of genWeight \* 0 over 1 file is 0: a positive"),
        ("{histogram: cutfow}", "no histogram cutfow; did you mean cutflow"),
        ("{histogram: Events}", "Events is a TTree, not a histogram"),
        ("{histogram: cutflow, bin: 9}", "bin 9 of cutflow, which has 4"),
        ("genWeigt", "no branch genWeigt; did you mean genWeight"),
        ("{sum: n, tree: Rums}", "no tree Rums; there are: Events, Runs"),
    ],
)
def test_bad_generated_events(nano, generated, message):
    with pytest.raises(DataError, match=message):
        load(parse_analysis(NANO.replace("generated: genWeight", f"generated: {generated}")), nano)


ERAS = """\
features: [x]
weight: w
eras:
  "2016": {luminosity: 10}
  "2017": {luminosity: 30, weight: w * 2}
samples:
  higgs: {role: signal, files: "{era}/higgs.parquet", cross_section: 2, generated: 1000}
  ttbar: {role: background, files: "{era}/ttbar.parquet"}
  wjets: {role: background, eras: {"2017": {files: wjets.parquet}}}
systematics:
  scale: {kind: shape, up: {columns: {x: x * 1.1}}, down: {columns: {x: x * 0.9}}}
  trigger: {kind: weight, processes: [higgs, ttbar], correlated: false, up: nominal * 1.1, down: nominal * 0.9}
  lumi: {kind: norm, processes: "*", correlated: false, size: 0.02}
  late: {kind: norm, processes: ttbar, eras: "2017", size: 0.1}
folds: {columns: event, k: 2}
training: {systematics: [scale, trigger]}
"""


@pytest.fixture(scope="module")
def years(tmp_path_factory):
    folder = tmp_path_factory.mktemp("years")
    random = np.random.default_rng(1)
    for name, n in (("2016/higgs", 30), ("2017/higgs", 50), ("2016/ttbar", 40), ("2017/ttbar", 60), ("wjets", 20)):
        (folder / name).parent.mkdir(exist_ok=True)
        columns = {"x": random.normal(5, 1, n), "w": random.uniform(0.5, 1.5, n), "event": np.arange(n)}
        pa.parquet.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder


def test_eras_have_files_luminosities_weights_and_sources_of_their_own(years):
    data = load(parse_analysis(ERAS), years)
    assert [sample.name for sample in data.samples] == ["higgs", "ttbar", "wjets"]
    assert [sample.events.n_rows for sample in data.samples] == [80, 100, 20]
    raw = [pa.parquet.read_table(years / year / "higgs.parquet")["w"].to_numpy() for year in ("2016", "2017")]
    expected = np.concatenate([raw[0] * 1000 * 10 * 2 / 1000, 2 * raw[1] * 1000 * 30 * 2 / 1000])
    np.testing.assert_allclose(data.sample("higgs").events.weight, expected, rtol=1e-12)
    sources = [source.name for source in data.systematics]
    assert sources == ["scale", "trigger#2016", "lumi#2016", "trigger#2017", "lumi#2017", "late"]
    moved = data.varied("trigger#2016", "up")["ttbar"].weight / data.sample("ttbar").events.weight
    np.testing.assert_allclose(moved, np.repeat([1.1, 1.0], [40, 60]), rtol=1e-12)
    moved = data.varied("late", "up")["ttbar"].weight / data.sample("ttbar").events.weight
    np.testing.assert_allclose(moved, np.repeat([1.0, 1.1], [40, 60]), rtol=1e-12)
    assert data.systematic("lumi#2016").processes == ("higgs", "ttbar")
    assert data.systematic("lumi#2017").processes == ("higgs", "ttbar", "wjets")
    kept = data.with_systematics(["trigger", "scale"]).systematics
    assert [source.name for source in kept] == ["trigger#2016", "trigger#2017", "scale"]
    assert len(list_files(parse_analysis(ERAS), years)) == 5


def test_the_number_of_an_era_is_a_column(years):
    data = load(
        parse_analysis(ERAS.replace("features: [x]", "features: [x, era_number]\ncategorical: era_number")), years
    )
    assert data.sample("higgs").events.column("era_number").tolist() == [0] * 30 + [1] * 50


def test_halves_as_correlated_eras_are_the_whole(years):
    text = ERAS.replace("correlated: false, ", "").replace(', eras: "2017"', "").replace(", weight: w * 2", "")
    text = text.replace('  wjets: {role: background, eras: {"2017": {files: wjets.parquet}}}\n', "")
    text = text.replace(", cross_section: 2, generated: 1000", "")
    joined = load(parse_analysis(text), years)
    flat = text.replace("{era}", "201?").replace('eras:\n  "2016": {luminosity: 10}\n  "2017": {luminosity: 30}\n', "")
    whole = load(parse_analysis(flat), years)
    assert [s.name for s in joined.systematics] == [s.name for s in whole.systematics]
    for process in ("higgs", "ttbar"):
        np.testing.assert_array_equal(joined.sample(process).events.weight, whole.sample(process).events.weight)
        for source in whole.systematics:
            if process in source.processes:
                one, other = (data.varied(source.name, "up")[process] for data in (joined, whole))
                np.testing.assert_allclose(one.weight, other.weight, rtol=1e-12)
                np.testing.assert_array_equal(one.column("x"), other.column("x"))


def test_partitions_of_eras_are_the_whole(years):
    analysis = parse_analysis(ERAS)
    whole, parts = load(analysis, years), [part() for part in load_partitions(analysis, years, 3)]
    for sample in whole.samples:
        assert sum(part.sample(sample.name).events.n_rows for part in parts) == sample.events.n_rows


def test_inspect_finds_an_era_with_another_yield(years, tmp_path):
    random = np.random.default_rng(2)
    for name, n in (("2016/higgs", 200), ("2017/higgs", 600), ("2016/ttbar", 200), ("2017/ttbar", 600), ("wjets", 200)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        columns = {"x": random.normal(5, 1, n), "w": np.ones(n), "event": np.arange(n)}
        pa.parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    steady = ERAS.replace(", weight: w * 2", "").replace(", cross_section: 2, generated: 1000", "")
    table = {t.title: t for t in inspect_inputs(parse_analysis(steady), tmp_path).tables()}.get("To be checked")
    assert table is None or not any("fb⁻¹" in row[1] for row in table.rows)
    odd = inspect_inputs(parse_analysis(steady.replace("luminosity: 30", "luminosity: 30, weight: w * 2")), tmp_path)
    rows = next(t for t in odd.tables() if t.title == "To be checked").rows
    found = [text for where, text in rows if where == "ttbar" and "events per fb⁻¹" in text]
    assert len(found) == 1
    assert "20" in found[0]
    assert "40" in found[0]


def test_one_model_for_each_era(tmp_path):
    random = np.random.default_rng(3)
    centres = {"2016/higgs": 6, "2017/higgs": 6, "2016/ttbar": 5, "2017/ttbar": 5}
    for n, (name, centre) in enumerate(centres.items(), start=300):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        columns = {"x": random.normal(centre, 1, n), "w": np.ones(n), "event": np.arange(n)}
        pa.parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    text = ERAS.replace('  wjets: {role: background, eras: {"2017": {files: wjets.parquet}}}\n', "")
    training = "training: {by_era: true, method: paper, n_trees: 2, systematics: [scale, trigger]}\n"
    text = text.replace("training: {systematics: [scale, trigger]}\n", training + "fit: {bins: 3, scan: false}\n")
    analysis = parse_analysis(text)
    done = run_analysis(analysis, tmp_path, tmp_path / "run", figures=False)
    assert {path.name for path in (tmp_path / "run").glob("model*")} == {"model-era_2016.qbdt", "model-era_2017.qbdt"}
    assert list(done.result["fit"]["expected"]["regions"]) == ["signal_region_2016", "signal_region_2017"]
    assert run_analysis(analysis, tmp_path, tmp_path / "run").steps == ("scores: there already", "fit: there already")
    with pytest.raises(ConfigError, match=r"training\.by_era: one model for each era is trained by qbdt run"):
        load_for_training(analysis, tmp_path)
    with pytest.raises(ConfigError, match=r"training\.by_era: two eras are needed at least"):
        parse_analysis(text.replace('  "2017": {luminosity: 30, weight: w * 2}\n', "").replace(', eras: "2017"', ""))


def test_bad_eras():
    with pytest.raises(ConfigError, match=r"systematics.late.eras: no era 2018; there are: 2016, 2017"):
        parse_analysis(ERAS.replace('eras: "2017"', 'eras: "2018"'))
    with pytest.raises(ConfigError, match=r"eras.2016: luminosity is missing: higgs has a cross section"):
        parse_analysis(ERAS.replace("{luminosity: 10}", "{}"))
    with pytest.raises(ConfigError, match=r"samples.wjets: files is missing"):
        parse_analysis(ERAS.replace("{files: wjets.parquet}", "{}"))
