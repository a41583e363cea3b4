"""`qbdt bench physics`, with few events and quick contestants."""

import json

import pytest
from typer.testing import CliRunner

from qbdt.cli.app import app
from qbdt.studies.benchmark import physics, problems
from qbdt.studies.comparison import contestants
from qbdt.studies.comparison.contestants import OURS
from tests.studies.comparison.contestants import Witness
from tests.studies.paper.events import imitation

pytest.importorskip("xgboost")


@pytest.fixture
def quick(monkeypatch):
    """P4 on few events; a peer, and one that stands in for the profiled method."""
    peer = Witness(numbered=False).contestant("XGBoost")
    ours = Witness(numbered=False).contestant(OURS, method="profile")
    monkeypatch.setattr(contestants, "CONTESTANTS", (peer, ours))
    *others, last = problems.PROBLEMS
    small = problems.Problem(
        "P4", last.title, lambda folders: imitation(300, 900), last.identifier, last.inner_folds, last.folds, 2
    )
    monkeypatch.setattr(problems, "PROBLEMS", (*others, small))


def test_tables_criteria_and_json(quick, tmp_path):
    out = tmp_path / "physics.json"
    arguments = ["bench", "physics", "-p", "P4", "-p", "P1", "--budget", "1", "--events", "1000", "--quiet"]
    arguments += [
        "--check",
        "without",
        "--cache",
        str(tmp_path / "cache"),
        "--out",
        str(out),
        "--markdown",
        str(tmp_path / "tables.md"),
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.exception
    for text in ("P1: the INFERNO problem", "P4: simulated", "best peer", "no sources", "Criteria"):
        assert text in done.output
    content = json.loads(out.read_text())
    assert {record["contestant"] for record in content["fits"]} == {"XGBoost", OURS}
    assert {criterion["problem"] for criterion in content["criteria"]} == {"P1", "P4"}
    assert "| XGBoost |" in (tmp_path / "tables.md").read_text()
    refused = CliRunner().invoke(app, arguments)
    assert "physics.json exists; --force overwrites it" in str(refused.exception)
    again = CliRunner().invoke(app, [*arguments, "--json", "--force"])
    assert json.loads(again.stdout)["fits"] == content["fits"]


def test_an_unknown_device_is_named_before_anything_is_trained(quick, tmp_path):
    done = CliRunner().invoke(app, ["bench", "physics", "-p", "P4", "--device", "gpu", "--cache", str(tmp_path / "c")])
    assert "device='gpu': must be None for the CPU, 'cuda'" in str(done.exception)
    assert not (tmp_path / "c").exists()


def test_checks_with_noise_and_times(quick, tmp_path, monkeypatch):
    monkeypatch.setattr(physics, "BINS", (20,))
    arguments = ["bench", "physics", "-p", "P4", "--budget", "1", "--seeds", "1", "--quiet", "--json"]
    arguments += ["--check", "noise", "--check", "times", "--events", "300", "--cache", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.exception
    content = json.loads(done.stdout)
    setups = {record["setup"] for record in content["fits"] if record["contestant"] == OURS}
    assert len([setup for setup in setups if "25 noise sources, fitted with 25 real sources" in setup]) == 1
    assert len(setups) == 5
    assert {record["kind"] for record in content["times"]} == {"P1", "weight", "shape"}
    assert any("25 noise sources" in criterion["claim"] for criterion in content["criteria"])


def test_processes_change_no_number(tmp_path):
    arguments = ["bench", "physics", "-p", "P4/8", "-c", "sklearn.tree.ExtraTreeClassifier", "--seeds", "2"]
    arguments += ["--no-checks", "--quiet", "--json"]
    found = {}
    for jobs in ("1", "2"):
        done = CliRunner().invoke(app, [*arguments, "--jobs", jobs, "--cache", str(tmp_path / jobs)])
        assert done.exit_code == 0, done.exception
        found[jobs] = json.loads(done.stdout)
    assert found["1"] == found["2"]
    assert {record["seed"] for record in found["1"]["fits"]} == {1, 2}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "P6"], "no problem P6; there are: P1, P2"),
        (["-p", "P2"], "data=None: a folder with cms_htautau/ is needed"),
        (["-p", "P3", "--data", "absent"], "data=absent: a folder with tautaugamma/"),
        (["-c", "CatBoost"], "no contestant CatBoost"),
        (["--budget", "0"], "budget=0"),
        (["--jobs", "0"], "jobs=0"),
        (["--check", "luck"], "no check luck"),
    ],
)
def test_mistakes_get_one_message(arguments, message, tmp_path):
    done = CliRunner().invoke(app, ["bench", "physics", "--cache", str(tmp_path), *arguments])
    assert done.exit_code != 0
    assert message in str(done.exception)
