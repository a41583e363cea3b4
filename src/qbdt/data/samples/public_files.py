"""Public files: functions that their loaders share, and the paper's own events.

The sources of the paper's files are one-sided (up only) and act on the background only; docs/data.md lists the files'
faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qbdt.data.dataset import Dataset
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.readers import read_columns
from qbdt.data.sample import Role, Sample
from qbdt.data.samples.objects.reconstruction import FEATURES, SOURCES
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError

PAPER_FILES = "the author's repository xialigang/QBDT has the paper's events"


def read_tree(
    folder: str | PathLike[str], file: str, tree: str, columns: Sequence[str], source: str
) -> dict[str, NDArray[Any]]:
    """Read branches of a tree; `source` says where users get the files, for the message when one is absent."""
    path = Path(folder) / file
    if not path.is_file():
        raise DataError(f"{path}: no such file; {source} (see docs/data.md)")
    return read_columns(path, columns, tree)


def paper_tautaugamma(folder: str | PathLike[str], *, k: int = 2) -> Dataset:
    """Load the events that the paper was made with: 14 528 signal and 25 493 background, 80 fb⁻¹.

    Parameters
    ----------
    folder
        With `fhist_h2atata.root`, `fhist_atata.root` and `fhist_atata_syst_NAME.root` of the seven sources.
    k
        Number of folds by event number; the paper trains on odd and tests on even ones.
    """

    def events(file: str) -> Events:
        columns = read_tree(folder, file, "NOMINAL", (*FEATURES, "fweight", "event_number"), PAPER_FILES)
        return Events(
            {name: columns[name] for name in FEATURES}, columns["fweight"], {"event_number": columns["event_number"]}
        )

    samples = [
        Sample("signal", Role.SIGNAL, events("fhist_h2atata.root")),
        Sample("background", Role.BACKGROUND, events("fhist_atata.root")),
    ]
    sources = [Systematic.shape(name, up={"background": events(f"fhist_atata_syst_{name}.root")}) for name in SOURCES]
    return Dataset(samples, sources, ModuloFolds(k, "event_number"))
