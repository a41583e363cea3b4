"""What a training takes is known before; events that do not fit into the memory allowed are trained on out of core."""

import itertools
import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.event_reader import EventReader
from qbdt.analysis.loader import load_regions
from qbdt.analysis.resources import estimate, machine, resource_plan
from qbdt.analysis.resources.estimate import Contents, count_events, estimate_training
from qbdt.analysis.resources.machine import find_memory, read_size
from qbdt.analysis.resources.probe import probe_events
from qbdt.analysis.resources.resource_plan import ResourcePlan
from qbdt.analysis.run import run_analysis
from qbdt.errors import ConfigError, DataError, OutputError
from qbdt.training.settings import Settings
from tests.cli.inside import qbdt

ANALYSIS = """\
name: small
features: [x, y]
weight: w
samples:
  higgs: {role: signal, files: higgs.parquet}
  ttbar: {role: background, files: "ttbar*.parquet"}
systematics:
  scale: {kind: shape, processes: ttbar, up: {columns: {x: x + 0.05}}}
  tag: {kind: weight, processes: ttbar, up: w * 1.1}
  xs: {kind: norm, processes: ttbar, size: 0.1}
folds: {columns: event}
training: {method: METHOD, n_trees: 2, n_leaves: 3}
fit: {bins: 3, scan: false}
"""


SAMPLES = ("higgs", 0.8, 0.01, 2000), ("ttbar1", -0.5, 0.5, 3000), ("ttbar2", -0.5, 0.5, 500)
"""Name, centre, weight and rows."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    rng = np.random.default_rng(3)
    for name, centre, weight, n in (
        ("higgs", 0.8, 0.01, 2000),
        ("ttbar1", -0.5, 0.5, 3000),
        ("ttbar2", -0.5, 0.5, 500),
    ):
        columns = {"x": rng.normal(centre, 1, n), "y": rng.normal(-centre, 1, n), "w": np.full(n, weight)}
        table = pa.table({**columns, "event": np.arange(n)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=250)
    for method in ("paper", "profile"):
        (folder / f"{method}.yaml").write_text(ANALYSIS.replace("METHOD", method))
    return folder


@pytest.fixture
def analysis():
    return parse_analysis(ANALYSIS.replace("METHOD", "paper"), "small.yaml")


@pytest.fixture
def small(monkeypatch):
    """Return the memory with which the small events go out of core, as if Python itself took nothing."""
    monkeypatch.setattr(estimate, "BASE", 0)
    monkeypatch.setattr(resource_plan, "LEAST", 1)
    return 200_000


@pytest.mark.parametrize("text", ["4", "GB", "-1GB", "4 bananas", "", "0GB", "1e3GB", "nanGB"])
def test_a_size_needs_a_number_and_a_unit(text):
    with pytest.raises(ConfigError, match=r"memory=.*a size with its unit is needed, such as 4GB"):
        read_size(text)


def test_a_wrong_size_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "a.yaml").write_text(ANALYSIS.replace("METHOD", "paper"))
    for command in ("run", "train", "inspect"):
        done = qbdt(command, "a.yaml", "--memory", "lots", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (
            2,
            "qbdt: --memory lots: a size with its unit is needed, such as 4GB or 500MB\n",
        )


@pytest.mark.parametrize(("line", "file"), [("0::/a/b\n", "memory.max"), ("4:memory:/a/b\n", "memory.limit_in_bytes")])
def test_limits_of_control_groups_count(line, file, tmp_path):
    root = tmp_path if line.startswith("0") else tmp_path / "memory"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / file).write_text("max\n" if "max" in file else "9223372036854771712\n")
    (root / "a" / file).write_text("1000000\n")
    (tmp_path / "own").write_text(f"9:name=systemd:/\n{line}")
    assert min(machine._list_limits(tmp_path, tmp_path / "own")) == 1_000_000
    assert 0 < find_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_a_probe_counts_events_without_reading_them(analysis, files, monkeypatch):
    monkeypatch.setattr("qbdt.analysis.resources.probe.PROBED_ROWS", 300)
    exact = count_events(load_regions(analysis, files).whole, lambda events: events.n_rows)
    probe = probe_events(analysis, files).whole
    assert exact == count_events(probe, lambda events: events.total)
    assert (exact.nominal, exact.varied, exact.weights, exact.n_sources, exact.n_folds) == (5500, 3500, 3500, 3, 2)
    assert exact.n_bytes == 9000 * 32 + 3500 * 8  # x, y, weight and identifier; the other weight
    assert sum(sample.events.n_rows for sample in probe.samples) <= 3 * 300


@pytest.mark.parametrize(("selection", "tolerance"), [("x > 0", 0.1), ("x > 99", 0)])
def test_a_probe_knows_what_a_selection_keeps(selection, tolerance, files, monkeypatch):
    monkeypatch.setattr("qbdt.analysis.resources.probe.PROBED_ROWS", 1000)
    text = ANALYSIS.replace("METHOD", "paper") + f"selection: {selection}\n"
    analysis = parse_analysis(text, "small.yaml")
    exact, found = (
        count_events(load_regions(analysis, files).whole, lambda events: events.n_rows),
        count_events(probe_events(analysis, files).whole, lambda events: events.total),
    )
    assert found.rows == pytest.approx(exact.rows, rel=tolerance)


def test_a_probe_counts_events_of_eras(files, monkeypatch):
    monkeypatch.setattr("qbdt.analysis.resources.probe.PROBED_ROWS", 300)
    text = ANALYSIS.replace("METHOD", "paper").replace("features:", "eras: {a: {}, b: {weight: w * 0.1}}\nfeatures:")
    analysis = parse_analysis(text.replace("higgs.parquet}", "higgs.parquet, eras: {b: {files: ttbar2.parquet}}}"))
    exact = count_events(load_regions(analysis, files).whole, lambda events: events.n_rows)
    probe = probe_events(analysis, files).whole
    assert exact == count_events(probe, lambda events: events.total)
    assert sum(sample.events.n_rows for sample in probe.samples) <= 6 * 300


CONTENTS = Contents(nominal=1000, varied=2000, n_bytes=90_000, n_features=9, n_sources=3, weights=500, n_folds=1)


def test_memory_is_the_sum_of_the_arrays():
    found = estimate_training(CONTENTS, CONTENTS, Settings(method="paper"), 1)
    # columns; row numbers and weights; two words of codes, row numbers twice, weights twice; further weights
    assert found.memory == estimate.BASE + 90_000 + 3000 * (12 + 16 + 8 + 16) + 1000 * 8 + 500 * 6
    profiled = estimate_training(CONTENTS, CONTENTS, Settings(), 1)
    # codes a second time, feature by feature; rows of all five folds
    assert profiled.disk == 3000 * (16 + 9 + 60) + 1000 * 8 * 4 + 500 * 4
    assert profiled.memory == estimate.BASE + 90_000 + 3000 * 12 + 5 * profiled.disk
    many = replace(CONTENTS, nominal=1_000_000, varied=2_000_000)  # more than all folds may take: as many as threads
    one, two = (estimate_training(many, many, Settings(), n_threads) for n_threads in (1, 2))
    assert two.memory - one.memory == one.disk
    folds = replace(CONTENTS, n_folds=2)
    assert estimate_training(folds, folds, Settings(), 1).disk == profiled.disk / 2


@pytest.mark.parametrize("method", ["paper", "profile"])
def test_work_grows_with_trees_rows_and_features(method):
    settings = Settings(method=method, n_trees=10)
    found, *others = (
        estimate_training(CONTENTS, CONTENTS, replace(settings, n_trees=n_trees), 1) for n_trees in (10, 20, 30)
    )
    steps = np.diff([found.units, *(one.units for one in others)])
    assert steps[0] == pytest.approx(steps[1])
    more = replace(CONTENTS, nominal=2000, varied=4000, weights=1000)
    assert estimate_training(more, more, settings, 1).units == pytest.approx(2 * found.units)
    assert found.time(1.0, 2) < found.time(1.0, 1) < found.time(2.0, 1)


@pytest.mark.parametrize("method", ["paper", "profile"])
def test_a_training_out_of_core_is_the_same(method, files, small, tmp_path):
    models = []
    for name, options in (("whole", ()), ("parts", ("--memory", f"{small / 1e3:g}kB"))):
        words = ("train", f"{method}.yaml", "-o", tmp_path / f"{name}.qbdt", "-j", 1, *options)
        done = qbdt(*words, cwd=files)
        assert done.returncode == 0, done.stderr
        models.append((tmp_path / f"{name}.qbdt").read_bytes())
        said = [line for line in done.stderr.splitlines() if line.startswith(("training takes", "out of core"))]
        assert len(said) == 1
        assert said[0].startswith("training takes about" if name == "whole" else "out of core, since training would")
    assert models[0] == models[1]
    assert "partitions, " in said[0]


def test_a_run_out_of_core_is_the_same(analysis, files, small, tmp_path):
    said: list[str] = []
    options: dict[str, Any] = {"figures": False, "n_threads": 1}
    whole = run_analysis(analysis, files, tmp_path / "whole", **options)
    parts = run_analysis(analysis, files, tmp_path / "parts", memory=small, say=said.append, **options)
    assert [one for one in said if one.startswith("read partition by partition, in ")]
    assert len(list((parts.folder / "scored").glob("scale_up/ttbar.part*.parquet"))) > 1
    assert (parts.folder / "model.qbdt").read_bytes() == (whole.folder / "model.qbdt").read_bytes()
    mine, its = (json.loads((one.folder / "result.json").read_text())["fit"] for one in (parts, whole))
    assert mine["expected"]["z"] == pytest.approx(its["expected"]["z"], rel=1e-6)  # templates add in another order
    (parts.folder / "result.json").unlink()
    again = run_analysis(analysis, files, tmp_path / "parts", **options)  # a fit made later, with memory enough
    assert again.steps == ("scores: there already", "fit")
    assert json.loads((parts.folder / "result.json").read_text())["fit"] == mine


@pytest.mark.parametrize(
    ("after", "memory"),
    [
        ("qbdt.analysis.event_reader.EventReader.dataset", None),
        ("qbdt.analysis.partitioned_run.find_faults", 200_000),
        ("qbdt.analysis.partitioned_run.write_description", 200_000),
    ],
)
def test_files_that_change_while_they_are_read(after, memory, analysis, files, small, tmp_path, monkeypatch):
    """Nominal events of an old file would be compared with varied ones of a new file."""
    events = tmp_path / "events"
    shutil.copytree(files, events)
    module, _, name = after.rpartition(".")
    place: Any = EventReader if name == "dataset" else sys.modules[module]
    original, times = getattr(place, name), itertools.count(1)

    def change(*arguments: Any, **options: Any) -> Any:
        found = original(*arguments, **options)
        os.utime(events / "ttbar1.parquet", (1, next(times)))
        return found

    monkeypatch.setattr(place, name, change)
    with pytest.raises(DataError, match=r"ttbar1\.parquet: the file was changed while events were read"):
        run_analysis(analysis, events, tmp_path / "run", memory=memory, figures=False, n_threads=1)
    assert not (tmp_path / "run" / "scored").exists()
    monkeypatch.undo()
    assert "fit" in run_analysis(analysis, events, tmp_path / "again", figures=False, n_threads=1).steps


def test_what_does_not_fit_is_divided(files, small, tmp_path):
    """All inner folds in memory may not fit where one piece on disk would: it was kept in memory."""
    profile = parse_analysis(ANALYSIS.replace("METHOD", "profile"), "small.yaml")
    needed = ResourcePlan(profile, files, small, 1).estimate
    assert needed.per_partition < needed.memory - 1 - needed.fixed
    said: list[str] = []
    assert ResourcePlan(profile, files, needed.memory - 1, 1).divide(tmp_path, said.append) == 2
    assert said[0].startswith("out of core, since")
    assert ResourcePlan(profile, files, needed.memory, 1).divide(tmp_path, said.append) == 1


def test_too_little_memory_is_said(analysis, files, tmp_path):
    with pytest.raises(ConfigError, match="memory=100 MB: too little; at least about"):
        ResourcePlan(analysis, files, 100_000_000).divide(tmp_path, print)
    with pytest.raises(ConfigError, match=r"memory=100 MB: the events take about .* this command reads all"):
        ResourcePlan(analysis, files, 100_000_000).require_room()


def test_what_cannot_be_divided_is_refused(analysis, files, small, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"device=.cuda.: about .* a device trains on events in memory"):
        ResourcePlan(analysis, files, small, device="cuda").divide(tmp_path, print)
    inside = parse_analysis("name: a\ndataset: {name: inferno, options: {n: 4000}}\n", "a.yaml")
    with pytest.raises(ConfigError, match=r"dataset: .* only events in files are read in partitions"):
        ResourcePlan(inside, files, small).divide(tmp_path, print)
    write_csv(pq.read_table(files / "higgs.parquet"), tmp_path / "higgs.csv")
    for path in files.glob("ttbar*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    as_csv = parse_analysis(ANALYSIS.replace("METHOD", "paper").replace("higgs.parquet", "higgs.csv"), "a.yaml")
    with pytest.raises(ConfigError, match=r"higgs\.csv: .* CSV is not read in partitions: convert it to Parquet"):
        ResourcePlan(as_csv, tmp_path, small).divide(tmp_path, print)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: _Usage(7))
    with pytest.raises(OutputError, match="of binned rows are to be kept there"):
        ResourcePlan(analysis, files, small).divide(Path(tmp_path / "not" / "there"), print)


class _Usage:
    """Free bytes of a disk."""

    def __init__(self, free):
        self.free = free


def test_inspect_says_what_training_takes(files):
    assert qbdt("inspect", "paper.yaml", cwd=files).stdout.splitlines()[-1].startswith("training takes about ")
    found = json.loads(qbdt("inspect", "paper.yaml", "--json", cwd=files).stdout)["training"]
    assert found["memory"] > estimate.BASE
    assert found["seconds"] > 0
