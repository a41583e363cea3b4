"""What stopped people who tried the package for the first time, each once: names, folds, reports, widths."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.inside import qbdt

ANALYSIS = """
name: newcomer
columns:
  scale: 1
  m_scaled: m * scale
features: [m_scaled, "pdf[1]"]
weight: w * pdf[0]
selection: m_scaled > -1
samples:
  higgs: {role: signal, files: higgs.parquet}
  a rather long name of a background: {role: background, files: ttbar.parquet}
systematics:
  lumi: {kind: norm, processes: "*", size: 0.02}
  energy scale: {kind: shape, up: {columns: {scale: 1.05}}, down: {columns: {scale: 0.95}}}
  mu: {kind: weight, up: "nominal * pdf[1]", down: "nominal / pdf[1]"}
folds: {by: content, columns: phi, k: 2}
training: {method: paper, n_trees: 3, n_leaves: 3}
fit: {bins: 4, scan: false}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files without an event number, with array branches, and a run of them in another folder."""
    root = tmp_path_factory.mktemp("newcomer")
    (root / "events").mkdir()
    (root / "elsewhere").mkdir()
    rng = np.random.default_rng(3)
    for name, centre, weight in (("higgs", 1.0, 0.01), ("ttbar", 0.0, 0.5)):
        columns = {"m": rng.normal(centre, 1, 1500), "phi": rng.uniform(-np.pi, np.pi, 1500)}
        lists = pa.array(np.stack([np.ones(1500), rng.uniform(0.9, 1.2, 1500)], axis=1).tolist())
        pq.write_table(pa.table({**columns, "w": np.full(1500, weight), "pdf": lists}), root / f"events/{name}.parquet")
    (root / "events" / "analysis.yaml").write_text(ANALYSIS, encoding="utf-8")
    done = qbdt("run", "events/analysis.yaml", "--out", "run", "--threads", 1, "--no-figures", cwd=root)
    assert done.returncode == 0, done.stderr
    return root


def test_sources_may_have_any_name_and_weights_any_element(folder):
    result = json.loads((folder / "run" / "result.json").read_text(encoding="utf-8"))
    assert {"lumi_2", "mu_2", "energy scale"} <= set(result["fit"]["expected"]["parameters"])
    assert {path.stem for path in (folder / "run" / "scored").glob("*energy*")}, "files are named after sources"


def test_a_report_finds_its_events_from_anywhere_and_replaces_an_earlier_one(folder):
    (folder / "run" / "report.html").write_text("an earlier report", encoding="utf-8")
    done = qbdt("report", "../run", "--quiet", cwd=folder / "elsewhere")
    assert done.returncode == 0, done.stderr
    page = (folder / "run" / "report.html").read_text(encoding="utf-8")
    assert "variable-m_scaled" in page, "the events were not found"
    assert "selection: m_scaled" in page, "the settings are the analysis file as it was written"


def test_inspect_fits_eighty_columns(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = qbdt("inspect", "analysis.yaml", "--quiet", cwd=folder / "events")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
