"""Numbers on the inputs of an analysis, before anything is trained (`qbdt inspect`); checks of eras and families."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.loader import find_families, find_normalisations, load_eras, load_regions, require_trainable
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
        rows = tuple((name, "hidden until qbdt run --unblind, or fit: {blind: false}") for name in self.hidden)
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
    yields = {
        name: {s.name: s.events.total for s in events.select(name).samples if s.name not in hidden}
        for name in analysis.regions
    }
    normalisations = tuple(find_normalisations(analysis, folder))
    families = find_families(analysis, folder)
    findings = (*check_families(families), *check_eras(analysis, folder, hidden, progress))
    return Inspection(dataset, normalisations, families, yields, hidden, findings)


YIELD_FACTOR = 1.5
"""Ratio of yields per luminosity of one process in two eras from which on it is worth a question: conditions of running
change them by 10 or 20 %."""

LEAST_ENTRIES = 100.0
"""Effective entries in an era, at least: their yield is then known to 10 %."""


def check_families(families: Mapping[str, FamilyBasis]) -> Iterator[Finding]:
    """Families whose weights are the same for all members."""
    for name, basis in families.items():
        for process in basis.size:
            if process not in basis.kept:
                message = f"its {basis.n_weights} weights do not vary: is the branch filled?"
                yield Finding("family", f"{name}, {process}", message)


def check_eras(
    analysis: Analysis, folder: str | Path, hidden: Collection[str] = (), progress: Progress = silent
) -> Iterator[Finding]:
    """Processes whose yield per luminosity is another in one era; only weights and the selection are read."""
    light = {name: era.luminosity for name, era in analysis.eras.items() if era.luminosity is not None}
    if len(light) < 2:
        return
    samples = {name: sample for name, sample in analysis.samples.items() if name not in hidden}
    off: dict[str, Any] = {"features": [], "systematics": {}, "folds": None, "regions": {}, "missing": []}
    bare = analysis.model_copy(update={**off, "samples": samples})
    rates: dict[str, dict[str, float]] = {}
    for era, dataset in load_eras(bare, folder, progress).items():
        for sample in dataset.samples:
            if era in light and sample.events.effective_entries > LEAST_ENTRIES:
                rates.setdefault(sample.name, {})[era] = sample.events.total / light[era]
    for process, found in rates.items():
        yield from _compare(process, {era: rate for era, rate in found.items() if rate > 0})


def _compare(process: str, rates: Mapping[str, float]) -> Iterator[Finding]:
    if len(rates) < 2:
        return
    middle = float(np.exp(np.median(np.log(list(rates.values())))))
    odd = max(rates, key=lambda era: abs(np.log(rates[era] / middle)))
    others = [rate for era, rate in rates.items() if era != odd]
    other = float(np.exp(np.mean(np.log(others))))
    if abs(np.log(rates[odd] / other)) > np.log(YIELD_FACTOR):
        message = f"{rates[odd]:.4g} events per fb⁻¹ in {odd}, {other:.4g} in the other eras: a weight or a file?"
        yield Finding("eras", process, message)
