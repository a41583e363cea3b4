"""What an analysis reads, in numbers, before anything is trained: `qbdt inspect`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qbdt.analysis.loader import find_normalisations, load
from qbdt.analysis.normalisation import Normalisation, normalisation_table
from qbdt.analysis.schema import Analysis
from qbdt.data import Dataset
from qbdt.progress import Progress, silent
from qbdt.tables import Table

__all__ = ["Inspection", "inspect_inputs"]


@dataclass(frozen=True, eq=False)
class Inspection:
    """Events and sources of an analysis, and how samples are scaled to the luminosity."""

    dataset: Dataset
    normalisations: tuple[Normalisation, ...]

    def tables(self) -> tuple[Table, ...]:
        """Everything for people."""
        scaled = normalisation_table(self.normalisations)
        return (*[scaled] * bool(scaled.rows), *self.dataset.summary().tables())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {**self.dataset.summary().to_dict(), "normalisation": [one.to_dict() for one in self.normalisations]}


def inspect_inputs(analysis: Analysis, folder: str | Path = ".", progress: Progress = silent) -> Inspection:
    """Read all events of an analysis and say what is in them.

    Parameters
    ----------
    analysis, folder, progress
        As for `load`.
    """
    dataset = load(analysis, folder, progress)
    return Inspection(dataset, tuple(find_normalisations(analysis, folder)))
