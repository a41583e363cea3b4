"""Where what qbdt writes comes from: versions, the command, and the paths of its inputs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["provenance", "versions"]

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
