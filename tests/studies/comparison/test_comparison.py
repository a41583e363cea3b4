"""Comparisons on the events of an analysis."""

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits
from typer.testing import CliRunner

from qbdt.analysis import parse_analysis
from qbdt.cli.app import app
from qbdt.data import Dataset, Role, Sample
from qbdt.data.folds import HashFolds, ModuloFolds, SplitFolds
from qbdt.data.samples import inferno
from qbdt.errors import ClusterError, ConfigError, FitError, OutputError
from qbdt.files import FolderLock
from qbdt.studies.comparison import (
    Comparison,
    Plan,
    compare_methods,
    make_comparison_tables,
    make_sentence,
    run_comparison,
)
from qbdt.studies.comparison.contestants import get_contestant
from qbdt.studies.comparison.nested_training import Division
from qbdt.studies.comparison.plan import PlannedEvents
from qbdt.studies.worker_pool import run_tasks
from qbdt.tables import Table
from tests.studies.paper.events import imitation

TEXT = """
name: small
dataset: {name: inferno, options: {n: 1500, seed: 1, k: 2}}
training: {method: profile, n_trees: 5, n_leaves: 4}
fit: {bins: 5, scan: false}
"""
BAYES = "sklearn.naive_bayes.GaussianNB"


def make_plan(**options):
    return Plan(
        parse_analysis(TEXT, "small.yaml"), **{"folder": Path(), "contestants": ("qbdt profile", BAYES), **options}
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    return run_comparison(make_plan(), folder, n_jobs=1), folder


def test_folder_has_results_fit_and_a_page_that_begins_with_the_comparison(done):
    found, folder = done
    assert set(found.contestants) == {"qbdt profile", BAYES}
    content = json.loads((folder / "comparison.json").read_text())
    assert content["winner"] == found.winner
    assert json.dumps(Comparison.from_dict(content).to_dict()) == json.dumps(found.to_dict())
    assert {entry["contestant"] for entry in content["entries"]} == set(found.contestants)
    assert (folder / "fit" / "fit.json").exists()
    page = (folder / "report.html").read_text()
    assert page.index("systematics add to") < page.index("significance Z")
    assert "GaussianNB" in page


def test_the_best_has_the_smallest_uncertainty_and_is_marked(done):
    found, _ = done
    values = [found.mean(name, "sigma_full") for name in found.contestants]
    assert values == sorted(values)
    (table,) = make_comparison_tables(found)
    assert [row[0] for row in table.rows] == ["→", ""]
    assert max(map(len, str(table).splitlines())) <= 80
    assert "±" not in str(table)


def test_the_sentence_says_what_systematics_add(done):
    found, _ = done
    mine, theirs = (found.mean(name, "delta_mu") for name in ("qbdt profile", BAYES))
    sentence = make_sentence(found)
    assert f"add {mine:.3f}" in sentence
    assert f"{theirs:.3f} with GaussianNB" in sentence
    assert ("less" if mine < theirs else "more") in sentence


def test_settings_of_the_analysis_are_those_of_its_method_only():
    plan = make_plan(contestants=("qbdt profile", "QBDT (paper)", BAYES))
    assert plan.contestant("qbdt profile").known[0]["n_trees"] == 5
    assert "n_trees" not in plan.contestant("QBDT (paper)").known[0]
    assert plan.contestant(BAYES).known == ({},)


def test_a_comparison_goes_on_where_it_stopped_and_takes_more_divisions(done, monkeypatch):
    found, folder = done
    trained = []
    contestant = get_contestant(BAYES)

    def fit(*arguments):
        trained.append(1)
        return contestant.fit(*arguments)

    def spy(name):
        watched = get_contestant(name)
        return replace(watched, fit=fit) if name == BAYES else watched

    monkeypatch.setattr("qbdt.studies.comparison.plan.get_contestant", spy)
    again = compare_methods(make_plan(), folder, n_jobs=1)
    assert not trained
    assert again.entries == found.entries
    more = compare_methods(make_plan(contestants=(BAYES,), repeat=3), folder, n_jobs=1)
    assert len(trained) == 4  # two folds of two new divisions
    assert isinstance(make_comparison_tables(more)[1], Table)
    assert len(set(more.values(BAYES, "sigma_full"))) == 3


def test_another_analysis_is_refused(done):
    _, folder = done
    with pytest.raises(OutputError, match="another analysis"):
        run_comparison(make_plan(budget=2), folder, n_jobs=1)


def test_a_folder_that_another_process_works_in(done, tmp_path):
    with FolderLock(tmp_path), pytest.raises(OutputError, match="another process is working in this folder"):
        run_comparison(make_plan(), tmp_path, n_jobs=1)


def test_damaged_results_are_made_anew(done, tmp_path):
    found, folder = done
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / "comparison.json").write_text("{")
    again = run_comparison(make_plan(), tmp_path / "copy", n_jobs=1)
    assert again.entries == found.entries
    assert json.loads((tmp_path / "copy" / "comparison.json").read_text())["winner"] == found.winner


def end(task, events):
    os.kill(os.getpid(), signal.SIGKILL)


def test_fewer_processes_than_one_are_refused(tmp_path):
    for n_jobs in (0, -3):
        with pytest.raises(ConfigError, match=f"jobs={n_jobs}: must be at least 1"):
            run_comparison(make_plan(), tmp_path, n_jobs=n_jobs)


def test_a_killed_process_is_one_message():
    with pytest.raises(ClusterError, match="jobs=2: a process ended without an answer"):
        list(run_tasks(end, [1, 2], dict, 2))


def count_blas_threads(task, events):
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("outside", [1, 2])
def test_matrices_are_multiplied_on_one_thread_in_every_process(outside, n_jobs, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", str(outside))
    with threadpool_limits(outside, user_api="blas"):
        found = [threads for _, threads in run_tasks(count_blas_threads, [1, 2], dict, n_jobs)]
    assert all(threads <= {1} for threads in found)  # Apple's library names none


@pytest.mark.parametrize(
    ("rule", "n_inner"), [(ModuloFolds(2, "n"), 6), (HashFolds(3, ("n",)), 6), (SplitFolds(5, "n"), 5)]
)
def test_inner_folds_divide_outer_ones(rule, n_inner):
    division = Division.of_rule(imitation(300), rule, 1)
    assert division.inner == n_inner
    assert division.rule == rule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"contestants": ("none",)}, "no contestant none"),
        ({"contestants": ("sklearn.none.None",)}, "cannot be imported"),
        ({"contestants": ("..x",)}, "cannot be imported"),
        ({"contestants": ("sklearn.preprocessing.StandardScaler",)}, "fit.X, y, sample_weight"),
        ({"repeat": 0}, "repeat=0"),
        ({"budget": 0}, "budget=0"),
    ],
)
def test_mistakes_are_found_before_events_are_read(options, message):
    with pytest.raises(ConfigError, match=message):
        make_plan(**options)


def test_events_without_folds_are_refused():
    text = TEXT.replace("inferno, options: {n: 1500, seed: 1, k: 2}", "inferno, options: {n: 300, seed: 1}")
    plan = Plan(parse_analysis(text, "a.yaml"), Path(), (BAYES,))
    events = object.__new__(PlannedEvents)
    events.plan, events.data = plan, imitation(300).with_folds(None)
    with pytest.raises(ConfigError, match="folds: needed to compare"):
        _ = events._rule


def test_no_method_is_chosen_by_recorded_data_and_none_is_shown(tmp_path, monkeypatch):
    made = inferno(600, seed=1, k=2)
    data = Sample("data", Role.DATA, made.samples[1].events)
    recorded = Dataset([*made.samples, data], made.systematics, made.folds)
    monkeypatch.setattr("qbdt.studies.comparison.plan.load", lambda *given: recorded)
    found = run_comparison(make_plan(contestants=(BAYES,)), tmp_path, n_jobs=1)
    assert found.scored is not None
    assert [sample.name for sample in found.scored.samples] == ["signal", "background"]
    assert "recorded data" not in (tmp_path / "report.html").read_text()
    assert json.loads((tmp_path / "fit" / "fit.json").read_text())["observed"] is None


def test_a_method_whose_scores_cannot_be_fitted_is_named(tmp_path, monkeypatch):
    def refuse(scored, settings):
        raise FitError("all scores are 0: nothing can be binned")

    monkeypatch.setattr("qbdt.studies.comparison.comparison.measure_fit", refuse)
    with pytest.raises(FitError, match=r"GaussianNB: its scores cannot be fitted \(all scores are 0.*compare without"):
        compare_methods(make_plan(contestants=(BAYES,)), tmp_path, n_jobs=1)


def test_what_the_fit_of_the_score_leaves_out_is_said():
    text = TEXT.replace("bins: 5", "bins: 5, free: {k_b: background}")
    regions = (
        "\nregions: {signal: {selection: x0 > 0}, side: {selection: x0 < 0, observable: x1, bins: 3, range: [-1, 1]}}"
    )
    said = parse_analysis(text + regions, "a.yaml").beside_the_score
    assert said.startswith("σ_μ here is that of the score alone: region side is left out; k_b not free. The whole")
    assert parse_analysis(TEXT, "a.yaml").beside_the_score == ""


def test_command_prints_table_sentence_and_report(tmp_path, monkeypatch):
    (tmp_path / "a.yaml").write_text(TEXT)
    options = ["--out", str(tmp_path / "out"), "--jobs", "1", "--quiet", "--method", BAYES]
    done = CliRunner().invoke(app, ["compare", str(tmp_path / "a.yaml"), *options])
    assert done.exit_code == 0, done.output
    assert "Systematics add" in done.output
    assert done.output.rstrip().splitlines()[-1].startswith("Report: ")
    monkeypatch.setattr("qbdt.studies.comparison.comparison_page.write_report", lambda *given: None)  # is there
    printed = CliRunner().invoke(app, ["compare", str(tmp_path / "a.yaml"), *options, "--json"])
    assert np.isfinite(json.loads(printed.output)["entries"][0]["result"]["sigma_full"])
