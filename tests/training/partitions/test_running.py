"""A whole run on a cluster: the model of one machine, and its fit."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qbdt.analysis import partitioned_run as module
from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.fit_folder import fit_scored
from qbdt.analysis.loader import load, load_partitions, load_regions
from qbdt.analysis.partitioned_run import ClusterRun
from qbdt.analysis.run import run_analysis
from qbdt.data.checks.findings import find_faults
from qbdt.errors import DataError
from qbdt.progress import silent

pytestmark = pytest.mark.xdist_group("dask")

ANALYSIS = """
name: small
features: [x, y]
weight: w
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: ttbar.parquet}
systematics:
  scale: {kind: shape, processes: ttbar, up: {columns: {x: x + 0.05}}}
  tag: {kind: weight, processes: ttbar, up: w * 1.1}
  xs: {kind: norm, processes: ttbar, size: 0.1}
folds: {columns: event}
training: {method: paper, n_trees: 4, n_leaves: 4}
fit: {bins: 6, scan: false}
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    rng = np.random.default_rng(3)
    for name, centre, weight in (("higgs", 0.8, 0.01), ("ttbar", -0.5, 0.5)):
        columns = {"x": rng.normal(centre, 1, 3000), "y": rng.normal(-centre, 1, 3000), "w": np.full(3000, weight)}
        table = pa.table({**columns, "event": np.arange(3000)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=500)
    return folder


@pytest.fixture(scope="module")
def local(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("local") / "run"
    return run_analysis(parse_analysis(ANALYSIS, "small.yaml"), files, out, figures=False, n_threads=1).folder


def test_a_profiled_run_on_the_cluster_is_that_of_one_machine(client, files, tmp_path):
    profiled = "training: {method: profile, n_trees: 1, n_leaves: 3}"
    text = ANALYSIS.replace("folds: {columns: event}", "folds: {columns: event, k: 2}")
    analysis = parse_analysis(
        text.replace("training: {method: paper, n_trees: 4, n_leaves: 4}", profiled), "small.yaml"
    )
    local, done = (
        run_analysis(analysis, files, tmp_path / name, figures=False, n_threads=1, cluster=cluster).folder
        for name, cluster in (("local", None), ("cluster", ClusterRun(client, 3)))
    )
    assert (done / "model.qbdt").read_bytes() == (local / "model.qbdt").read_bytes()


def test_faults_of_the_input_are_said_on_the_cluster_as_on_one_machine(client, files, tmp_path, monkeypatch):
    """A file whose weights are all 1; of many events a sample is looked at."""
    table = pq.read_table(files / "ttbar.parquet")
    ones = table.set_column(table.schema.get_field_index("w"), "w", pa.array(np.ones(table.num_rows)))
    for name, content in (("higgs", pq.read_table(files / "higgs.parquet")), ("ttbar", ones)):
        pq.write_table(content, tmp_path / f"{name}.parquet", row_group_size=500)
    analysis = parse_analysis(ANALYSIS, "small.yaml")
    parts = load_partitions(analysis, tmp_path, 3)
    expected = [str(found) for found in find_faults(load(analysis, tmp_path))]
    said: list[str] = []
    cluster = ClusterRun(client, 3)
    assert [str(found) for found in cluster._find_faults(parts, ("event",), said.append)] == expected != []
    monkeypatch.setattr(module, "CHECKED", 3000)
    assert [found.check for found in cluster._find_faults(parts, ("event",), said.append)] == ["weights"]
    assert said == ["one event in 4 is looked at for faults of the input"]


def test_a_run_on_the_cluster_is_that_of_one_machine(client, files, local, tmp_path):
    analysis = parse_analysis(ANALYSIS, "small.yaml")
    said: list[str] = []
    cluster = ClusterRun(client, 3)
    done = run_analysis(analysis, files, tmp_path / "run", figures=False, say=said.append, cluster=cluster)
    assert (done.folder / "model.qbdt").read_bytes() == (local / "model.qbdt").read_bytes()
    mine, its = (json.loads((folder / "result.json").read_text())["fit"] for folder in (done.folder, local))
    assert mine["expected"]["z"] == pytest.approx(its["expected"]["z"], rel=1e-6)  # templates add in another order
    assert len(list((done.folder / "scored").glob("scale_up/ttbar.part*.parquet"))) == 3
    assert done.tables[-1].title == "Training on the cluster"
    assert "score on the cluster" in said
    again = run_analysis(analysis, files, done.folder, figures=False, cluster=cluster)
    assert again.steps == ("scores: there already", "fit: there already")


def test_regions_on_the_cluster_are_those_of_one_machine(client, files, tmp_path):
    """Templates of all regions, and the statistical errors of their shifts."""
    regions = "regions: {sr: {selection: y < 1}, cr: {selection: y >= 1, observable: x, bins: 2, range: [-2, 2]}}\n"
    analysis = parse_analysis(ANALYSIS.replace("n_trees: 4", "n_trees: 1") + regions, "small.yaml")
    folders = [
        run_analysis(analysis, files, tmp_path / name, figures=False, n_threads=1, cluster=cluster).folder
        for name, cluster in (("local", None), ("cluster", ClusterRun(client, 3)))
    ]
    found = [json.loads((one / "fit" / "measurement.json").read_text())["regions"] for one in folders]
    for region in ("sr", "cr"):
        for mine, its in zip(*(one[region]["processes"] for one in found), strict=True):
            assert mine["nominal"] == pytest.approx(its["nominal"])
            for source, shift in mine["shifts"].items():
                other = its["shifts"][source]
                assert shift["up"] == pytest.approx(other["up"])
                assert shift.get("shift_variance") == pytest.approx(other.get("shift_variance"))
    assert found[0]["cr"]["processes"][1]["shifts"]["scale"]["shift_variance"][0] > 0
    empty = parse_analysis(ANALYSIS + regions.replace("y >= 1", "y >= 99"), "small.yaml")
    with pytest.raises(DataError, match=r"regions\.cr: no background event passes its selection: y >= 99"):
        run_analysis(empty, files, tmp_path / "empty", cluster=ClusterRun(client, 3))


def test_edges_are_chosen_on_a_sample_where_there_are_many_events(client, local, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 6000)
    analysis = parse_analysis(ANALYSIS, "small.yaml")
    result = ClusterRun(client, 2).run_fit(local / "scored" / "scored.yaml", analysis, silent)
    assert result.templates.background.sum() == pytest.approx(1500.0)  # filled from all events
    shift = result.templates.process("ttbar").shifts["scale"]
    assert shift.variance is not None  # from the sample, scaled
    whole = fit_scored(read_analysis(local / "scored" / "scored.yaml"), local / "scored").templates
    wanted = whole.process("ttbar").shifts["scale"].variance
    assert wanted is not None
    assert shift.variance.sum() == pytest.approx(wanted.sum(), rel=0.3)  # of some hundred events that change bins


def test_a_sample_stands_for_all_events(local):
    scored = load_regions(read_analysis(local / "scored" / "scored.yaml"), local / "scored")
    part = module._draw_sample(0, scored, 0.5).whole
    rows = part.sample("ttbar").events.n_rows
    assert 1350 < rows < 1650  # 1500 ± 27
    assert part.sample("ttbar").events.weight[0] == 2 * 0.5
    assert part.varied("tag", "up")["ttbar"].weight[0] == pytest.approx(1.1)
