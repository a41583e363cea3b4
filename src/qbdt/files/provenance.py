"""Where a written file comes from: versions, paths and digests."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

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
    """Origin of a written file, as plain data: command, versions and absolute paths of what was read.

    There is no time of day and no name of a machine in it: the same job twice writes the same file.

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
