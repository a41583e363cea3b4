"""The command line as a user meets it: one message and exit code 2 for what a user can cause, never a traceback."""

import json
import os
import subprocess
import sys

import pytest

from tests.cli.inside import qbdt


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    assert qbdt("init", "a.yaml", "--example", "synthetic", cwd=folder).returncode == 0
    return folder


def test_inspect(synthetic):
    done = qbdt("inspect", "a.yaml", cwd=synthetic)
    assert done.returncode == 0
    assert "background" in done.stdout
    found = json.loads(qbdt("inspect", "a.yaml", "--json", cwd=synthetic).stdout)
    assert [s["name"] for s in found["samples"]] == ["signal", "background"]
    assert found["sources"][2]["up"] == pytest.approx(0.1)


def test_a_workspace_that_cannot_be_used_is_refused(synthetic):
    text = (synthetic / "a.yaml").read_text()
    assert "training:\n" in text
    (synthetic / "with.yaml").write_text(text.replace("training:\n", "training:\n  with: combination.json\n"))
    done = qbdt("inspect", "with.yaml", cwd=synthetic)
    missing = synthetic / "combination.json"
    assert (done.returncode, done.stderr) == (2, f"qbdt: training.with: no workspace at {missing}\n")


def test_init_never_overwrites(synthetic):
    done = qbdt("init", "a.yaml", cwd=synthetic)
    assert (done.returncode, done.stderr) == (2, "qbdt: a.yaml exists; --force overwrites it\n")
    done = qbdt("init", "b.yaml", "--example", "nothing", cwd=synthetic)
    assert done.returncode == 2
    assert "synthetic, tautaugamma, template" in done.stderr
    done = qbdt("init", "no/folder/b.yaml", cwd=synthetic)
    assert (done.returncode, done.stderr) == (2, "qbdt: no/folder/b.yaml: No such file or directory\n")


def test_a_failing_write_keeps_what_was_there(synthetic):
    before = (synthetic / "a.yaml").read_text()
    command = f"ulimit -f 0; {sys.executable} -m qbdt init a.yaml --force"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=synthetic, check=False)
    assert done.returncode != 0
    assert (synthetic / "a.yaml").read_text() == before
    assert sorted(path.name for path in synthetic.iterdir() if path.name.startswith(".")) == []


def test_a_closed_pipe_is_no_error(synthetic):
    command = f"set -o pipefail; {sys.executable} -m qbdt schema | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=synthetic, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


def test_wrong_options_exit_with_2(synthetic):
    done = qbdt("inspect", "--no-such-option")
    assert done.returncode == 2
    assert "no-such-option" in done.stderr


def test_output_survives_a_terminal_without_unicode(synthetic):
    done = subprocess.run(
        [sys.executable, "-m", "qbdt", "inspect", "a.yaml"],
        capture_output=True,
        cwd=synthetic,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
        check=False,
    )
    assert done.returncode == 0


def test_faults_end_in_one_message(synthetic):
    done = qbdt("inspect", "missing.yaml", cwd=synthetic)
    assert (done.returncode, done.stderr) == (2, "qbdt: missing.yaml: No such file or directory\n")
    (synthetic / "bad.yaml").write_text("dataset: {name: inferno}\ntrainig: {}\n")
    done = qbdt("inspect", "bad.yaml", cwd=synthetic)
    assert (done.returncode, done.stderr) == (2, "qbdt: bad.yaml:2: trainig: unknown key; did you mean training?\n")


def test_names_from_files_are_not_markup(synthetic):
    text = (
        'features: [x]\nsamples: {"[red]s": {role: signal, files: x.csv}, "[/]b": {role: background, files: x.csv}}\n'
    )
    (synthetic / "markup.yaml").write_text(text)
    (synthetic / "x.csv").write_text("x\n1\n2\n")
    done = qbdt("inspect", "markup.yaml", cwd=synthetic)
    assert "[red]s" in done.stdout
    assert "[/]b" in done.stdout


def test_schema_and_version():
    assert json.loads(qbdt("schema").stdout)["title"] == "Analysis"
    assert qbdt("--version").stdout.startswith("qbdt ")
