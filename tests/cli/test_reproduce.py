"""The commands reproduce, demo and report."""

import json

import pytest
from typer.testing import CliRunner

from qbdt.cli import reproduce as command
from qbdt.cli.app import app
from qbdt.studies.paper import study
from tests.studies.paper.events import imitation_instead


@pytest.fixture
def events(monkeypatch):
    monkeypatch.setattr(study, "load_events", imitation_instead)
    monkeypatch.setattr(command, "DEMO_METHODS", ("QBDT0",))
    monkeypatch.setattr(command, "DEMO_TREES", 2)
    monkeypatch.setattr(command, "DEMO_HALVES", 1)


def test_demo_ends_with_the_main_table_and_the_report(events, tmp_path):
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--quiet"])
    assert done.exit_code == 0, done.output
    assert "Expected significance, seven sources" in done.output
    assert done.output.rstrip().splitlines()[-1].startswith("Report: ")
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert set(json.loads((tmp_path / "study.json").read_text())["published"]) == {"QBDT0"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "--data", "absent"], "no such folder"),
        (["reproduce", "--trees", "0"], "trees=0"),
        (["report", "absent"], "not the folder of a finished"),
    ],
)
def test_mistakes_get_one_message(arguments, message):
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code != 0
    assert message in str(done.exception)
