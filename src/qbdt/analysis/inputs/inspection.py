"""What an analysis reads, in numbers, before anything is trained: `qbdt inspect`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qbdt.analysis.loader import find_families, find_normalisations, load
from qbdt.analysis.normalisation import Normalisation, normalisation_table
from qbdt.analysis.schema import Analysis
from qbdt.data import Dataset
from qbdt.data.families import FamilyBasis, make_families_table
from qbdt.progress import Progress, silent
from qbdt.tables import Table

__all__ = ["Inspection", "inspect_inputs"]


@dataclass(frozen=True, eq=False)
class Inspection:
    """Events and sources of an analysis, how samples are scaled, and what families of weights became."""

    dataset: Dataset
    normalisations: tuple[Normalisation, ...]
    families: Mapping[str, FamilyBasis]

    def tables(self) -> tuple[Table, ...]:
        """Everything for people."""
        tables = (normalisation_table(self.normalisations), make_families_table(self.families))
        return (*(table for table in tables if table.rows), *self.dataset.summary().tables())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            **self.dataset.summary().to_dict(),
            "normalisation": [one.to_dict() for one in self.normalisations],
            "families": {name: basis.to_dict() for name, basis in self.families.items()},
        }


def inspect_inputs(analysis: Analysis, folder: str | Path = ".", progress: Progress = silent) -> Inspection:
    """Read all events of an analysis and say what is in them.

    Parameters
    ----------
    analysis, folder, progress
        As for `load`.
    """
    dataset = load(analysis, folder, progress)
    return Inspection(dataset, tuple(find_normalisations(analysis, folder)), find_families(analysis, folder))
