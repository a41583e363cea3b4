"""`qbdt fit` as a user meets it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.inside import qbdt

ANALYSIS = """
features: [bdt]
weight: w
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  tag: {kind: weight, processes: ttbar, up: nominal * sf}
  xs: {kind: norm, processes: ttbar, size: 0.1}
folds: {columns: event}
fit: {transform: none, binning: optimised, bins: 6}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("scored")
    rng = np.random.default_rng(2)
    for name, centre, weight in (("higgs", 1.0, 0.01), ("ttbar", -1.0, 0.2)):
        score = rng.normal(centre, 1, 4000)
        columns = {"bdt": score, "w": np.full(4000, weight), "sf": 1 + 0.05 * np.tanh(score), "event": np.arange(4000)}
        pq.write_table(pa.table(columns), where / f"{name}.parquet")
    (where / "scored.yaml").write_text(ANALYSIS)
    return where


def test_results_workspaces_and_figures(folder):
    done = qbdt("fit", "scored.yaml", "--out", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Fit to Asimov data" in done.stdout
    assert "Blind" not in done.stdout  # there are no data
    assert done.stdout.endswith("everything is in out\n")
    written = {str(path.relative_to(folder / "out")) for path in (folder / "out").rglob("*") if path.is_file()}
    assert {
        "fit.json",
        "templates.json",
        "workspace.json",
        "histfactory/measurement.xml",
        "combine/datacard.txt",
        "figures/pulls.png",
        "figures/envelope_tag.png",
    } <= written
    found = json.loads((folder / "out" / "fit.json").read_text())
    assert found["expected"]["mu"] == pytest.approx(1.0, abs=1e-4)
    assert found["provenance"]["analysis"] == str(folder.resolve() / "scored.yaml")
    assert found["provenance"]["command"].startswith("qbdt fit scored.yaml")
    refused = qbdt("fit", "scored.yaml", "--out", "out", cwd=folder)
    assert (refused.returncode, refused.stderr) == (2, "qbdt: out/fit.json exists; --force overwrites it\n")
    assert len(found["settings"]["chosen_edges"]) == 2


def test_a_blind_fit_says_so(folder):
    blind = ANALYSIS.replace("systematics:", "  data: {role: data, files: ttbar.parquet, weight: 0.2}\nsystematics:")
    (folder / "blind.yaml").write_text(blind)
    done = qbdt("fit", "blind.yaml", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Blind: recorded data take no part until --unblind.\n")


def test_json_is_the_only_output(folder):
    done = qbdt("fit", "scored.yaml", "--json", "--no-figures", cwd=folder)
    found = json.loads(done.stdout)
    assert set(found["expected"]["variants"]) == {"full", "full, no MC stat", "stat", "stat, no MC stat"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("folds: {columns: event}\n", "", "give the dataset a fold rule"),
        ("bins: 6", "bims: 6", "fit.bims: unknown key; did you mean bins?"),
        ("features: [bdt]", "features: [bdt, sf]", "which feature is the score? --score NAME, one of: bdt, sf"),
        ("binning: optimised", "binning: edges", "edges: to be given with binning: edges"),
    ],
)
def test_faults_end_in_one_message(folder, old, new, message):
    (folder / "bad.yaml").write_text(ANALYSIS.replace(old, new))
    done = qbdt("fit", "bad.yaml", cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
