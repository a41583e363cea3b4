"""qbdt train and qbdt score as a user meets them."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import uproot

from tests.cli.test_inspecting import qbdt

ANALYSIS = """
dataset:
  name: inferno
  options: {n: 400, seed: 1, k: 2}
training: {n_trees: 12, n_leaves: 4, max_bins: 32}
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    (folder / "a.yaml").write_text(ANALYSIS)
    done = qbdt("train", "a.yaml", "-o", "m.qbdt", "-j", 1, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "wrote m.fold0.qbdt: 12 trees" in done.stdout
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
    whole = (trained / "m.fold0.qbdt").read_bytes()
    short = ANALYSIS.replace("n_trees: 12", "n_trees: 5")
    (tmp_path / "a.yaml").write_text(short)
    assert qbdt("train", "a.yaml", "-o", "m.qbdt", cwd=tmp_path).returncode == 0
    (tmp_path / "a.yaml").write_text(ANALYSIS)
    assert qbdt("train", "a.yaml", "-o", "m.qbdt", "--resume", cwd=tmp_path).returncode == 0
    assert (tmp_path / "m.fold0.qbdt").read_bytes() == whole


def test_faults_end_in_one_message(trained):
    done = qbdt("score", "a.yaml", "-m", "absent.qbdt", cwd=trained)
    assert (done.returncode, done.stderr) == (2, "qbdt: absent.fold0.qbdt: No such file or directory\n")
    done = qbdt("score", "a.yaml", "-m", "m.qbdt", "--column", "x0", cwd=trained)
    assert (done.returncode, done.stderr) == (2, "qbdt: --column x0: the events have a column of this name\n")
    done = qbdt("train", "a.yaml", "-o", "no/folder/m.qbdt", cwd=trained)
    assert done.returncode == 2
    assert done.stderr.startswith("qbdt: no/folder/m.fold0.qbdt: ")
