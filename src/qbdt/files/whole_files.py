"""Files and folders that are written whole or not at all, and locks on folders.

A full disk or Ctrl-C never costs what was there before.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from qbdt.errors import OutputError


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


AT_FDCWD, RENAME_EXCHANGE = -100, 2
"""Arguments of Linux's `renameat2`: paths start from where the process is; the two change places."""

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

    A file that is there is refused without `force`.
    """
    with _output_errors(path):
        if path.exists() and not force:
            raise OutputError(f"{path} exists; force=True overwrites it")
        _refuse_other_kind(path)
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
            _flush_entry(path.parent)


@contextmanager
def replace_folder(path: Path, owned: Sequence[str] | None = None) -> Iterator[Path]:
    """Yield an empty scratch folder beside `path`; when the block ends well, it takes its place as a whole.

    `owned` names, by patterns, what of a folder that is there is replaced (all of it by default): the rest stays.
    """
    with _output_errors(path):
        _remove_leftovers(path)
        scratch, aside = (_make_scratch(path) for _ in range(2))
        with _own_scratch(scratch), _own_scratch(aside):
            yield scratch
            _flush(scratch)
            if not path.exists() or owned is None:
                _take_place(scratch, path, aside / path.name)
            else:
                found = {one.name for place in (path, scratch) for pattern in owned for one in place.glob(pattern)}
                for name in sorted(found):
                    _take_place(scratch / name, path / name, aside / name)
            _flush_entry(path.parent)


@contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path`, for work on it; it is removed, also one that a killed process left."""
    with _output_errors(path):
        _remove_leftovers(path)
        scratch = _make_scratch(path)
        with _own_scratch(scratch):
            yield scratch


def _make_scratch(path: Path) -> Path:
    scratch = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=SCRATCH))
    scratch.chmod(0o777 & ~_umask())  # mkdtemp lets only the owner in
    return scratch


def _flush(folder: Path) -> None:
    """Have everything in a folder on the disk before it gets its name, so that a power cut leaves no empty files."""
    for path in (*folder.rglob("*"), folder):
        _flush_entry(path)


def _flush_entry(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # some file systems cannot do that to folders
            raise
    finally:
        os.close(handle)


def _take_place(new: Path, old: Path, aside: Path) -> None:
    """Put a file or folder, if there is one, in the place of another, which is set aside."""
    if new.exists() and old.exists() and _swap(new, old):
        return
    if old.exists():
        old.replace(aside)
    if new.exists():
        new.replace(old)


def _swap(one: Path, other: Path) -> bool:
    """Let two files or folders change places, at once; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):  # not Linux
        return False
    return bool(rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0)


class FolderLock:
    """The right to work in a folder, for one process at a time; it ends with the block or with the process.

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


def require_place(path: Path, inputs: Iterable[Path] = (), *, folder: bool = False) -> None:
    """Refuse a file, or a folder, that cannot be written, and a file that is one of the `inputs` of the command."""
    if folder:
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path}: a folder is needed, and this is a file")
    else:
        if not path.parent.is_dir():
            raise OutputError(f"{path}: there is no folder {path.parent}")
        _refuse_other_kind(path)
        if path.exists() and any(one.exists() and one.samefile(path) for one in inputs):
            raise OutputError(f"{path}: this file is read by the same command; choose another place")
    _refuse_unwritable(path)


def _refuse_other_kind(path: Path) -> None:
    """Refuse to put a file in the place of a folder, a device or a pipe."""
    if path.exists() and not path.is_file():
        kind = "folder" if path.is_dir() else "device or pipe"
        raise OutputError(f"{path}: a {kind} is there, where a file is to be written")


def _refuse_unwritable(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        raise OutputError(f"{path}: a link to {path.readlink()}, which is not there")
    with _output_errors(path):
        place = next(one for one in (path, *path.absolute().parents) if os.path.lexists(one))
        if place != path and not place.is_dir():
            raise OutputError(f"{path}: {place} is no folder")
        if not os.access(place, os.W_OK):
            raise OutputError(f"{path}: {place} may not be written")


def make_folder(path: Path) -> Path:
    """Make a folder, and those above it, unless it is there."""
    if not path.is_dir():
        require_place(path, folder=True)
    with _output_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def write_text(path: Path, text: str, *, force: bool = True) -> None:
    """Write a text file whole or not at all."""
    with replace_file(path, force=force) as scratch:
        scratch.write_text(text, encoding="utf-8")
