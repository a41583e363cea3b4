"""The paper's own events, from a folder with the author's public files.

The sources are one-sided (up only) and act on the background only; docs/data.md lists the files' faults.
"""

from __future__ import annotations

from os import PathLike

from qbdt.data.dataset import Dataset, Role, Sample
from qbdt.data.events import Events
from qbdt.data.folds import ModuloFolds
from qbdt.data.samples.public_files import read_tree
from qbdt.data.samples.reconstruction import FEATURES, SOURCES
from qbdt.data.systematic import Systematic

__all__ = ["paper_tautaugamma"]

WHERE = "the author's repository xialigang/QBDT has the paper's events"


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
        columns = read_tree(folder, file, "NOMINAL", (*FEATURES, "fweight", "event_number"), WHERE)
        return Events(
            {name: columns[name] for name in FEATURES}, columns["fweight"], {"event_number": columns["event_number"]}
        )

    samples = [
        Sample("signal", Role.SIGNAL, events("fhist_h2atata.root")),
        Sample("background", Role.BACKGROUND, events("fhist_atata.root")),
    ]
    sources = [Systematic.shape(name, up={"background": events(f"fhist_atata_syst_{name}.root")}) for name in SOURCES]
    return Dataset(samples, sources, ModuloFolds(k, "event_number"))
