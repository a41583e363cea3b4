"""qbdt train and qbdt score as a user meets them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot

from qbdt.models.model_file import read_cross_trained, read_model
from tests.cli.inside import qbdt

ANALYSIS = """
dataset:
  name: inferno
  options: {n: 400, seed: 1, k: 2}
training: {method: paper, n_trees: 12, n_leaves: 4, max_bins: 32}
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    (folder / "a.yaml").write_text(ANALYSIS)
    done = qbdt("train", "a.yaml", "-o", "m.qbdt", "-j", 1, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "wrote m.qbdt: 2 models, 12 + 12 trees" in done.stdout
    return folder


def test_scores_of_nominal_and_varied_events(trained):
    done = qbdt("score", "a.yaml", "-m", "m.qbdt", "-o", "scores.root", cwd=trained)
    assert done.returncode == 0, done.stderr
    assert qbdt("score", "a.yaml", "-m", "m.qbdt", "-o", "scores", cwd=trained).returncode == 0
    with uproot.open(trained / "scores.root") as file:
        assert "background__r_up;1" in file.keys()  # noqa: SIM118 (a ROOT file is no mapping)
        signal, background = (file[name].arrays(library="np") for name in ("signal", "background"))
        varied = file["background__norm_up"].arrays(library="np")
    assert signal["score"].mean() > background["score"].mean()
    assert varied["weight"].sum() > background["weight"].sum()
    assert np.array_equal(pq.read_table(trained / "scores" / "signal.parquet")["score"].to_numpy(), signal["score"])


def test_resume_gives_the_same_file(trained, tmp_path):
    whole = (trained / "m.qbdt").read_bytes()
    short = ANALYSIS.replace("n_trees: 12", "n_trees: 5")
    (tmp_path / "a.yaml").write_text(short)
    assert qbdt("train", "a.yaml", "-o", "m.qbdt", cwd=tmp_path).returncode == 0
    (tmp_path / "a.yaml").write_text(ANALYSIS)
    assert qbdt("train", "a.yaml", "-o", "m.qbdt", "--resume", cwd=tmp_path).returncode == 0
    assert (tmp_path / "m.qbdt").read_bytes() == whole


def test_faults_end_in_one_message(trained):
    done = qbdt("score", "a.yaml", "-m", "absent.qbdt", "--force", cwd=trained)
    assert (done.returncode, done.stderr) == (2, "qbdt: absent.qbdt: No such file or directory\n")
    done = qbdt("score", "a.yaml", "-m", "m.qbdt", "--column", "x0", "--force", cwd=trained)
    assert (done.returncode, done.stderr) == (2, "qbdt: --column x0: the events have a column of this name\n")
    done = qbdt("score", "a.yaml", "-m", "m.qbdt", "-o", "s.csv", cwd=trained)
    assert (done.returncode, done.stderr[:56]) == (2, "qbdt: s.csv: scored events are written to a .root file, ")
    done = qbdt("train", "a.yaml", "-o", "no/folder/m.qbdt", cwd=trained)
    assert (done.returncode, done.stderr) == (2, "qbdt: no/folder/m.qbdt: there is no folder no/folder\n")
    done = qbdt("train", "a.yaml", "-o", "m.qbdt", cwd=trained)
    assert (done.returncode, done.stderr) == (
        2,
        "qbdt: m.qbdt exists; --force overwrites it, --resume goes on from it\n",
    )


@pytest.mark.parametrize(
    "command", [("score", "-m", "m.qbdt", "--force"), ("tune",), ("compare", "--method", "QBDT (paper)")]
)
def test_an_unknown_device_is_named_before_events_are_read(command, trained):
    if command == ("tune",):
        pytest.importorskip("optuna")  # its absence is said first
    done = qbdt(*command[:1], "a.yaml", *command[1:], "--device", "gpu", "--data", "nowhere", cwd=trained)
    message = "qbdt: device='gpu': must be None for the CPU, 'cuda', or 'cuda:1' for the second GPU\n"
    assert (done.returncode, done.stderr) == (2, message)


FILES = """
features: [x, y]
weight: w
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: ttbar.parquet}
training: {method: paper, n_trees: 4, n_leaves: 4}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(3)
    for name, centre in (("higgs", 0.8), ("ttbar", -0.5), ("new", 0.2)):
        columns = {"x": rng.normal(centre, 1, 300), "y": rng.normal(-centre, 1, 300), "w": np.ones(300)}
        pq.write_table(
            pa.table({**columns, "event": np.arange(300), "run": np.arange(300) // 7}), folder / f"{name}.parquet"
        )
    pq.write_table(pa.table({"x": rng.normal(size=50), "y": rng.normal(size=50)}), folder / "data.parquet")
    (folder / "a.yaml").write_text(FILES)
    (folder / "new.yaml").write_text(
        FILES.replace("higgs", "new").replace("signal", "background").replace("ttbar", "higgs")
    )
    data = "features: [x, y]\nsamples:\n  obs: {role: data, files: data.parquet}\n"
    (folder / "data.yaml").write_text(data)
    return folder


def test_folds_from_the_command_line(files):
    done = qbdt("train", "a.yaml", "--folds", 3, cwd=files)
    assert (done.returncode, done.stderr.count("give --fold-column NAME")) == (2, 1)
    options = ("--folds", 3, "--fold-column", "event", "--fold-column", "run")
    done = qbdt("train", "a.yaml", *options, "-o", "hash.qbdt", "--json", "-q", cwd=files)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["trees"] == [4, 4, 4]
    assert content["folds"] == {"by": "hash", "columns": ["event", "run"], "k": 3, "salt": 0}
    assert read_cross_trained(files / "hash.qbdt")[0].folds.to_dict() == content["folds"]
    (files / "with.yaml").write_text(FILES + "folds: {columns: event, k: 2}\n")
    assert qbdt("train", "with.yaml", "--folds", 1, "-o", "one.qbdt", cwd=files).returncode == 0
    assert len(read_model(files / "one.qbdt")[0].ensemble.trees) == 4
    done = qbdt("score", "with.yaml", "-m", "one.qbdt", "-o", "one.root", cwd=files)
    assert "note: this model was trained on higgs, ttbar: it has seen these events" in done.stderr


@pytest.fixture(scope="module")
def crossed(files):
    assert qbdt("train", "a.yaml", "--folds", 3, "--fold-column", "event", "-o", "m.qbdt", cwd=files).returncode == 0
    return read_cross_trained(files / "m.qbdt")[0].ensemble


def read(path):
    return {name: column.to_numpy() for name, column in zip(*_columns(path), strict=True)}


def _columns(path):
    table = pq.read_table(path)
    return table.column_names, table.columns


def test_other_samples_are_scored_by_the_rule_of_the_model(files, crossed):
    """The analysis has no folds, and other samples: the model says which columns to read and how events divide."""
    from qbdt import Events

    done = qbdt("score", "new.yaml", "-m", "m.qbdt", "-o", "new", cwd=files)
    assert done.returncode == 0, done.stderr
    for name in ("new", "higgs"):
        table = read(files / "new" / f"{name}.parquet")
        events = Events({"x": table["x"], "y": table["y"]}, table["weight"])
        for fold, ensemble in enumerate(crossed.members):
            mine = table["event"] % 3 == fold
            assert np.array_equal(table["score"][mine], ensemble.score(events[mine]))


def test_events_without_identifiers_only_by_the_average_that_was_asked_for(files, crossed):
    from qbdt import Events

    done = qbdt("score", "data.yaml", "-m", "m.qbdt", "-o", "data", cwd=files)
    assert done.returncode == 2
    assert "event" in done.stderr
    assert not (files / "data" / "obs.parquet").exists()
    done = qbdt("score", "data.yaml", "-m", "m.qbdt", "-o", "data", "--average", "o*", "--force", cwd=files)
    assert done.returncode == 0, done.stderr
    table = read(files / "data" / "obs.parquet")
    events = Events({"x": table["x"], "y": table["y"]}, np.ones(50))
    assert np.array_equal(table["score"], crossed.average(events))


def test_what_was_trained_on_is_not_averaged(files, crossed):
    done = qbdt("score", "a.yaml", "-m", "m.qbdt", "-o", "x.root", "--average", "*", cwd=files)
    assert (done.returncode, done.stderr) == (2, "qbdt: --average *: the models were trained on higgs, ttbar\n")
    done = qbdt("score", "a.yaml", "-m", "m.qbdt", "-o", "x.root", "--average", "zz", cwd=files)
    assert (done.returncode, done.stderr) == (2, "qbdt: --average zz: no such sample; there are: higgs, ttbar\n")


CATEGORICAL = """
features: [pt, mode]
categorical: mode
missing: -999
samples:
  s: {role: signal, files: s.parquet}
  b: {role: background, files: b.parquet}
folds: {columns: event}
training: {method: paper, n_trees: 3, n_leaves: 4, monotonic_constraints: {pt: 1}}
"""


def test_categories_and_constraints_of_an_analysis_file(tmp_path):
    rng = np.random.default_rng(1)
    (tmp_path / "a.yaml").write_text(CATEGORICAL)

    def write(bad=None):
        for name, shift in (("s", 1), ("b", 0)):
            mode = (rng.choice([0, 1, 10, 11], 300) + 10 * shift * (rng.random(300) < 0.5)).astype(np.int32)
            mode[:5] = -999 if bad is None else bad
            pq.write_table(
                pa.table({"pt": rng.normal(shift, 1.0, 300), "mode": mode, "event": np.arange(300)}),
                tmp_path / f"{name}.parquet",
            )

    write()
    done = qbdt("train", "a.yaml", "-o", "m.qbdt", "-j", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    settings = read_cross_trained(tmp_path / "m.qbdt")[0].trainings[0].settings
    assert settings.categorical_features == ("mode",)
    assert settings.monotonic_constraints == {"pt": 1}
    assert qbdt("score", "a.yaml", "-m", "m.qbdt", "-o", "scores", cwd=tmp_path).returncode == 0
    write(bad=-5)
    for command in (("inspect", "a.yaml"), ("train", "a.yaml", "-o", "m2.qbdt")):
        done = qbdt(*command, cwd=tmp_path)
        assert done.returncode == 2
        assert "sample s: feature mode is categorical and has the value -5" in done.stderr
        assert "Traceback" not in done.stderr
