"""`qbdt generate` as a user meets it."""

import json
from functools import partial

import pytest
from typer.testing import CliRunner

import qbdt.studies.generator
from qbdt.cli.app import app
from tests.cli.inside import qbdt as command


def test_generate_writes_a_sample_and_says_what_is_in_it(tmp_path, monkeypatch):
    pytest.importorskip("pythia8mc")
    points = {"signal": 2_000, "background": 10_000}
    small = partial(qbdt.studies.generator.driver.GenerateSettings, points=points, pilot_points=20_000)
    monkeypatch.setattr(qbdt.studies.generator, "GenerateSettings", small)
    out = tmp_path / "sample"
    sizes = ["--signal", "20", "--background", "20", "--workers", "1", "--tau-decays", "50"]
    done = CliRunner().invoke(app, ["generate", "tautaugamma", "--out", str(out), *sizes])
    assert done.exit_code == 0, done.output
    assert "signal: 20 selected events" in done.stdout
    assert "expected at 80 fb⁻¹" in done.stdout
    assert json.loads((out / "metadata.json").read_text())["processes"]["background"]["selected"] == 20


def test_no_events_are_refused(tmp_path):
    done = command("generate", "tautaugamma", "--signal", 0, "--background", 1, "--out", tmp_path / "x")
    assert (done.returncode, done.stderr) == (2, "qbdt: signal=0: must be at least 1\n")


def test_a_file_is_no_folder(tmp_path):
    pytest.importorskip("pythia8mc")  # its absence is said first
    (tmp_path / "file").write_text("")
    done = command("generate", "tautaugamma", "--signal", 1, "--background", 1, "--out", tmp_path / "file")
    assert done.returncode == 2
    assert "file: a folder is needed, and this is a file" in done.stderr
