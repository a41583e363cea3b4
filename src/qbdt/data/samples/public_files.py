"""What the loaders of public files share: a folder in, columns of a tree out, messages that name what is absent."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import uproot
from numpy.typing import NDArray

from qbdt.errors import DataError

__all__ = ["read_tree"]


def read_tree(
    folder: str | PathLike[str], file: str, tree: str, columns: Sequence[str], source: str
) -> dict[str, NDArray[Any]]:
    """Read branches of a tree, found by name or, where names are ambiguous, by the name in their title.

    Parameters
    ----------
    folder, file, tree
        Where.
    columns
        Branches to read.
    source
        Where users get the files, for the message when one is absent.
    """
    path = Path(folder) / file
    if not path.is_file():
        raise DataError(f"{path}: no such file; {source} (see docs/data.md)")
    with uproot.open(path) as opened:
        if tree not in opened:
            raise DataError(f"{path}: no tree {tree}; there are: {', '.join(opened.keys(cycle=False))}")
        branches = list(opened[tree].branches)
        found = {}
        for column in columns:
            titled = [branch for branch in branches if branch.title.partition("/")[0] == column]
            matching = titled or [branch for branch in branches if branch.name == column]
            if len(matching) != 1:
                raise DataError(f"{path}: {len(matching)} branches match {column} in tree {tree}: one is needed")
            found[column] = np.asarray(matching[0].array(library="np"))
    return found
