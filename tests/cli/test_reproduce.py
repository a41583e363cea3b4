"""The commands reproduce and report."""

import json

import pytest
from typer.testing import CliRunner

from qbdt.cli.app import app
from qbdt.studies import paper
from qbdt.studies.paper import measurement, study
from qbdt.studies.paper.paper_methods import get_method
from tests.studies.paper.events import imitation_instead


def test_reproduce_ends_with_the_main_table_and_the_report(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "load_events", imitation_instead)
    monkeypatch.setattr(measurement, "EDGE_FOLDS", 2)
    monkeypatch.setattr(paper, "METHODS", (get_method("QBDT0"),))
    options = ["--trees", "2", "--halves", "1", "--jobs", "1", "--out", str(tmp_path), "--quiet"]
    done = CliRunner().invoke(app, ["reproduce", *options])
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
