"""Expected events of each process with their uncertainties, and recorded ones where they may be seen."""

from __future__ import annotations

import numpy as np

from qbdt.data import Dataset, Role, Systematic
from qbdt.tables import Table


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
