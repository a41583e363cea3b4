"""Cut flow: yield of each process after each condition of the selection, in the order of the analysis file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.loader import load
from qbdt.analysis.schema import Analysis
from qbdt.arrays import Floats
from qbdt.data import Events, Expression
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
