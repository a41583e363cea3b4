"""Tables of yields: with their uncertainties, and after each condition of the selection (the cut flow)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.loader import load
from qbdt.analysis.schema import Analysis
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Expression, Role, Systematic
from qbdt.progress import Progress, silent
from qbdt.tables import Table


@dataclass(frozen=True, eq=False)
class CutFlow:
    """Yields after each cut."""

    cuts: tuple[str, ...]  # Conditions in their order; the first row of `yields` is before all of them
    processes: tuple[str, ...]  # Names of the processes
    yields: Floats  # Expected events, cuts × processes

    def table(self) -> Table:
        """Yields for people, and the share that each cut leaves."""
        rows = [("all events", *(f"{value:,.5g}" for value in self.yields[0]))]
        for cut, before, after in zip(self.cuts, self.yields[:-1], self.yields[1:], strict=True):
            left = [f"{b:,.5g} ({b / a:.1%})" if a else f"{b:,.5g}" for a, b in zip(before, after, strict=True)]
            rows.append((cut, *left))
        return Table("Cut flow", ("after", *self.processes), tuple(rows))


def count_cuts(analysis: Analysis, folder: str | Path = ".", progress: Progress = silent) -> CutFlow | None:
    """Count what each condition of the selection leaves of each process; None where there is no selection.

    Files are read once more, only the branches of the selection and the weight. Selections of single samples come
    before the first cut.
    """
    if analysis.dataset is not None or analysis.selection is None or any(e.selection for e in analysis.eras.values()):
        return None
    cuts = [part.text for part in Expression(analysis.selection).split_conditions()]
    names = [f"cut {number}" for number in range(len(cuts))]
    columns = {**analysis.columns, **dict(zip(names, cuts, strict=True))}
    off: dict[str, Any] = {"systematics": {}, "regions": {}, "folds": None, "selection": None, "missing": []}
    read = analysis.model_copy(update={**off, "features": names, "columns": columns})
    samples = load(read, folder, progress, to_train=False).samples
    yields = np.array([_count(sample.events, names) for sample in samples]).T
    return CutFlow(tuple(cuts), tuple(sample.name for sample in samples), yields)


def _count(events: Events, names: list[str]) -> list[float]:
    passing, found = np.ones(events.n_rows, dtype=np.bool_), [events.total]
    for name in names:
        passing &= events.column(name) > 0
        found.append(float(events.weight[passing].sum()))
    return found


def yields_table(title: str, dataset: Dataset, show_data: bool) -> Table:
    """Events, statistical error of the simulation, and all sources in quadrature; recorded events with `show_data`."""
    rows = [_row(sample.name, dataset, [sample.name]) for sample in dataset.samples if sample.role is not Role.DATA]
    backgrounds = [sample.name for sample in dataset.of_role(Role.BACKGROUND)]
    if len(backgrounds) > 1:
        rows.append(_row("all background", dataset, backgrounds))
    for sample in dataset.of_role(Role.DATA):
        rows.append((sample.name, f"{sample.events.total:,.0f}" if show_data else "blind", "", "", ""))
    return Table(f"{title}: events", ("process", "events", "± statistics", "± sources", "rows"), tuple(rows))


def _row(name: str, dataset: Dataset, processes: list[str]) -> tuple[str, ...]:
    events = [dataset.sample(process).events for process in processes]
    total = sum(one.total for one in events)
    statistics = np.sqrt(sum(float(np.square(one.weight).sum()) for one in events))
    shifts = [_shift(dataset, source, processes) for source in dataset.systematics]
    n_rows = sum(one.n_rows for one in events)
    return name, f"{total:,.5g}", f"{statistics:,.3g}", f"{np.sqrt(np.sum(np.square(shifts))):,.3g}", f"{n_rows:,}"


def _shift(dataset: Dataset, source: Systematic, processes: list[str]) -> float:
    """Change of the yield for one standard deviation, of all processes together."""
    acting = [process for process in processes if process in source.processes]
    nominal = sum(dataset.sample(process).events.total for process in acting)
    sides = [
        sum(effect[process].apply(dataset.sample(process).events).total for process in acting)
        for _, effect in source.directions
    ]
    return Systematic.shift(nominal, *sides) if acting else 0.0
