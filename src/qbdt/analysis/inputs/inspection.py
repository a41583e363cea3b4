"""Numbers on the inputs of an analysis, before anything is trained: `qbdt inspect`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from qbdt.analysis.inputs.input_checks import check_eras, check_families
from qbdt.analysis.loader import find_families, find_normalisations, load_regions, require_trainable
from qbdt.analysis.normalisation import Normalisation, normalisation_table
from qbdt.analysis.schema import Analysis
from qbdt.data import Dataset, Role
from qbdt.data.checks import Finding
from qbdt.data.families import FamilyBasis, make_families_table
from qbdt.progress import Progress, silent
from qbdt.tables import Table


@dataclass(frozen=True, eq=False)
class Inspection:
    """Events and sources of an analysis, how samples are scaled, and what families of weights became."""

    dataset: Dataset  # Events of all regions; without recorded data where results are blind
    # normalisations, families: how samples are scaled, and what families of weights became
    normalisations: tuple[Normalisation, ...]
    families: Mapping[str, FamilyBasis]
    regions: Mapping[str, Mapping[str, float]]  # Expected events of each process in each region
    hidden: tuple[str, ...]  # Samples of recorded data that are not shown
    findings: tuple[Finding, ...] = ()  # What looks wrong with eras and families, beside what events show by themselves

    @cached_property
    def _summary(self) -> Any:
        """Summary of the events, with what looks wrong with eras and families."""
        summary = self.dataset.summary()
        return replace(summary, findings=(*summary.findings, *self.findings))

    def tables(self) -> tuple[Table, ...]:
        """Everything for people."""
        first = (normalisation_table(self.normalisations), make_families_table(self.families))
        last = (self._regions(), self._hidden())
        tables = (*first, *self._summary.tables(), *last)
        return tuple(table for table in tables if table.rows)

    def _regions(self) -> Table:
        processes = list(next(iter(self.regions.values()), {}))
        rows = tuple((name, *(f"{yields[p]:,.5g}" for p in processes)) for name, yields in self.regions.items())
        return Table("Yields by region", ("region", *processes), rows)

    def _hidden(self) -> Table:
        rows = tuple((name, "hidden until --unblind, or fit: {blind: false}") for name in self.hidden)
        return Table("Recorded data", ("sample", ""), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            **self._summary.to_dict(),
            "normalisation": [one.to_dict() for one in self.normalisations],
            "families": {name: basis.to_dict() for name, basis in self.families.items()},
            "regions": {name: dict(yields) for name, yields in self.regions.items()},
            "hidden": list(self.hidden),
        }


def inspect_inputs(analysis: Analysis, folder: str | Path = ".", progress: Progress = silent) -> Inspection:
    """Read and summarise all events of an analysis."""
    events = load_regions(analysis, folder, progress)
    require_trainable(events, analysis)
    blind = analysis.fit.blind
    dataset = events.simulated() if blind else events.every_event()
    hidden = tuple(sample.name for sample in events.whole.of_role(Role.DATA)) if blind else ()
    yields = {name: _count_yields(events.select(name), hidden) for name in analysis.regions}
    normalisations = tuple(find_normalisations(analysis, folder))
    families = find_families(analysis, folder)
    findings = (*check_families(families), *check_eras(analysis, folder, hidden, progress))
    return Inspection(dataset, normalisations, families, yields, hidden, findings)


def _count_yields(dataset: Dataset, hidden: Collection[str]) -> dict[str, float]:
    return {sample.name: sample.events.total for sample in dataset.samples if sample.name not in hidden}
