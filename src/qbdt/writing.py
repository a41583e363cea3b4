"""Files are written whole or not at all: a full disk or Ctrl-C never costs what was there before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qbdt.errors import OutputError

__all__ = ["replacing", "write_text"]


@contextmanager
def replacing(path: Path, *, force: bool = True) -> Iterator[Path]:
    """Yield a scratch path beside `path`; when the block ends well, it takes its place.

    Parameters
    ----------
    path
        The file to write.
    force
        Whether an existing file may be replaced.
    """
    try:
        if path.exists() and not force:
            raise OutputError(f"{path} exists; --force overwrites it")
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=path.suffix)
        os.close(handle)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    try:
        yield Path(scratch)
        mask = os.umask(0)
        os.umask(mask)
        Path(scratch).chmod(0o666 & ~mask)
        Path(scratch).replace(path)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error
    finally:
        with suppress(FileNotFoundError):
            Path(scratch).unlink()


def write_text(path: Path, text: str, *, force: bool = True) -> None:
    """Write a text file whole or not at all."""
    with replacing(path, force=force) as scratch:
        scratch.write_text(text, encoding="utf-8")
