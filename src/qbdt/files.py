"""Files are written whole or not at all, and say where they come from.

A full disk or Ctrl-C never costs what was there before.
"""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from qbdt.errors import OutputError

__all__ = ["provenance", "replacing", "versions", "write_text"]


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
    """What a written file says about where it comes from, as plain data.

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
