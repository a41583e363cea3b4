"""Regions of an analysis: events find theirs, control regions do not train, all are fitted together; blinding."""

import json
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.fit_folder import fit_scored
from qbdt.analysis.loader import load, load_partitions, load_regions
from qbdt.analysis.run import run_analysis
from qbdt.analysis.schema import Region
from qbdt.errors import ConfigError, DataError, FitError
from qbdt.inference.settings import FitSettings

ANALYSIS = """\
name: two signals
features: [x, y]
weight: w
samples:
  ggH: {role: signal, files: ggH.parquet}
  VBF: {role: signal, files: VBF.parquet}
  ttbar: {role: background, files: ttbar.parquet}
  wjets: {role: background, files: wjets.parquet}
  recorded: {role: data, files: recorded.parquet}
systematics:
  scale: {kind: shape, processes: [ttbar, ggH], up: {columns: {x: x + 0.1, mt: mt * 1.05}}}
  btag: {kind: weight, up: nominal * (1 + 0.1 * nb), down: nominal * (1 - 0.1 * nb), decorrelate: process}
  luminosity: {kind: norm, processes: "*", size: 0.02}
regions:
  signal: {selection: mt < 50 and nb == 0}
  w: {selection: mt > 70 and nb == 0, observable: mt, bins: 4, range: [70, 150], title: $m_T$, draw: [mt / 2, ratio]}
  tt: {selection: nb > 0, observable: yield}
folds: {columns: event}
variables: {ratio: {expression: mt / (1 + abs(x)), range: [0, 150], bins: 6}}
training: {method: paper, n_trees: 6, n_leaves: 4}
fit:
  {transform: none, binning: equal_background, bins: 5, scan: false, free: {k_w: wjets, k_tt: ttbar},
   parameters: {mu_ggH: ggH, mu_VBF: VBF}, groups: {tagging: [btag, scale]}}
"""

N = 2000


def make_columns(rng, centre, weight, w_like=False, tt_like=False, n=N):
    x = rng.normal(centre, 1, n)
    mt = rng.exponential(60 if w_like else 30, n)
    nb = (rng.random(n) < (0.6 if tt_like else 0.05)).astype(int)
    return {"x": x, "y": rng.normal(-centre, 1, n), "mt": mt, "nb": nb, "w": np.full(n, weight), "event": np.arange(n)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("regions"), np.random.default_rng(3)
    tables = {
        "ggH": make_columns(rng, 0.8, 0.07),
        "VBF": make_columns(rng, 1.6, 0.03),
        "ttbar": make_columns(rng, -0.5, 0.9, tt_like=True),
        "wjets": make_columns(rng, -0.3, 1.1, w_like=True),
    }
    chosen = {name: rng.random(N) < table["w"][0] / 2 for name, table in tables.items()}  # each event counts twice
    recorded = {c: np.repeat(np.concatenate([t[c][chosen[n]] for n, t in tables.items()]), 2) for c in tables["ggH"]}
    recorded["event"] = np.arange(len(recorded["event"]))
    for name, table in {**tables, "recorded": recorded}.items():
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def analysis():
    return parse_analysis(ANALYSIS, "regions.yaml")


@pytest.fixture(scope="module")
def blind(files, analysis, tmp_path_factory):
    return run_analysis(analysis, files, tmp_path_factory.mktemp("runs") / "run", figures=False)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_events_find_their_regions(files, analysis):
    events = load_regions(analysis, files)
    raw = {name: pq.read_table(files / f"{name}.parquet").to_pydict() for name in ("ttbar", "wjets")}
    mt, nb = (np.array(raw["ttbar"][name]) for name in ("mt", "nb"))
    assert events.features == ("x", "y")
    assert events.observe("w").features == ("observable w",)
    assert events.observe("w").sample("ttbar").events.n_rows == np.sum((mt > 70) & (nb == 0))
    assert events.observe("w").varied("scale", "up")["ttbar"].n_rows == np.sum((mt * 1.05 > 70) & (nb == 0))
    assert events.observe("tt").sample("ttbar").events.total == pytest.approx(0.9 * np.sum(nb > 0))
    tagged = events.observe("tt").varied("btag", "up")["wjets"].total
    assert tagged == pytest.approx(1.1 * events.observe("tt").sample("wjets").events.total)
    training = load(analysis, files)
    assert training.features == ("x", "y")
    assert training.sample("ttbar").events.n_rows == np.sum((mt < 50) & (nb == 0))
    everything = load(analysis, files, to_train=False).sample("ttbar").events.n_rows
    assert everything == np.sum((mt < 50) | (mt > 70) | (nb > 0))


def test_partitions_know_regions(files, analysis):
    whole = load_regions(analysis, files)
    parts = [part.read() for part in load_partitions(analysis, files, 3)]
    for name in analysis.regions:
        found = sum(part.observe(name).sample("wjets").events.n_rows for part in parts)
        assert found == whole.observe(name).sample("wjets").events.n_rows


def test_templates_of_partitions_add_up(blind):
    from qbdt.analysis import partitioned_run
    from qbdt.inference.templates import ScoreBins, fill

    scored = blind.folder / "scored"
    plan = read_analysis(scored / "scored.yaml")
    parts = [part.read() for part in load_partitions(plan, scored, 3)]
    bins = ScoreBins.of([70, 100, 150])
    first, *others = (partitioned_run._fill(i, part, "w", None, None, bins, "mt") for i, part in enumerate(parts))
    for other in others:
        first += other
    whole = fill(load_regions(plan, scored).observe("w"), bins, "mt")
    assert first.background == pytest.approx(whole.background)
    assert first.data == pytest.approx(whole.data)
    counts = [partitioned_run._count_regions(0, part) for part in parts]
    assert sum((shared for shared, _ in counts), start=Counter()) == {}
    everything = load_regions(plan, scored).count_backgrounds()
    assert sum((filled for _, filled in counts), start=Counter()) == everything
    rows = [part.simulated().sample("ttbar").events.n_rows for part in parts]
    chosen = [partitioned_run._select_one_in(0, part, 2, ("event",)).sample("ttbar").events.n_rows for part in parts]
    assert 0 < sum(chosen) < sum(rows)


def test_bundled_datasets_have_regions_over_their_features():
    text = "dataset: {name: inferno, options: {n: 300}}\nregions: {a: {selection: x0 > 2}, b: {selection: x0 <= 2, %s}}"
    events = load_regions(parse_analysis(text % "observable: x1 * 2, bins: 3, range: [0, 9]"))
    assert events.features == ("x0", "x1", "x2")
    value = events.observe("b").samples[0].events.column("observable b")
    assert value == pytest.approx(2 * events.select("b").samples[0].events.column("x1"))
    with pytest.raises(DataError, match="no feature mass; there are: x0, x1, x2"):
        load_regions(parse_analysis(text % "observable: mass, bins: 3, range: [0, 9]"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "nb > 0, obs",
            "nb >= 0, obs",
            r"would count twice: \d+ in signal and tt, \d+ in w and tt",
        ),
        ("nb > 0, obs", "nbs > 0, obs", "no branch nbs"),
    ],
)
def test_events_of_two_regions_are_refused(files, old, new, message):
    with pytest.raises(DataError, match=message):
        load(parse_analysis(ANALYSIS.replace(old, new)), files)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bins: 4, range: [70, 150]", "bins: 4", "regions.w: observable mt: bins and range are needed, or edges"),
        ("bins: 4, range: [70, 150]", "edges: [1, 1]", "regions.w: edges [1.0, 1.0]: at least two ascending numbers"),
        ("bins: 4, range: [70, 150]", "bins: 4, range: [150, 70]", "range [150.0, 70.0]: at least two ascending"),
        ("bins: 4, range: [70, 150]", "bins: 4, edges: [1, 2]", "edges and bins: one of them"),
        ("observable: yield", "observable: yield, bins: 3", "regions.tt: bins: the yield has one bin"),
        ("nb == 0}", "nb == 0, range: [0, 1]}", "regions.signal: range: is for a column or expression"),
        ("observable: yield", "observable: 1 +", "regions.tt.observable"),
        ("  tt: {sel", "  t-t: {sel", "regions: 't-t': a word of up to 100 letters, digits and underscores is needed"),
        ("observable: yield", "obserbable: yield", "regions.tt.obserbable: unknown key; did you mean observable?"),
        ("draw: [mt / 2,", "draw: [mt /,", "regions.w.draw.0: 'mt /': invalid syntax"),
        ("decorrelate: process", "decorrelate: channel", "input should be 'region' or 'process', not 'channel'"),
        ("{k_w: wjets", "{k_w: []", "fit.free"),
    ],
)
def test_faults_of_the_file_end_in_one_message(old, new, message):
    assert old in ANALYSIS
    with pytest.raises(ConfigError) as error:
        parse_analysis(ANALYSIS.replace(old, new), "a.yaml")
    assert message in str(error.value)
    assert str(error.value).startswith("a.yaml:")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "mt > 70 and nb == 0, obs",
            "mt > 7000, obs",
            r"regions.w: no background event passes its selection: mt > 7000",
        ),
        (
            "mt < 50 and nb == 0",
            "mt < 50 and nb == 0 and w > 0.05",
            r"regions.signal: sample VBF has no events; is the selection",
        ),
        ("mt / 2,", "mtt / 2,", "no branch mtt"),
    ],
)
@pytest.mark.parametrize("probed", [100, 10_000])
def test_an_empty_region_and_a_missing_column_are_refused_before_training(
    files, tmp_path, monkeypatch, old, new, message, probed
):
    assert old in ANALYSIS
    monkeypatch.setattr("qbdt.analysis.resources.probe.PROBED_ROWS", probed)
    said: list[str] = []
    with pytest.raises(DataError, match=message):
        run_analysis(parse_analysis(ANALYSIS.replace(old, new)), files, tmp_path / "run", say=said.append)
    assert not (tmp_path / "run" / "model.qbdt").exists()
    known = probed > N and new != "mtt / 2,"  # all events were seen by the probe: nothing is said before
    assert said == [] if known else said[0].startswith("training takes about")


def test_a_run_needs_a_region_that_trains(files, tmp_path):
    text = ANALYSIS.replace("nb == 0}", "nb == 0, train: false}")
    with pytest.raises(DataError, match="regions: none has train: true"):
        run_analysis(parse_analysis(text), files, tmp_path / "run")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mu_VBF: VBF}", "mu_VBF: ZH}", "mu_VBF: ZH is no signal process"),
        ("k_tt: ttbar", "k_tt: ggH", "k_tt: ggH is no background process"),
        ("tagging: [btag", "tagging: [b_tag", "tagging: no source b_tag"),
    ],
)
def test_parameters_are_checked(files, blind, old, new, message):
    scored = blind.folder / "scored"
    plan = read_analysis(scored / "scored.yaml")
    other = parse_analysis(ANALYSIS.replace(old, new))
    with pytest.raises(FitError, match=re.escape(message)):
        fit_scored(plan.model_copy(update={"fit": other.fit}), scored)


def test_a_region_may_have_a_model_of_its_own(files, tmp_path):
    from qbdt.analysis.run_folder import read_run
    from qbdt.models import read_cross_trained

    own = "  high: {selection: 50 <= mt < 70 and nb == 0, model: high, bins: 2}\n  w: {"
    analysis = parse_analysis(ANALYSIS.replace("  w: {", own))
    done = run_analysis(analysis, files, tmp_path / "run", figures=False)
    assert [step for step in done.steps if "train" in step] == [
        *("train fold0", "train fold1", "high: train fold0", "high: train fold1"),
    ]
    events = load_regions(analysis, files)
    scored = load_regions(read_analysis(tmp_path / "run" / "scored" / "scored.yaml"), tmp_path / "run" / "scored")
    for region, file in (("signal", "model.qbdt"), ("high", "model-high.qbdt"), ("w", "model.qbdt")):
        model = read_cross_trained(tmp_path / "run" / file)[0].ensemble
        wanted = model.score(events.select(region).sample("ttbar").events)
        assert scored.select(region).sample("ttbar").events.column("score") == pytest.approx(wanted, rel=1e-6)
    assert list(read_run(tmp_path / "run").models) == ["", "high"]
    with pytest.raises(DataError, match="regions: no region with model: low has train: true"):
        events.of_training_regions("low")


def test_bins_of_a_region():
    fit = FitSettings(bins=7, binning="equal_signal")
    assert Region().fit_settings(fit) == fit
    assert Region(bins=3).fit_settings(fit).bins == 3
    assert Region(edges=[0, 1, 3]).fit_settings(fit).edges == [0, 1, 3]
    assert Region(observable="m", bins=2, range=(0, 4)).fit_settings(fit).edges == [0, 2, 4]
    assert Region(observable="yield").fit_settings(fit).edges == [-0.5, 0.5]
    assert [Region().trains, Region(observable="yield").trains, Region(train=False).trains] == [True, False, False]


def test_regions_are_fitted_together(files, blind):
    found = read(blind.folder / "fit" / "measurement.json")
    assert list(found["regions"]) == ["signal", "w", "tt"]
    assert found["strengths"] == {"mu_ggH": ["ggH"], "mu_VBF": ["VBF"]}
    w = found["regions"]["w"]
    assert (w["edges"], w["variable"]) == ([70, 90, 110, 130, 150], "$m_T$")
    raw = pq.read_table(files / "wjets.parquet").to_pydict()
    mt = np.array(raw["mt"])[(np.array(raw["mt"]) > 70) & (np.array(raw["nb"]) == 0)]
    by_hand = 1.1 * np.histogram(np.clip(mt, 70, 149), [70, 90, 110, 130, 150])[0]
    (nominal,) = (p["nominal"] for p in w["processes"] if p["name"] == "wjets")
    assert nominal == pytest.approx(by_hand.tolist())
    assert {"btag_ttbar", "btag_wjets", "luminosity", "scale"} <= set(found["regions"]["tt"]["sources"])
    fit = read(blind.folder / "result.json")["fit"]
    assert fit["expected"]["parameters"]["k_w"]["error"] < 0.1
    assert set(fit["expected"]["strengths"]) == {"mu_ggH", "mu_VBF"}
    assert found["groups"]["tagging"] == ["btag_ggH", "btag_VBF", "btag_ttbar", "btag_wjets", "scale"]
    assert fit["expected"]["breakdown"]["tagging"] > 0
    assert fit["settings"]["regions"]["w"]["chosen_edges"] == [[70, 90, 110, 130, 150]]


def test_what_is_predicted_for_the_fitted_bins_is_the_fit(blind):
    from qbdt.inference import FitSummary, Measurement
    from qbdt.inference.answers import predict

    fitted = FitSummary.from_dict(blind.result["fit"]["expected"])
    measurement = Measurement.from_dict(read(blind.folder / "fit" / "measurement.json"))
    found = predict(measurement, fitted)
    for process, events in fitted.postfit.items():
        assert found.postfit[process] == pytest.approx(events, rel=1e-6)
    assert found.prefit_error == pytest.approx(fitted.prefit_error, rel=1e-6)
    # MC statistics of new bins are not constrained by the data of the fitted ones
    assert np.all(found.postfit_error > 0.99 * fitted.postfit_error)


def test_scored_events_give_the_same_fit_again(blind, analysis, files):
    again = fit_scored(read_analysis(blind.folder / "scored" / "scored.yaml"), blind.folder / "scored")
    wanted = blind.result["fit"]["expected"]
    for process, events in again.expected.postfit.items():
        assert events == pytest.approx(wanted["postfit"][process], rel=1e-7)
    assert again.expected.sigma_mu == pytest.approx(wanted["sigma_mu"], rel=1e-7)
    assert run_analysis(analysis, files, blind.folder).steps == ("scores: there already", "fit: there already")
    wider = analysis.model_copy(
        update={
            "regions": {
                **analysis.regions,
                "w": Region(observable="mt", selection="mt > 70 and nb == 0", edges=[70, 150]),
            }
        }
    )
    steps = run_analysis(wider, files, blind.folder, figures=False).steps
    assert steps == ("scores: there already", blind.steps[-1])
    assert run_analysis(analysis, files, blind.folder, figures=False).steps == steps


def find_words(summary):
    """Write the results of a fit in every way in which they are shown: in full, and rounded."""
    numbers = [p[key] for p in summary["parameters"].values() for key in ("value", "error")]
    words = {repr(number) for number in [*numbers, summary["twice_nll"]]}
    for one in summary["strengths"].values():
        words |= {f"{one[key]:.{digits}f}" for key in ("mu", "sigma_mu", "z") if one[key] for digits in (3, 4)}
    return words


def collect_text(folder, document):
    """Everything that a run wrote or shows, as text: names of files, files, page and the numbers behind its figures."""
    from qbdt.report.page import render_markdown

    found = {"names": "\n".join(str(path) for path in folder.rglob("*"))}
    for path in folder.rglob("*"):
        if path.suffix in (".json", ".yaml", ".xml", ".txt", ".qbdt", ".csv", ".md", ".html"):
            found[str(path.relative_to(folder))] = path.read_text(encoding="utf-8")
    found["page"] = render_markdown(document)
    found |= {figure.name: figure.csv() for figure in document.figures()}
    # pytest numbers its folders: "pytest-424" is not a count either.
    return {name: text.replace(str(folder.parent), "") for name, text in found.items()}


def test_recorded_data_are_hidden_until_they_are_asked_for(blind, analysis, files, tmp_path, capsys):
    import shutil

    from qbdt.analysis.run_page import run_document

    copy = tmp_path / "run"
    shutil.copytree(blind.folder, copy, ignore=shutil.ignore_patterns("fit-*"))
    said: list[str] = []
    again = run_analysis(analysis, files, copy, unblind=True, figures=False, say=said.append)
    assert again.steps == ("scores: there already", "fit")  # nothing is trained again
    assert blind.steps[-1] == "fit, blind: recorded data take no part until --unblind"
    observed = again.result["fit"]["observed"]
    assert "shown" not in again.result["fit"]
    shown = blind.result["fit"]["shown"]
    recorded = {n: one["data"] for n, one in read(copy / "fit" / "measurement.json")["regions"].items()}
    hidden = [n for n, s in zip(recorded["signal"], shown["signal"], strict=True) if s is None]
    assert len(hidden) >= 2
    assert (shown["w"], shown["tt"]) == (recorded["w"], recorded["tt"])  # control regions are open
    words = find_words(observed) - find_words(blind.result["fit"]["expected"])
    words |= {f"{count:.0f}" for count in (*hidden, sum(recorded["signal"]))}
    document = run_document(blind.folder)
    assert document.subtitle.startswith("Blind: ")
    drawn = {figure.name: figure for figure in document.figures()}
    assert {f"region-w-{name}-{when}" for name in ("mt___2", "ratio") for when in ("before", "after")} <= set(drawn)
    yields = {name: drawn[f"region-w-{name}-after"].data for name in ("mt___2", "ratio")}
    for process in ("ttbar", "wjets"):
        assert sum(yields["ratio"][process]) == pytest.approx(sum(yields["mt___2"][process]), rel=1e-6)
    assert min(yields["ratio"]["error"]) > 0
    assert run_document(copy).subtitle.startswith("Unblinded: ")
    text = {**collect_text(blind.folder, document), "terminal": "\n\n".join(map(str, blind.tables))}
    assert "the variation does nothing" not in text["page"]  # btag acts where no model is trained
    # Whole numbers only: "424" inside a checksum such as "a424f" is not a count.
    pattern = re.compile(r"(?<![\w.])(?:" + "|".join(map(re.escape, sorted(words))) + r")(?!\w)")
    leaks = {name: found.group() for name, content in text.items() if (found := pattern.search(content))}
    assert leaks == {}
    assert any(pattern.search(content) for content in collect_text(copy, run_document(copy)).values())
