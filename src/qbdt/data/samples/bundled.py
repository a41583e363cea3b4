"""The h → γττ sample: bundled with the package, or from a folder that `qbdt generate tautaugamma` wrote."""

from __future__ import annotations

from importlib.resources import as_file, files
from os import PathLike
from pathlib import Path

from qbdt.data.dataset import Dataset
from qbdt.data.folds import ModuloFolds
from qbdt.data.samples.objects import read_folder
from qbdt.data.samples.reconstruction import build_dataset

__all__ = ["BUNDLED", "tautaugamma"]

BUNDLED = files("qbdt.data.samples") / "data" / "tautaugamma"
"""Where the bundled sample is."""


def tautaugamma(folder: str | PathLike[str] | None = None, *, k: int = 5, paper_met: bool = False) -> Dataset:
    """Load h → γττ against pp → γττ at 13 TeV and 80 fb⁻¹ with seven sources up and down on both.

    Parameters
    ----------
    folder
        Made by `qbdt generate tautaugamma`; the bundled sample if not given.
    k
        Number of folds, by event number modulo k.
    paper_met
        Use the paper's treatment of the missing momentum: the right size in a random direction.

    Examples
    --------
    >>> data = tautaugamma()
    >>> data.features[:4], len(data.systematics)
    (('pt_lep', 'pt_tau', 'pt_pho', 'pt_met'), 7)
    """
    rule = ModuloFolds(k, "event_number")
    if folder is not None:
        return _load(Path(folder), rule, paper_met)
    with as_file(BUNDLED) as bundled:
        return _load(bundled, rule, paper_met)


def _load(folder: Path, rule: ModuloFolds, paper_met: bool) -> Dataset:
    processes = {name: (objects, weight) for name, objects, weight in read_folder(folder)}
    return build_dataset(processes, rule, paper_met=paper_met)
