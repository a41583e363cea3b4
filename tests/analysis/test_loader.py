"""From an analysis file to a dataset: sources find their processes, variations their files, trees and branches."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import uproot

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.examples import example_text
from qbdt.analysis.input_files import list_files
from qbdt.analysis.loader import load, load_partitions, load_regions
from qbdt.analysis.scored_files import write_scored
from qbdt.errors import ConfigError, DataError, ExpressionError

N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ntuples")
    random = np.random.default_rng(1)
    for process, n in (("higgs", N), ("ttbar", N + 3), ("wjets", N + 5)):
        pt = random.exponential(40, n) + 10
        columns = {"pt": pt, "pt_up": pt * 1.1, "w": np.full(n, 0.5), "sf": np.full(n, 0.9), "event": np.arange(n)}
        pa.parquet.write_table(pa.table(columns), folder / f"{process}.parquet")
        shifted = {**columns, "pt": pt[:-2] * 0.9, **{k: columns[k][:-2] for k in ("pt_up", "w", "sf", "event")}}
        pa.parquet.write_table(pa.table(shifted), folder / f"{process}_down.parquet")
    with uproot.recreate(folder / "data.root") as file:
        for tree in ("nominal", "shifted"):
            file.mktree(tree, {"pt": "float64", "event": "int64"})
            file[tree].extend({"pt": np.arange(20.0) + 15, "event": np.arange(20)})
    return folder


ANALYSIS = """\
features: [pt, x]
columns: {x: "log(pt)"}
weight: w
selection: pt > 15
samples:
  higgs: {role: signal, files: higgs.parquet, scale: 2}
  ttbar: {role: background, files: ttbar.parquet}
  wjets: {role: background, files: wjets.parquet, selection: pt < 100}
systematics:
  files: {kind: shape, processes: "tt*", up: {columns: {pt: pt_up}}, down: {files: "{process}_down.parquet"}}
  sf: {kind: weight, processes: [higgs, ttbar], up: nominal / sf, down: nominal * sf}
  full: {kind: weight, up: w * 3}
  xs: {kind: norm, processes: "*jets", size: 0.1}
folds: {columns: event, k: 2}
"""


def loaded(folder, old="", new=""):
    assert old in ANALYSIS
    return load(parse_analysis(ANALYSIS.replace(old, new, 1), "a.yaml"), folder)


def test_everything_finds_its_place(folder):
    data = loaded(folder)
    assert data.features == ("pt", "x")
    raw = pa.parquet.read_table(folder / "ttbar.parquet")["pt"].to_numpy()
    kept = raw > 15
    assert data.sample("ttbar").events.n_rows == kept.sum()
    assert data.sample("higgs").events.weight[0] == 1.0
    assert (data.sample("wjets").events.column("pt") < 100).all()
    assert data.systematic("files").processes == ("ttbar",)
    assert data.systematic("full").processes == ("higgs", "ttbar", "wjets")
    up = data.varied("files", "up")["ttbar"]
    assert up.n_rows == (raw * 1.1 > 15).sum()
    np.testing.assert_allclose(up.column("x"), np.log(up.column("pt")), rtol=1e-15)
    assert data.varied("files", "down")["ttbar"].n_rows == (raw[:-2] * 0.9 > 15).sum()
    np.testing.assert_allclose(data.varied("sf", "up")["higgs"].weight, 1 / 0.9, rtol=1e-15)
    np.testing.assert_allclose(data.varied("full", "up")["higgs"].weight, 3.0, rtol=1e-15)


def changes(data, source):
    """Relative changes down and up of the yield of each process."""
    found = data.systematic(source)
    return {
        p: tuple(found.down[p].relative_size if d == "down" else found.up[p].relative_size for d in ("down", "up"))
        for p in found.processes
    }


def test_sizes_of_normalisations(folder):
    old = 'xs: {kind: norm, processes: "*jets", size: 0.1}'
    data = loaded(folder, old, 'xs: {kind: norm, size: {"*": 0.02, ttbar: [-0.3, 0.6], wjets: 1}}')
    assert changes(data, "xs") == {"higgs": (-0.02, 0.02), "ttbar": (-0.3, 0.6), "wjets": (-0.5, 1.0)}
    data = loaded(folder, old, 'xs: {kind: norm, processes: "*", size: 0.25, lognormal: true}')
    assert changes(data, "xs") == dict.fromkeys(("higgs", "ttbar", "wjets"), (pytest.approx(-0.2), 0.25))
    with pytest.raises(DataError, match=r"systematics.xs: ttbar has two sizes, of 't\*' and '\*bar': give it one"):
        loaded(folder, old, 'xs: {kind: norm, size: {"t*": 0.02, "*bar": 0.1}}')


def test_a_shape_on_one_process_and_a_norm_on_another(folder):
    old = 'down: {files: "{process}_down.parquet"}}'
    data = loaded(folder, old, old[:-1] + ", norm: {wjets: [-0.1, 0.2], higgs: 0.05}}")
    source = data.systematic("files")
    assert set(source.processes) == {"ttbar", "wjets", "higgs"}
    assert [source.replaces_events(process) for process in ("ttbar", "wjets")] == [True, False]
    assert (source.up["wjets"].relative_size, source.down["wjets"].relative_size) == (0.2, -0.1)
    weighted = loaded(folder, "full: {kind: weight, up: w * 3", "full: {kind: weight, up: w * 3, norm: {ttbar: 0.1}")
    full = weighted.systematic("full")
    assert (full.two_sided, full.up["ttbar"].relative_size, full.up["higgs"].relative_size) == (False, 0.1, None)


def test_sizes_come_back_from_scored_events(folder, tmp_path):
    text = ANALYSIS.replace('norm, processes: "*jets", size: 0.1', "norm, size: {wjets: [-0.3, 0.6], ttbar: 0.1}")
    analysis = parse_analysis(text.replace("down: nominal * sf", "down: nominal * sf, norm: {wjets: 0.2}"), "a.yaml")
    events = load_regions(analysis, folder).transform(lambda each: {"score": each.column("x")})
    again = load(read_analysis(write_scored(events, tmp_path / "scored", analysis)), tmp_path / "scored")
    assert changes(again, "xs") == {"wjets": (-0.3, 0.6), "ttbar": (-0.1, 0.1)}
    source = again.systematic("sf")
    assert source.up["wjets"].relative_size == 0.2
    np.testing.assert_array_equal(source.up["ttbar"].apply(again.sample("ttbar").events).weight, 0.5 / 0.9)


@pytest.mark.parametrize("count", [1, 4])
def test_parts_together_are_the_whole(folder, count):
    analysis = parse_analysis(ANALYSIS, "analysis.yaml")
    whole = load(analysis, folder)
    parts = [part() for part in load_partitions(analysis, folder, count)]
    for name in ("higgs", "ttbar", "wjets"):
        assert np.array_equal(
            np.concatenate([part.sample(name).events.column("x") for part in parts]),
            whole.sample(name).events.column("x"),
        )
    for source, direction in (("files", "down"), ("sf", "up")):
        found = np.concatenate([part.varied(source, direction)["ttbar"].weight for part in parts])
        assert np.array_equal(found, whole.varied(source, direction)["ttbar"].weight)
    assert parts[0].folds == whole.folds


def test_at_least_one_part(folder):
    with pytest.raises(DataError, match="0 partitions"):
        load_partitions(parse_analysis(ANALYSIS, "analysis.yaml"), folder, 0)


def test_shifted_copies_stay_in_the_fold_of_their_event(folder):
    data = loaded(folder)
    for number in (0, 1):
        part = data.fold(number)
        for events in (part.sample("ttbar").events, *(part.varied("files", d)["ttbar"] for d in ("up", "down"))):
            assert (events.identifier("event") % 2 == number).all()


def test_variations_act_beneath_derived_columns_and_on_the_nominal_weight(folder):
    text = ANALYSIS.replace('x: "log(pt)"', 'x: "log(pt)", pt: "pt / 1000"').replace("pt > 15", "pt > 0.015")
    text = text.replace("pt < 100", "pt < 0.1").replace(
        "up: {columns: {pt: pt_up}}", "up: {columns: {pt: pt * 1.1}, weight: nominal * 2}"
    )
    data = load(parse_analysis(text, "a.yaml"), folder)
    up, nominal = data.varied("files", "up")["ttbar"], data.sample("ttbar").events
    assert up.column("pt").min() > 0.015
    assert up.column("pt").max() == pytest.approx(1.1 * nominal.column("pt").max())
    assert up.weight[0] == 2 * nominal.weight[0]


def test_folds_must_be_full_and_readable_in_variations(folder):
    with pytest.raises(DataError, match="fold 2 has no signal events"):
        load(
            parse_analysis(
                ANALYSIS.replace("by: ", "")
                .replace("columns: event, k: 2", "by: split, columns: two, k: 4")
                .replace("columns: {", 'columns: {two: "event % 2", ', 1),
                "a.yaml",
            ),
            folder,
        )


def test_recorded_data_and_other_trees(folder):
    text = ANALYSIS.replace(
        "folds:", "  tree_source: {kind: shape, processes: ttbar, up: {files: data.root, tree: shifted}}\nfolds:"
    )
    text = text.replace("samples:", "samples:\n  data: {role: data, files: data.root, tree: nominal}")
    text = text.replace("  tree_source: {", "  tree_source: {").replace("tree: shifted}", "tree: shifted, weight: 7}")
    data = load(parse_analysis(text, "a.yaml"), folder)
    assert data.sample("data").events.total == 19
    assert data.varied("tree_source", "up")["ttbar"].total == 19 * 7
    assert "data" not in data.systematic("full").processes


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("higgs.parquet", "hixx.parquet", DataError, r"hixx\.parquet: no such file"),
        (
            "features: [pt, x]",
            "features: [pz]",
            DataError,
            r"higgs\.parquet: no branch pz; there are: pt, pt_up, w, sf, event",
        ),
        ("pt: pt_up", "pt: pt_uq", DataError, r"ttbar\.parquet: no branch pt_uq, which the column pt needs"),
        ('x: "log(pt)"', 'x: "log(qq)"', DataError, "no branch qq, which the column x needs"),
        ("selection: pt > 15", "selection: pt", ExpressionError, "is not a selection"),
        (
            "selection: pt > 15",
            "selection: pt > 1e9",
            DataError,
            "sample higgs has no events; is the selection too tight",
        ),
        ("weight: w", "weight: 0 * w", DataError, "sample higgs: all .* weights are zero"),
        ("weight: w", "weight: w / 0", DataError, "weight is inf in row"),
        ('x: "log(pt)"', 'x: "log(pt - 20)"', DataError, "feature x is NaN in row"),
        ("role: signal", "role: background", DataError, "no signal sample"),
        ('processes: "*jets"', "processes: zjets", DataError, "systematics.xs: 'zjets' matches no simulated process"),
        ("columns: event,", "columns: evt,", DataError, "no branch evt; did you mean event"),
        ("{process}_down.parquet", "{process}_up.parquet", DataError, r"ttbar_up\.parquet: no such file"),
        (
            "up: {columns: {pt: pt_up}}",
            "up: {columns: {pTT: pt_up}}",
            DataError,
            "files.up.columns: no feature, .* uses pTT",
        ),
        ("up: {columns: {pt: pt_up}}", "up: {columns: {pt: pt_up, event: w}}", DataError, "event divides the folds"),
        (
            'processes: "tt*", up: {columns',
            'processes: "*t*", up: {files: ttbar.parquet, columns',
            DataError,
            "the same files",
        ),
        ("files: ttbar.parquet", 'files: [ttbar.parquet, "ttbar.p*"]', DataError, "ttbar.parquet is named twice"),
        ("files: ttbar.parquet", "files: ''", DataError, "no such file"),
        ("files: ttbar.parquet", "files: /dev/null", DataError, "/dev/null: neither a file nor a folder"),
        ("up: w * 3", "up: w * 0", DataError, "systematic full, up variation of higgs: all .* weights are zero"),
    ],
)
def test_faults(folder, old, new, error, message):
    with pytest.raises(error, match=message):
        loaded(folder, old, new)


@pytest.mark.parametrize("files", ["[ttbar.parquet, link.parquet]", "'**/ttbar.parquet'"])
def test_a_file_is_read_once_whatever_links_lead_to_it(folder, tmp_path, files):
    events = shutil.copytree(folder, tmp_path / "events")
    (events / "link.parquet").symlink_to("ttbar.parquet")
    (events / "again").symlink_to(".")
    with pytest.raises(DataError, match=r"ttbar\.parquet are one file: its events would count twice"):
        loaded(events, "files: ttbar.parquet", f"files: {files}")


def test_a_feature_absent_in_one_variation(folder, tmp_path):
    pa.parquet.write_table(pa.table({"pu": [20.0], "w": [1.0], "event": [1]}), tmp_path / "ttbar_down.parquet")
    with pytest.raises(DataError, match=r"ttbar_down\.parquet: no branch pt"):
        loaded(folder, '"{process}_down.parquet"', f'"{tmp_path}/{{process}}_down.parquet"')


def test_datasets_that_come_with_qbdt():
    data = load(parse_analysis(example_text("synthetic")))
    assert data.total("signal") == pytest.approx(50)
    with pytest.raises(ConfigError, match=r"no dataset 'infern' comes with qbdt; there are: .*inferno"):
        load(parse_analysis("dataset: {name: infern}"))
    with pytest.raises(ConfigError, match="inferno has no option m; there are: n, seed"):
        load(parse_analysis("dataset: {name: inferno, options: {m: 3}}"))


def test_the_papers_files(paper_files):
    data = load(parse_analysis(example_text("tautaugamma")), paper_files)
    assert data.total("signal") == pytest.approx(87.2, abs=0.05)
    assert data.total("background") == pytest.approx(20496, abs=0.5)
    changes = {row.name: row.up for row in data.summary().sources}
    for name, percent in {"tes": -2.90, "tauid": 5.00, "phoid": 1.91}.items():
        assert 100 * changes[name] == pytest.approx(percent, abs=0.005)
    for number in (0, 1):
        part = data.fold(number)
        everything = [s.events for s in part.samples] + [part.varied(s.name, "up")["atata"] for s in part.systematics]
        assert all((events.identifier("event_number") % 2 == number).all() for events in everything)


WITHOUT_NUMBER = """\
features: [pt]
columns: {rounded: floor(pt)}
weight: w
selection: pt > 15
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  columns: {kind: shape, up: {columns: {pt: pt_up}}}
folds: {by: content, columns: [event, sf], k: 2}
"""


def test_folds_by_the_content_of_columns_that_no_source_moves(folder):
    data = load(parse_analysis(WITHOUT_NUMBER), folder)
    assert data.folds is not None
    assert data.folds.to_dict() == {"by": "hash", "columns": ["bits(event)", "bits(sf)"], "k": 2, "salt": 0}
    kept = pa.parquet.read_table(folder / "ttbar.parquet")["event"].to_numpy().astype(float)
    nominal, up = data.sample("ttbar").events, data.varied("columns", "up")["ttbar"]
    assert set(up.identifier("bits(event)").view(np.float64)) <= set(kept)
    fold = dict(zip(nominal.identifier("bits(event)"), data.folds.assign(nominal), strict=True))
    assert all(fold.get(i, f) == f for i, f in zip(up.identifier("bits(event)"), data.folds.assign(up), strict=True))


def test_folds_by_position_where_variations_have_the_same_rows(folder, tmp_path):
    text = WITHOUT_NUMBER.replace("by: content, columns: [event, sf]", "by: position, columns: event")
    data = load(parse_analysis(text), folder)
    raw = pa.parquet.read_table(folder / "ttbar.parquet")["pt"].to_numpy()
    np.testing.assert_array_equal(data.sample("ttbar").events.identifier("position(row)"), np.flatnonzero(raw > 15))
    np.testing.assert_array_equal(
        data.varied("columns", "up")["ttbar"].identifier("position(row)"), np.flatnonzero(raw * 1.1 > 15)
    )
    parts = [part() for part in load_partitions(parse_analysis(text), folder, 3)]
    rows = np.concatenate([part.sample("ttbar").events.identifier("position(row)") for part in parts])
    np.testing.assert_array_equal(rows, np.flatnonzero(raw > 15))


def test_what_divides_folds_must_not_be_varied(folder):
    by = "by: content, columns: [event, sf]"
    with pytest.raises(DataError, match=r"columns: pt divides the folds and must not be varied$"):
        load(parse_analysis(WITHOUT_NUMBER.replace(by, "by: content, columns: pt")), folder)
    with pytest.raises(DataError, match="columns: rounded divides the folds and must not be varied through pt"):
        load(parse_analysis(WITHOUT_NUMBER.replace(by, "columns: rounded")), folder)
    other = WITHOUT_NUMBER.replace("{columns: {pt: pt_up}}", '{files: "{process}_down.parquet"}')
    with pytest.raises(DataError, match=r"higgs_down.parquet has 58 rows, .*higgs.parquet has 60: folds by position"):
        load(parse_analysis(other.replace(by, "by: position")), folder)
    for process in ("higgs", "ttbar"):
        table = pa.parquet.read_table(folder / f"{process}.parquet")
        pa.parquet.write_table(table.take(np.arange(table.num_rows)[::-1]), folder / f"swapped_{process}.parquet")
    swapped = parse_analysis(
        other.replace("{process}_down", "swapped_{process}").replace(by, "by: position, columns: pt"),
    )
    with pytest.raises(DataError, match=r"pt differs between .*higgs.parquet and .*, first in row 0"):
        load(swapped, folder)
    with pytest.raises(ConfigError, match="columns is missing: by: hash needs to know which"):
        parse_analysis(WITHOUT_NUMBER.replace(by, "by: hash"))


FRIENDS = """\
features: [pt, score]
weight: w
friends:
  - {files: "friends/{file}.root", tree: Scores, by: event}
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  shifted: {kind: shape, processes: ttbar, up: {files: ttbar_down.parquet}}
folds: {columns: event, k: 2}
"""


def test_friends_of_nominal_and_varied_files(folder):
    (folder / "friends").mkdir(exist_ok=True)
    for name in ("higgs", "ttbar", "ttbar_down"):
        table = pa.parquet.read_table(folder / f"{name}.parquet")
        with uproot.recreate(folder / "friends" / f"{name}.root") as file:
            file["Scores"] = {"event": table["event"].to_numpy()[::-1], "score": table["pt"].to_numpy()[::-1] / 7}
    data = load(parse_analysis(FRIENDS), folder)
    for events in (data.sample("ttbar").events, data.varied("shifted", "up")["ttbar"]):
        np.testing.assert_allclose(events.column("score"), events.column("pt") / 7)
    assert any("friends" in path for path, *_ in list_files(parse_analysis(FRIENDS), folder))
    with pytest.raises(DataError, match=r"friend/higgs.root: no such file"):
        load(parse_analysis(FRIENDS.replace("friends/{file}", "friend/{file}")), folder)
    with pytest.raises(DataError, match=r"no tree Score; .*it is a friend: a sample that has none says `friends: ..`"):
        load(parse_analysis(FRIENDS.replace("tree: Scores", "tree: Score")), folder)
    with pytest.raises(ConfigError, match="a friend needs files, tree or both"):
        parse_analysis(FRIENDS.replace('files: "friends/{file}.root", tree: Scores, ', ""))
