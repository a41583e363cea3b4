"""Every method of every command that knows several runs to its end: on few events, with few trees."""

import json
import math
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from qbdt.cli.app import app
from qbdt.data.folds import HashFolds
from qbdt.data.samples.bundled import tautaugamma
from qbdt.data.samples.public_files import paper_tautaugamma
from qbdt.studies.benchmark import problems
from qbdt.studies.comparison import contestants
from qbdt.studies.paper import measurement, published_split, study
from qbdt.studies.paper.paper_methods import METHODS
from qbdt.studies.paper.paper_tables import make_main_table
from qbdt.studies.paper.statements import make_statements
from qbdt.studies.paper.study import StudyOptions, reproduce
from qbdt.training.settings import Settings

pytest.importorskip("lightgbm")
pytest.importorskip("xgboost")


def thinned(data, n):
    """Keep one event in n, and its shifted copies."""
    return data.select(lambda events: HashFolds(n, ("event_number",), 7).assign(events) == 0)


@pytest.fixture(scope="module")
def bundled():
    return thinned(tautaugamma(k=2), 40)


def run_study(data, folder, monkeypatch, halves):
    """All methods; fits by pyhf and the report are tested in tests/studies/paper, with few methods."""
    monkeypatch.setattr(study, "load_events", lambda source: data)
    monkeypatch.setattr(published_split, "_fit_by_pyhf", lambda templates: {})
    monkeypatch.setattr(measurement, "EDGE_FOLDS", 2)
    return reproduce(StudyOptions(trees=2, halves=halves, jobs=1), folder, methods=METHODS)


def assert_complete(done):
    assert set(done.published) == {method.name for method in METHODS if method.available}
    assert [row[0] for row in make_main_table(done).rows] == list(done.published)
    for name, result in done.published.items():
        assert all(math.isfinite(case["z_full"]) for case in result["cases"].values()), name
        assert math.isfinite(result["optimised"]["z_full_optimised"])
    assert make_statements(done)


def test_reproduce_on_the_bundled_sample(bundled, tmp_path, monkeypatch):
    done = run_study(bundled, tmp_path, monkeypatch, halves=1)
    assert_complete(done)
    assert set(done.halves) == {method.name for method in METHODS if method.available and method.in_halves}


@pytest.mark.shared
def test_reproduce_on_the_papers_events(paper_files, tmp_path, monkeypatch):
    assert_complete(run_study(thinned(paper_tautaugamma(paper_files), 4), tmp_path, monkeypatch, halves=0))


def test_the_physics_benchmark_with_every_contestant(bundled, tmp_path, monkeypatch):
    *others, last = problems.PROBLEMS
    small = replace(last, load=lambda folders: bundled, inner_folds=2, folds=2, seeds=1)
    monkeypatch.setattr(problems, "PROBLEMS", (*others, small))
    quick = {"n_trees": 3, "n_estimators": 3, "max_iter": 3}
    monkeypatch.setattr(contestants, "CONTESTANTS", tuple(shortened(c, quick) for c in contestants.CONTESTANTS))
    arguments = ["bench", "physics", "-p", "P4", "--budget", "1", "--check", "without"]
    arguments += ["--cache", str(tmp_path), "--quiet", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.exception
    fitted = {record["contestant"] for record in json.loads(done.stdout)["fits"]}
    assert fitted == {c.name for c in contestants.CONTESTANTS if c.available}


def shortened(contestant, quick):
    """The same contestant with its first settings, and few trees."""
    first = contestant.known[0] or {"n_trees": 3}
    known = {name: quick.get(name, value) for name, value in first.items()}
    return replace(contestant, known=(known,), ranges={})


ANALYSIS = """
dataset: {{name: inferno, options: {{n: 600, k: 2}}}}
training: {{method: {method}, n_trees: 4, n_leaves: 3}}
fit: {{bins: 5, scan: false}}
"""


@pytest.mark.parametrize("method", Settings.rules()["method"].choices)
def test_run_diagnose_tune_and_report(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "analysis.yaml").write_text(ANALYSIS.format(method=method))
    commands = (
        ["run", "analysis.yaml", "--out", "run", "--no-figures"],
        ["diagnose", "run"],
        ["tune", "analysis.yaml", "--trials", "1", "--out", "tuned"],
        ["report", "run"],
    )
    for command in commands:
        done = CliRunner().invoke(app, [*command, "--quiet"])
        assert done.exit_code == 0, (command, done.output, done.exception)
    assert method in (tmp_path / "run" / "report.html").read_text()
