"""Files are written whole or not at all, say where they come from, and finished steps are kept.

A full disk or Ctrl-C never costs what was there before.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from qbdt.errors import ConfigError, OutputError

__all__ = [
    "FolderLock",
    "StepFolder",
    "digest",
    "digest_file",
    "make_folder",
    "provenance",
    "replace_file",
    "replace_folder",
    "versions",
    "write_text",
]


@contextmanager
def _output_errors(path: Path) -> Iterator[None]:
    """Raise errors of the operating system as `OutputError` that names the path."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error


def _umask() -> int:
    """Permissions that new files do not get; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _try_lock(handle: int) -> bool | None:
    """Lock an open file or folder: whether it was free, None where the file system has no locks.

    The operating system takes the lock back when the process ends, however it ends.
    """
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError) as error:
        held = isinstance(error, OSError) and error.errno in (errno.EWOULDBLOCK, errno.EACCES)
        return False if held else None
    return True


@contextmanager
def _own_scratch(scratch: Path) -> Iterator[int]:
    """Keep a scratch file or folder locked, so that nobody takes it for what a killed process left."""
    handle = os.open(scratch, os.O_RDONLY)
    try:
        _try_lock(handle)
        yield handle
    finally:
        os.close(handle)
        _remove(scratch)


SCRATCH = ".unfinished"
"""Scratch files and folders are called .NAME.RANDOM.unfinished (with the ending of NAME), beside what they replace."""

SETTLED = 60.0
"""Seconds after which a scratch file surely has the lock of its process, if there is one."""


def _remove_leftovers(path: Path) -> None:
    """Remove scratch files and folders that killed processes left beside `path`: those that nobody holds a lock on."""
    for found in path.parent.glob(f".{glob.escape(path.name[:40])}.*{SCRATCH}*"):
        with suppress(OSError):
            handle = os.open(found, os.O_RDONLY)
            try:
                old = time.time() - os.fstat(handle).st_mtime > SETTLED
                if old and _try_lock(handle):
                    _remove(found)
            finally:
                os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def replace_file(path: Path, *, force: bool = True) -> Iterator[Path]:
    """Yield a scratch path beside `path`; when the block ends well, it takes its place.

    Parameters
    ----------
    path
        The file to write.
    force
        Whether an existing file may be replaced.
    """
    with _output_errors(path):
        if path.exists() and not force:
            raise OutputError(f"{path} exists; force=True overwrites it")
        _remove_leftovers(path)
        prefix, suffix = f".{path.name[:40]}.", f"{SCRATCH}{path.suffix}"
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=suffix)
        os.close(handle)
        scratch = Path(name)
        with _own_scratch(scratch) as held:
            yield scratch
            os.fsync(held)
            scratch.chmod(0o666 & ~_umask())  # mkstemp lets only the owner read
            scratch.replace(path)


@contextmanager
def replace_folder(path: Path, owned: Sequence[str] | None = None) -> Iterator[Path]:
    """Yield an empty scratch folder beside `path`; when the block ends well, it takes its place as a whole.

    Parameters
    ----------
    path
        The folder to write.
    owned
        What of a folder that is there is replaced, by name: everything else in it stays. All of it by default.
    """
    with _output_errors(path):
        _remove_leftovers(path)
        scratch, aside = (_make_scratch(path) for _ in range(2))
        with _own_scratch(scratch), _own_scratch(aside):
            yield scratch
            if not path.exists():
                scratch.replace(path)
            elif owned is None:
                path.replace(aside)
                scratch.replace(path)
            else:
                for name in owned:
                    _exchange(path / name, scratch / name, aside / name)


def _make_scratch(path: Path) -> Path:
    scratch = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=SCRATCH))
    scratch.chmod(0o777 & ~_umask())  # mkdtemp lets only the owner in
    return scratch


def _exchange(old: Path, new: Path, aside: Path) -> None:
    """Set a file or folder aside and put another in its place, if there is one."""
    if old.exists():
        old.replace(aside)
    if new.exists():
        new.replace(old)


class FolderLock:
    """The right to work in a folder, for one process at a time; it ends with the block or with the process.

    Parameters
    ----------
    path
        The folder; made if it is not there.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder, FolderLock(Path(folder)) as lock:
    ...     lock.require()
    """

    def __init__(self, path: Path) -> None:
        self._path = make_folder(path)
        self._file = path / ".lock"
        with _output_errors(self._file):
            self._handle = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o666)
        if _try_lock(self._handle) is False:
            os.close(self._handle)
            raise OutputError(f"{path}: another process is working in this folder; wait for it, or choose another one")

    def require(self) -> None:
        """Refuse to go on where the folder was removed, or replaced by another, in the meantime."""
        try:
            there = os.path.samestat(self._file.stat(), os.fstat(self._handle))
        except OSError:
            there = False
        if not there:
            raise OutputError(f"{self._path}: the folder was removed while it was being worked in")

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._handle)


def make_folder(path: Path) -> Path:
    """Make a folder, and those above it, unless it is there."""
    with _output_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def write_text(path: Path, text: str, *, force: bool = True) -> None:
    """Write a text file whole or not at all."""
    with replace_file(path, force=force) as scratch:
        scratch.write_text(text, encoding="utf-8")


PACKAGES = (
    "qbdt",
    "numpy",
    "numba",
    "scipy",
    "scikit-learn",
    "pyhf",
    "iminuit",
    "uproot",
    "matplotlib",
    "lightgbm",
    "xgboost",
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on; those that are not installed are left out."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def provenance(command: str | None = None, **paths: Path | str | None) -> dict[str, Any]:
    """Origin of a written file, as plain data: command, versions and input paths.

    There is no time of day and no name of a machine in it: the same job twice writes the same file.

    Parameters
    ----------
    command
        The command line, where there was one.
    paths
        What was read, by what it is; written as absolute paths, None left out.

    Examples
    --------
    >>> provenance("qbdt fit a.yaml", analysis=Path("/work/a.yaml"))["analysis"]
    '/work/a.yaml'
    """
    where = {name: str(Path(path).resolve()) for name, path in paths.items() if path is not None}
    return {**({} if command is None else {"command": command}), **where, "versions": versions()}


def digest(content: Any) -> str:
    """SHA-256 of plain data: the same for the same values, in whatever order their names come.

    Examples
    --------
    >>> digest({"seed": 1, "trees": 2}) == digest({"trees": 2, "seed": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class StepFolder:
    """A folder of work that is done once, and goes on where it stopped.

    It remembers the settings it was made with and refuses others; finished steps stay in it as JSON files.

    Parameters
    ----------
    path
        The folder; made if it is not there.
    settings
        Everything that the results depend on, as plain data; None where the name of each step says all it depends on
        (see `digest`), so that any run may use the folder.
    content
        What the folder holds, with its article, for messages: "a study".
    force
        Drop what an earlier run left; None where the caller offers no such option.
    owned
        Patterns of the files and folders that a run makes here: what `force` removes.
    record
        File that holds the settings.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     steps = StepFolder(Path(folder), {"seed": 1})
    ...     first = steps.get("sum", lambda: {"sum": 3})
    ...     StepFolder(Path(folder), {"seed": 1}).get("sum", lambda: {"sum": "not computed again"})
    {'sum': 3}
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any] | None,
        content: str = "a run",
        *,
        force: bool | None = False,
        owned: Sequence[str] = ("*.json",),
        record: str = "settings.json",
    ) -> None:
        self.path = make_folder(path)
        if force:
            self.clear(record, *owned)
        if settings is not None:
            plain = json.loads(json.dumps(settings))
            earlier = _read_json(path / record)
            if earlier is not None and earlier != plain:
                raise ConfigError(_refusal(path, content, earlier, plain, offer_force=force is not None))
            write_text(path / record, json.dumps(plain, indent=1) + "\n")

    def has(self, name: str) -> bool:
        """Whether a step is finished."""
        return _read_json(self._file(name)) is not None

    def find(self, name: str) -> dict[str, Any]:
        """Return the result of a finished step; empty where it is not finished."""
        return _read_json(self._file(name)) or {}

    def get(self, name: str, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return the result of a finished step, or do it now."""
        found = _read_json(self._file(name))
        return self.put(name, compute()) if found is None else found

    def put(self, name: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the result of a step, and return it as it will be read."""
        text = json.dumps(result)
        write_text(self._file(name), text + "\n")
        plain: dict[str, Any] = json.loads(text)
        return plain

    def update(self, name: str, **values: Any) -> dict[str, Any]:
        """Add values to the result of a step, or replace some."""
        return self.put(name, {**self.find(name), **values})

    def clear(self, *patterns: str) -> None:
        """Remove the files and folders that match, and nothing else."""
        for found in [path for pattern in patterns for path in self.path.glob(pattern)]:
            if found.is_dir():
                shutil.rmtree(found, ignore_errors=True)
            else:
                found.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.json"


def _read_json(path: Path) -> dict[str, Any] | None:
    """Content of a file; None where it is absent, or damaged."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    return found if isinstance(found, dict) else None


def _refusal(
    path: Path, content: str, earlier: Mapping[str, Any], wanted: Mapping[str, Any], *, offer_force: bool
) -> str:
    names = sorted(name for name in {*earlier, *wanted} if earlier.get(name) != wanted.get(name))
    hint = ", or force=True to replace it" if offer_force else ""
    return f"{path} holds {content} with another {', '.join(names)}: choose another folder{hint}"
