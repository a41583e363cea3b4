"""A whole run: everything is written, nothing is redone, an interrupted training goes on, folders are not mixed up."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import qbdt.training.paper.boosting
from qbdt import Dataset, Events, Sample, Systematic
from qbdt.analysis import run_steps
from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.loader import load
from qbdt.analysis.region_events import RegionEvents
from qbdt.analysis.run import run_analysis
from qbdt.analysis.run_folder import read_run
from qbdt.analysis.schema import Analysis, Fit
from qbdt.analysis.scored_files import write_scored
from qbdt.data import Role
from qbdt.data.folds import ModuloFolds
from qbdt.errors import ConfigError, DataError, FitError, ModelFileError, OutputError
from qbdt.files import FolderLock
from qbdt.files.records import read_record, write_record
from qbdt.models.file_text import checksum

ANALYSIS = """
name: small
features: [x, y]
weight: w
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  scale: {kind: shape, processes: ttbar, up: {columns: {x: x_up}}}
  xs: {kind: norm, processes: ttbar, size: 0.1}
folds: {columns: event}
training: {method: paper, n_trees: 20, n_leaves: 4}
fit: {bins: 6, scan: false}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("events")
    rng = np.random.default_rng(3)
    for name, centre, weight in (("higgs", 0.8, 0.01), ("ttbar", -0.5, 0.5)):
        x = rng.normal(centre, 1, 3000)
        columns = {"x": x, "x_up": x + 0.05, "y": rng.normal(-centre, 1, 3000), "w": np.full(3000, weight)}
        pq.write_table(pa.table({**columns, "event": np.arange(3000)}), folder / f"{name}.parquet")
    return folder


@pytest.fixture
def analysis():
    return parse_analysis(ANALYSIS, "small.yaml")


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    return run_analysis(parse_analysis(ANALYSIS, "small.yaml"), files, out)


def test_everything_is_written(finished):
    assert finished.steps == ("read", "train fold0", "train fold1", "score", "fit")
    content = json.loads((finished.folder / "result.json").read_text())
    assert content["fit"]["expected"]["z"] > 0
    assert finished.tables[0].title == "Fit to Asimov data"
    for name in ("model.qbdt", "fit/workspace.json", "fit/combine/datacard.txt", "fit/figures/pulls.png"):
        assert (finished.folder / name).exists()
    assert not list(finished.folder.rglob("*.part"))


def test_a_second_run_redoes_nothing(finished, analysis, files):
    again = run_analysis(analysis, files, finished.folder)
    assert again.steps == ("scores: there already", "fit: there already")
    assert again.tables == finished.tables


def test_other_settings_of_the_fit_redo_only_the_fit(finished, analysis, files, tmp_path):
    import shutil

    copy = tmp_path / "run"
    shutil.copytree(finished.folder, copy)
    other = analysis.model_copy(update={"fit": Fit(bins=4, scan=False)})
    assert run_analysis(other, files, copy, figures=False).steps == ("scores: there already", "fit")
    assert len(json.loads((copy / "fit" / "templates.json").read_text())["edges"]) <= 5
    (aside,) = copy.glob("fit-*")
    assert (
        json.loads((aside / "result.json").read_text())["fit"]
        == json.loads((finished.folder / "result.json").read_text())["fit"]
    )
    (copy / "note.txt").write_text("mine")
    anew = run_analysis(other, files, copy, figures=False, force=True, origin={"command": "qbdt run"})
    assert anew.steps == finished.steps
    assert (copy / "note.txt").exists()
    source = json.loads((copy / "result.json").read_text())["provenance"]
    assert source == json.loads((copy / "fit" / "fit.json").read_text())["provenance"]
    assert (source["command"], source["data"]) == ("qbdt run", str(files.resolve()))
    assert [file["path"] for file in source["files"]] == [
        str(files.resolve() / name) for name in ("higgs.parquet", "ttbar.parquet")
    ]
    assert {"qbdt", "numpy", "python"} <= set(source["versions"])


def interrupt_a_run(analysis, files, out):
    """Interrupt it after ten trees."""
    whole = qbdt.training.paper.boosting.train_paper

    def interrupted(*arguments, progress, **options):
        def stop(training):
            options["checkpoint"](training)
            if len(training.ensemble.trees) == 10:
                raise KeyboardInterrupt

        return whole(*arguments, progress=progress, **{**options, "checkpoint": stop})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qbdt.training.methods.train_paper", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_analysis(analysis, files, out, figures=False)


def test_an_interrupted_training_goes_on(finished, analysis, files, tmp_path):
    out = tmp_path / "run"
    interrupt_a_run(analysis, files, out)
    assert not (out / "scored").exists()
    resumed = run_analysis(analysis, files, out, figures=False)
    assert resumed.steps[1] == "train fold0, going on after 10 trees"
    assert resumed.tables == finished.tables


def test_finished_models_are_kept(finished, analysis, files, tmp_path):
    import shutil

    out = tmp_path / "run"
    out.mkdir()
    shutil.copy(finished.folder / "model.qbdt", out)
    steps = run_analysis(analysis, files, out, figures=False).steps
    assert steps == ("read", "train fold0: there already", "train fold1: there already", "score", "fit")


def test_a_folder_of_another_analysis(finished, files):
    other = parse_analysis(ANALYSIS.replace("n_trees: 20", "n_trees: 30"), "other.yaml")
    with pytest.raises(ConfigError, match="holds a run of another analysis"):
        run_analysis(other, files, finished.folder)


def test_files_that_have_changed(analysis, files, tmp_path):
    import shutil

    events, out = tmp_path / "events", tmp_path / "run"
    out.mkdir()
    shutil.copytree(files, events)
    for _ in range(2):
        run_steps.open_folder(out, analysis, events, False)
    (out / "model.qbdt").touch()
    (events / "ttbar.parquet").touch()
    with pytest.raises(ConfigError, match="files that have changed"):
        run_analysis(analysis, events, out)


def test_an_analysis_that_was_refused_before_training_can_be_mended(files, tmp_path):
    for scale in ("1e300", "1e200"):
        hopeless = parse_analysis(ANALYSIS.replace("ttbar.parquet}", f"ttbar.parquet, scale: {scale}}}"), "small.yaml")
        with pytest.raises(DataError, match="sample ttbar has weights up to"):
            run_analysis(hopeless, files, tmp_path / "run")


@pytest.fixture
def copy(finished, tmp_path):
    import shutil

    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


def test_a_folder_that_another_process_works_in(analysis, files, copy):
    with FolderLock(copy), pytest.raises(OutputError, match="another process is working in this folder"):
        run_analysis(analysis, files, copy)


def test_only_what_is_complete_is_there_already(finished, analysis, files, copy):
    for path in (copy / "fit").glob("*.json"):
        path.unlink()
    again = run_analysis(analysis, files, copy, figures=False)
    assert again.steps == ("scores: there already", "fit: damaged, it is made anew", "fit")
    assert again.result["fit"] == finished.result["fit"]


def flip_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["result.json", "fit/fit.json", "fit/templates.json", "fit/combine/shapes.root"])
def test_one_flipped_bit_of_a_fit_is_noticed(finished, analysis, files, copy, name):
    flip_bit(copy / name)
    again = run_analysis(analysis, files, copy, figures=False)
    assert again.steps == ("scores: there already", "fit: damaged, it is made anew", "fit")
    assert again.result["fit"] == finished.result["fit"]
    if not name.endswith("result.json"):  # which lists figures
        assert (copy / name).read_bytes() == (finished.folder / name).read_bytes()
    assert run_analysis(analysis, files, copy, figures=False).steps[-1] == "fit: there already"


def test_files_beside_those_of_a_fit_do_not_matter(analysis, files, copy):
    (copy / "fit" / "note.txt").write_text("mine")
    assert run_analysis(analysis, files, copy).steps == ("scores: there already", "fit: there already")


def test_a_model_that_is_missing_is_trained_again(finished, analysis, files, copy):
    (copy / "model.qbdt").unlink()
    steps = ("model: missing, or not as it was written", "read", "train fold0", "train fold1", "score")
    assert run_analysis(analysis, files, copy).steps == (*steps, "fit: there already")
    assert (copy / "model.qbdt").read_bytes() == (finished.folder / "model.qbdt").read_bytes()


def test_a_model_that_is_trained_again_may_be_interrupted(finished, analysis, files, copy):
    (copy / "model.qbdt").unlink()
    interrupt_a_run(analysis, files, copy)
    assert "train fold0, going on after 10 trees" in run_analysis(analysis, files, copy, figures=False).steps
    assert (copy / "model.qbdt").read_bytes() == (finished.folder / "model.qbdt").read_bytes()


def test_one_flipped_bit_of_a_model_is_noticed(analysis, files, copy):
    flip_bit(copy / "model.qbdt")
    with pytest.raises(ModelFileError, match=r"model.qbdt"):
        run_analysis(analysis, files, copy)


def test_a_model_of_another_run_is_not_taken_for_its_own(finished, analysis, files, copy):
    """Its checksum is right, but what was trained on one fold would score it."""
    content = json.loads((copy / "model.qbdt").read_text())
    del content["checksum"]
    content["trainings"].reverse()
    (copy / "model.qbdt").write_text(json.dumps({**content, "checksum": checksum(content)}))
    with pytest.raises(ModelFileError, match=r"model.qbdt: not as this run wrote it; remove it to train again"):
        run_analysis(analysis, files, copy, figures=False)
    (copy / "model.qbdt").unlink()
    run_analysis(analysis, files, copy, figures=False)
    assert (copy / "model.qbdt").read_bytes() == (finished.folder / "model.qbdt").read_bytes()


def test_one_flipped_bit_of_scored_events_is_noticed(finished, analysis, files, copy):
    path = copy / "scored" / "ttbar.parquet"
    flip_bit(path)
    with pytest.raises(DataError, match="damaged"):
        load(read_analysis(copy / "scored" / "scored.yaml"), copy / "scored")
    again = run_analysis(analysis, files, copy, figures=False)
    assert again.steps[0] == "scores: damaged, they are made anew"
    assert "train fold0: there already" in again.steps
    assert path.read_bytes() == (finished.folder / "scored" / "ttbar.parquet").read_bytes()


def test_a_run_whose_folder_is_removed_does_not_end_well(analysis, files, copy, monkeypatch):
    import shutil

    def remove(*arguments, **options):
        shutil.rmtree(copy)

    (copy / "result.json").unlink()
    monkeypatch.setattr(run_steps, "write_fit_folder", remove)
    with pytest.raises(OutputError):
        run_analysis(analysis, files, copy)


@pytest.mark.parametrize("text", ["[]", '"x"', '{"training": 1}', "{", "\x00", '{"scored": 3}'])
def test_a_damaged_record_of_a_run_is_no_traceback(analysis, files, copy, text):
    (copy / "run.json").write_text(text)
    if "training" in text:
        with pytest.raises(ConfigError, match="another analysis"):
            run_steps.open_folder(copy, analysis, files, False)
    else:
        run_steps.open_folder(copy, analysis, files, False)
        assert not (copy / "scored").exists()


def test_what_training_never_saw_does_not_train_again(finished, files, copy):
    text = ANALYSIS.replace("training: {", "training: {systematics: [scale], ").replace("name: small", "name: other")
    seen = parse_analysis(text)
    renamed = parse_analysis(text.replace("xs:", "cross_section:"))
    described, other = (run_steps.describe_training(one, files) for one in (seen, renamed))
    assert described == other
    assert described != run_steps.describe_training(parse_analysis(text.replace("x_up", "x")), files)
    renamed_fit = parse_analysis(ANALYSIS.replace("name: small", "name: other"))
    assert run_analysis(renamed_fit, files, copy).steps == ("scores: there already", "fit: there already")


@pytest.mark.parametrize(
    ("old", "new", "beside", "alone"),
    [
        ("bins: 2", "bins: 3", True, False),
        ("fit: {", "fit: {min_entries: 5, ", True, False),
        ("size: 0.1", "size: 0.2", True, False),
        ("fit: {", "fit: {goodness: toys, ", False, False),
    ],
)
def test_control_regions_beside_a_training_are_part_of_it(old, new, beside, alone, files):
    text = ANALYSIS.replace("method: paper", "method: profile, systematics: [scale]") + (
        "regions:\n  signal: {selection: y < 0}\n"
        "  control: {selection: y > 0, observable: x, bins: 2, range: [-3, 3]}\n"
    )
    with_them = text.replace("method: profile", "method: profile, with: control regions")
    for one, matters in ((with_them, beside), (text, alone)):
        changed = one.replace(old, new)
        assert changed != one
        described = [run_steps.describe_training(parse_analysis(each), files) for each in (one, changed)]
        assert (described[0] != described[1]) == matters


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        ({"fixed": {"absent": 1.0}}, "fixed: no parameter absent"),
        ({"bounds": {"mu": (2.0, 1.0)}}, "bounds: mu: 2 to 1 must contain 1"),
        ({"groups": {"g": ["absent"]}}, "groups: g: no source absent"),
        ({"parameters": {"mu1": ["absent"]}}, "strengths: mu1: absent is no signal process"),
        ({"free": ["higgs"]}, "free: norm_higgs: higgs is no background process"),
    ],
)
@pytest.mark.parametrize("memory", [None, 1])
def test_parameters_of_the_fit_are_looked_at_before_training(files, tmp_path, fit, message, memory, monkeypatch):
    monkeypatch.setattr("qbdt.analysis.resources.estimate.BASE", 0)
    monkeypatch.setattr("qbdt.analysis.resources.resource_plan.LEAST", 1)
    said: list[str] = []
    analysis = parse_analysis(ANALYSIS)
    wrong = analysis.model_copy(update={"fit": Fit(scan=False, **fit)})
    with pytest.raises(FitError, match=message):
        run_analysis(wrong, files, tmp_path / "run", memory=memory and 25_000, say=said.append)
    assert not [text for text in said if text.startswith("train fold")]
    assert any("partitions" in text for text in said) == (memory is not None)


def test_folds_are_needed(files, tmp_path):
    without = parse_analysis(ANALYSIS.replace("folds: {columns: event}\n", ""), "a.yaml")
    with pytest.raises(ConfigError, match="folds: needed to run an analysis"):
        run_analysis(without, files, tmp_path / "run")


def scored_dataset():
    rng = np.random.default_rng(1)
    n = 50
    ids = {"event": np.arange(n)}
    s = Sample("s", Role.SIGNAL, Events({"score": rng.random(n)}, rng.random(n), ids))
    b = Sample("b", Role.BACKGROUND, Events({"score": rng.random(n)}, rng.random(n), ids))
    up = Events({"score": rng.random(n + 3)}, rng.random(n + 3), {"event": np.arange(n + 3)})
    weight = Systematic.weight("sf", {"s": rng.random(n), "b": rng.random(n)}, {"s": rng.random(n), "b": rng.random(n)})
    sources = [Systematic.shape("scale", {"b": up}), weight, Systematic.norm("xs", -0.2, processes=["b"])]
    data = Sample("obs", Role.DATA, Events({"score": rng.random(7)}, np.ones(7), {"event": np.arange(7)}))
    return Dataset([s, b, data], sources, ModuloFolds(2, "event"))


def test_scored_events_are_read_back_as_they_were(tmp_path):
    scored = scored_dataset()
    path = write_scored(RegionEvents(scored, {}), tmp_path / "scored", Analysis.model_construct(fit=Fit(bins=7)))
    plan = read_analysis(path)
    assert plan.fit.bins == 7
    again = load(plan, path.parent)
    assert again.folds == scored.folds
    for sample in scored.samples:
        other = again.sample(sample.name)
        assert other.role is sample.role
        assert other.events.column("score") == pytest.approx(sample.events.column("score"), rel=1e-12)
        assert np.array_equal(other.events.weight, sample.events.weight)
    for source in scored.systematics:
        assert again.systematic(source.name).kind is source.kind
        for direction, _ in source.directions:
            for process, events in scored.varied(source.name, direction).items():
                varied = again.varied(source.name, direction)[process]
                assert varied.weight == pytest.approx(events.weight, rel=1e-12)
                assert varied.column("score") == pytest.approx(events.column("score"), rel=1e-12)


NAMES = ["b", "b__0_up", "B", "../../b", "a b*[1]?", "x" * 300, "=1+1", "~", "%2E", ".", "{process}", "1e5", "null"]


def test_scored_files_do_not_collide_whatever_the_names_are(tmp_path):
    def events(value: float) -> Events:
        ids = {"weight": [0, 1], "w0_up": [3, 4], "score": [5, 6]}
        return Events({"score_2": [0.1, 0.2]}, [value, value], ids)

    samples = [Sample(n, Role.SIGNAL if i else Role.BACKGROUND, events(float(i + 1))) for i, n in enumerate(NAMES)]
    shapes = [Systematic.shape(n, {m: events(100.0 + i) for m in NAMES}) for i, n in enumerate(NAMES)]
    weights = Systematic.weight("w", {n: [7.0, 8.0] for n in NAMES})
    scored = Dataset(samples, [*shapes, weights], ModuloFolds(2, "weight"))
    (tmp_path / "a").mkdir()
    path = write_scored(RegionEvents(scored, {}), tmp_path / "a" / "scored", Analysis.model_construct())
    again = load(read_analysis(path), path.parent, to_train=False)
    assert [(s.name, s.events.total) for s in again.samples] == [(s.name, s.events.total) for s in samples]
    for source in scored.systematics:
        found, wanted = ({p: e.total for p, e in data.varied(source.name, "up").items()} for data in (again, scored))
        assert found == wanted
    assert again.samples[0].events.identifier("weight").tolist() == [0, 1]
    assert [found.name for found in tmp_path.iterdir()] == ["a"]


def test_the_profiled_method_runs_to_a_report(files, tmp_path):
    from qbdt.analysis.run_page import run_document

    text = ANALYSIS.replace("{method: paper, n_trees: 20, n_leaves: 4}", "{method: profile, n_trees: 5, n_leaves: 4}")
    analysis = parse_analysis(text)
    assert (analysis.fit.binning, analysis.fit.transform) == ("optimised", "none")
    done = run_analysis(analysis, files, tmp_path / "run", figures=False)
    assert done.tables
    training = next(section for section in run_document(tmp_path / "run").sections if section.title == "Training")
    assert "Expected by the training" in str(training.blocks[0])
    assert "is larger than that of the fit" in str(training.blocks[1])


@pytest.mark.parametrize("name", ["result.json", "fit/fit.json", "fit/templates.json"])
@pytest.mark.parametrize("change", ["[]", "{", '{"fit": 1, "analysis": 3}', "keys", "values", "digit"])
def test_a_damaged_result_ends_in_one_message(finished, tmp_path, name, change):
    import shutil

    for part in ("result.json", "fit/fit.json", "fit/templates.json"):
        (tmp_path / part).parent.mkdir(exist_ok=True)
        shutil.copy(finished.folder / part, tmp_path / part)
    content = read_record(tmp_path / name)
    if change == "digit":  # one other digit is another number
        change = re.sub(r"\d", lambda one: str((int(one[0]) + 1) % 10), (tmp_path / name).read_text(), count=1)
    elif change == "keys":
        kept = {key: value for key, value in content.items() if key not in ("expected", "edges")}
        change = json.dumps({**kept, "tables": [{}]})
    elif change == "values":
        change = json.dumps({key: [1, "x"] for key in content})
    (tmp_path / name).write_text(change)
    with pytest.raises(ConfigError, match=name.rpartition("/")[2]):
        read_run(tmp_path)


def test_templates_of_another_fit_are_refused(finished, copy):
    plain = read_record(copy / "fit" / "templates.json")
    plain["processes"][1]["name"] = "other"
    write_record(copy / "fit" / "templates.json", plain)
    with pytest.raises(ConfigError, match=r"fit\.json and the templates beside it are not of one fit"):
        read_run(copy)
