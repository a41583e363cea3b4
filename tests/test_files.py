"""Files appear whole or not at all, and a folder of steps belongs to one set of settings."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qbdt.errors import MALFORMED, ConfigError, OutputError
from qbdt.files import FolderLock, StepFolder, digest_file, replace_folder, require_place, whole_files, write_text
from qbdt.files.records import read_floats, read_record, write_record
from qbdt.report.style import save


def test_an_existing_file_is_replaced_only_when_asked(tmp_path):
    write_text(tmp_path / "a", "one")
    with pytest.raises(OutputError, match="a exists; force=True overwrites it"):
        write_text(tmp_path / "a", "two", force=False)
    assert (tmp_path / "a").read_text() == "one"
    with pytest.raises(OutputError, match="No such file"):
        write_text(tmp_path / "absent" / "a", "two")


def test_a_folder_stays_as_it_was_where_the_block_fails(tmp_path):
    target = tmp_path / "fit"
    with replace_folder(target) as scratch:
        (scratch / "old").touch()
    with pytest.raises(ZeroDivisionError), replace_folder(target) as scratch:
        (scratch / str(1 // 0)).touch()
    assert [path.name for path in target.iterdir()] == ["old"]
    with replace_folder(target) as scratch:
        (scratch / "new").touch()
    assert [path.name for path in target.iterdir()] == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]


def test_steps_are_done_once_and_only_for_the_same_settings(tmp_path):
    steps = StepFolder(tmp_path, {"seed": 1, "sizes": (1, 2)}, "a study")
    assert steps.get("a", lambda: {"x": (1,)}) == {"x": [1]}
    again = StepFolder(tmp_path, {"seed": 1, "sizes": (1, 2)})
    assert again.has("a")
    assert again.get("a", lambda: {"x": 2}) == {"x": [1]}
    with pytest.raises(ConfigError, match="holds a study with another seed: choose another folder, or force=True"):
        StepFolder(tmp_path, {"seed": 2, "sizes": (1, 2)}, "a study")
    with pytest.raises(ConfigError, match=r"choose another folder$"):
        StepFolder(tmp_path, {"seed": 2}, force=None)
    (tmp_path / "mine.txt").touch()
    assert not StepFolder(tmp_path, {"seed": 2}, force=True).has("a")
    assert (tmp_path / "mine.txt").exists()


def test_force_removes_what_the_folder_owns(tmp_path):
    StepFolder(tmp_path, {"seed": 1}, record="run.json")
    (tmp_path / "fit").mkdir()
    (tmp_path / "notes.json").touch()
    StepFolder(tmp_path, {"seed": 2}, force=True, owned=("fit",), record="run.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.json", "run.json"]


@pytest.mark.parametrize("damaged", ["", '{"x":', "[]", "9" * 5000, "[" * 100_000, '{"x": 2, "checksum": "0"}'])
def test_a_damaged_step_is_done_again(tmp_path, damaged):
    steps = StepFolder(tmp_path, None)
    steps.put("a", {"x": 1})
    (tmp_path / "a.json").write_text(damaged)
    assert not steps.has("a")
    assert steps.find("a") == {}
    assert steps.get("a", lambda: {"x": 3}) == read_record(tmp_path / "a.json") == {"x": 3}


def test_one_flipped_bit_of_a_record_is_noticed_or_changes_nothing(tmp_path):
    path, content = tmp_path / "a.json", {"mu": [1.25, None, -3e-7], "name": "τ", "more": {"a": True}}
    write_record(path, content)
    written = path.read_bytes()
    noticed = 0
    for place in range(8 * len(written)):
        damaged = bytearray(written)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(bytes(damaged))
        try:
            found = read_record(path)
        except ValueError:
            noticed += 1
        else:  # white space, or the name of the checksum: then it is one more entry
            assert {key: found[key] for key in content} == content
    assert noticed > 6 * len(written)


def test_records_of_earlier_versions_have_no_checksum(tmp_path):
    (tmp_path / "a.json").write_text('{"x": 3}')
    assert read_record(tmp_path / "a.json") == {"x": 3}


@pytest.mark.parametrize("values", ["x", [1, 2], [[1]], [1, "x"], [1e31], [float("inf")], {"a": 1}, [10**400]])
def test_numbers_of_a_record_are_numbers(values):
    with pytest.raises(MALFORMED):
        read_floats(values, 1)


def test_digest_of_a_file(tmp_path):
    (tmp_path / "a").write_text("abc")
    assert digest_file(tmp_path / "a").startswith("ba7816bf")


def test_a_place_that_cannot_be_written_is_refused_and_nothing_is_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file is no folder"):
        require_place(tmp_path / "file" / "a" / "b", folder=True)
    require_place(tmp_path / "a" / "b", folder=True)
    require_place(tmp_path / "file")
    with pytest.raises(OutputError, match="there is no folder"):
        require_place(tmp_path / "a" / "b")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OutputError, match="may not be written"):
        require_place(tmp_path / "a" / "b", folder=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_two_processes_do_not_share_a_scratch_folder(tmp_path):
    target = tmp_path / "fit"
    with replace_folder(target) as slow:
        (slow / "slow").touch()
        with replace_folder(target) as fast:
            (fast / "fast").touch()
        assert [path.name for path in slow.iterdir()] == ["slow"]
    assert [path.name for path in target.iterdir()] == ["slow"]
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]


def test_only_what_a_folder_owns_is_replaced(tmp_path):
    target = tmp_path / "fit"
    target.mkdir()
    for name in ("a", "b", "mine"):
        (target / name).write_text("old")
    with pytest.raises(ZeroDivisionError), replace_folder(target, ["a", "b"]) as scratch:
        (scratch / "a").write_text(f"new {1 // 0}")
    assert {path.read_text() for path in target.iterdir()} == {"old"}
    with replace_folder(target, ["a", "b"]) as scratch:
        (scratch / "a").write_text("new")
    assert {path.name: path.read_text() for path in target.iterdir()} == {"a": "new", "mine": "old"}


def test_a_folder_is_worked_in_by_one_process(tmp_path):
    with FolderLock(tmp_path / "run"), pytest.raises(OutputError, match="another process is working"):
        FolderLock(tmp_path / "run")
    with FolderLock(tmp_path / "run") as lock:
        lock.require()
        (tmp_path / "run" / ".lock").unlink()
        (tmp_path / "run").rmdir()
        with pytest.raises(OutputError, match="was removed while"):
            lock.require()


def test_a_lock_dies_with_its_process(tmp_path):
    lock = "lock = qbdt.files.FolderLock(pathlib.Path(sys.argv[1]))"
    code = f"import sys, pathlib, qbdt.files; {lock}; print(1, flush=True); input()"
    arguments = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(OutputError):
            FolderLock(tmp_path)
        other.kill()
        other.wait()
        FolderLock(tmp_path).require()


def test_leftovers_of_killed_processes_are_removed_and_those_of_living_ones_stay(tmp_path):
    def grow_old(path: Path) -> Path:
        os.utime(path, (0, 0))
        return path

    left = tmp_path / ".model.qbdt.abc.unfinished.qbdt"
    left.touch()
    folder = tmp_path / ".fit.abc.unfinished"
    folder.mkdir()
    for path in (left, folder):
        grow_old(path)
    with replace_folder(tmp_path / "fit") as living:
        grow_old(living)
        write_text(tmp_path / "model.qbdt", "")
        with replace_folder(tmp_path / "fit"):
            assert living.exists()
    assert not left.exists()
    assert not folder.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit", "model.qbdt"]


def test_files_of_a_pattern_are_replaced_together(tmp_path):
    target = tmp_path / "scores"
    target.mkdir()
    for name in ("a.parquet", "b.parquet", "mine.txt"):
        (target / name).write_text("old")
    with replace_folder(target, ["*.parquet"]) as scratch:
        (scratch / "a.parquet").write_text("new")
        (scratch / "c.parquet").write_text("new")
    found = {path.name: path.read_text() for path in target.iterdir()}
    assert found == {"a.parquet": "new", "c.parquet": "new", "mine.txt": "old"}


@pytest.mark.parametrize("swaps", [True, False])
def test_folders_change_places_with_and_without_help_of_the_system(tmp_path, monkeypatch, swaps):
    if not swaps:
        monkeypatch.setattr(whole_files, "_swap", lambda one, other: False)
    for content in ("one", "two"):
        with replace_folder(tmp_path / "fit") as scratch:
            write_text(scratch / "inner", content)
        assert (tmp_path / "fit" / "inner").read_text() == content
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]


class Drawn:
    """A figure."""

    def savefig(self, target, **options):
        target.write(b"new")


def test_a_figure_is_saved_whole_or_not_at_all(tmp_path, monkeypatch):
    whole = Path.write_bytes

    def fill_disk(path, content):
        whole(path, content[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.png").write_bytes(b"old")
    with monkeypatch.context() as changed:
        changed.setattr(Path, "write_bytes", fill_disk)
        with pytest.raises(OutputError, match=r"a\.png: No space left on device"):
            save(Drawn(), tmp_path / "a.png")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.png", b"old")]
