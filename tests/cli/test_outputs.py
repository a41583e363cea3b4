"""What a command writes takes the place of nothing but what commands wrote: not of its inputs, not of other things."""

import os
import shutil

import pytest

from tests.cli.inside import qbdt
from tests.faults.cases import write_inputs

TRAIN = ("train", "paper.yaml", "-q", "-j", "1")
RUN = ("run", "paper.yaml", "--no-figures", "-q", "-j", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder with events, analyses and a model."""
    folder = tmp_path_factory.mktemp("made")
    write_inputs(folder)
    done = qbdt(*TRAIN, "-o", "m.qbdt", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "work")


def read_all(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


def refuse(folder, message, *words):
    """Call a command that must be refused, and leave everything as it was."""
    before = read_all(folder)
    done = qbdt(*words, cwd=folder)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert read_all(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        (*TRAIN, "-o", "higgs.parquet", "--force"),
        ("score", "paper.yaml", "-m", "m.qbdt", "-o", ".", "--force", "-q"),
    ],
)
def test_events_are_not_replaced_by_what_is_made_of_them(folder, words):
    refuse(folder, "is read by the analysis and would be lost; choose another place", *words)


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_run_does_not_replace_the_events_that_it_reads(folder, force):
    (folder / "scored").mkdir()
    (folder / "higgs.parquet").rename(folder / "scored" / "higgs.parquet")
    text = (folder / "paper.yaml").read_text().replace("files: higgs", "files: scored/higgs")
    (folder / "paper.yaml").write_text(text)
    refuse(folder, "is read by the analysis and would be lost", *RUN, "-o", ".", *force)


def test_a_fit_does_not_replace_the_events_that_it_reads(folder):
    (folder / "figures").mkdir()
    (folder / "higgs.parquet").rename(folder / "figures" / "higgs.parquet")
    text = (folder / "paper.yaml").read_text().replace("files: higgs", "files: figures/higgs")
    (folder / "paper.yaml").write_text(text)
    words = ("fit", "paper.yaml", "--score", "x", "-o", ".", "--force", "-q")
    refuse(folder, "is read by the analysis and would be lost", *words)


@pytest.mark.parametrize(
    "words",
    [
        (*TRAIN, "-o", "paper.yaml", "--force"),
        ("export", "m.qbdt", "--to", "cpp", "-o", "m.qbdt", "--force"),
        ("export", "m.qbdt", "--to", "cpp", "-o", "paper.yaml", "--events", "paper.yaml", "--force"),
    ],
)
def test_the_model_or_analysis_that_a_command_reads_is_not_replaced(folder, words):
    refuse(folder, "this file is read by the same command", *words)


@pytest.mark.parametrize("name", ["scored", "fit", "result.json"])
def test_a_run_does_not_replace_what_is_of_no_run(folder, name):
    place = folder / "run" / name
    place.mkdir(parents=True)
    (place / "mine").write_text("mine")
    refuse(folder, f"{name} would be replaced, and no run.json says that it is of a run", *RUN, "-o", "run")
    assert qbdt(*RUN, "-o", "run", "--force", cwd=folder).returncode == 0
    assert not (place / "mine").exists()


def test_a_comparison_does_not_replace_a_fit_of_something_else(folder):
    (folder / "out" / "fit").mkdir(parents=True)
    (folder / "out" / "fit" / "fit.json").write_text("{}")
    words = ("compare", "paper.yaml", "-o", "out", "--budget", "2", "-j", "1", "-q")
    refuse(folder, "out holds a fit of something else", *words)


@pytest.mark.parametrize(
    "words",
    [
        (*TRAIN, "-o"),
        ("score", "paper.yaml", "-m", "m.qbdt", "-q", "-o"),
        ("export", "m.qbdt", "--to", "cpp", "-o"),
        ("init",),
    ],
)
def test_a_file_takes_the_place_of_files_only(folder, words):
    (folder / "a.root").mkdir()
    refuse(folder, "a.root: a folder is there, where a file is to be written", *words, "a.root", "--force")
    os.mkfifo(folder / "b.root")  # as /dev/null is, which a user with all rights would replace
    refuse(folder, "b.root: a device or pipe is there", *words, "b.root", "--force")


@pytest.mark.parametrize(
    "words",
    [
        (*RUN, "-o"),
        ("score", "paper.yaml", "-m", "m.qbdt", "-q", "--force", "-o"),
        ("fit", "paper.yaml", "--score", "x", "-q", "--force", "-o"),
        ("plot", "paper.yaml", "-q", "--force", "-o"),
    ],
)
def test_a_folder_takes_the_place_of_no_file(folder, words):
    (folder / "out").write_text("mine")
    refuse(folder, "out: a folder is needed, and this is a file", *words, "out")
    (folder / "link").symlink_to("nowhere")
    refuse(folder, "link: a link to nowhere, which is not there", *words, "link")
