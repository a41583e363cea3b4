"""A category for each signal: every event goes where its score is largest, and is binned in that score.

The simple alternative to cells of several scores: a histogram per strength, which everybody can read, for some loss
of information. The bins of a category are those that are best for its own strength, with the other signals
counted as background; they are chosen as those of a single score are. The floor on simulated events is on the
backgrounds alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role, Sample
from qbdt.errors import FitError
from qbdt.inference.templates.cells import CellTarget
from qbdt.inference.templates.optimised_bins import optimise_bins, optimise_edges
from qbdt.inference.templates.score_bins import ScoreBins


@dataclass(frozen=True, eq=False)
class CategoryBins:
    """Bins of the largest score, one category after the other.

    Examples
    --------
    >>> bins = CategoryBins(("a", "b"), (ScoreBins.of([0, 1, 2]), ScoreBins.of([0, 1])))
    >>> bins.index(Events({"a": [1.5, 0.2], "b": [0.1, 0.7]}, np.ones(2)), "events")
    array([1, 2])
    """

    names: tuple[str, ...]  # Names of the scores
    bins: tuple[ScoreBins, ...]  # Those of each category

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return sum(own.n_bins for own in self.bins)

    @property
    def axis(self) -> Floats:
        """Edges to draw: numbers of the bins."""
        return np.arange(self.n_bins + 1, dtype=float)

    def index(self, events: Events, what: str) -> NDArray[np.intp]:
        """Bin of each event; `what` names the events in messages."""
        category, numbers, first = _find_category(events, self.names), np.empty(events.n_rows, dtype=np.intp), 0
        for number, (name, own) in enumerate(zip(self.names, self.bins, strict=True)):
            inside = category == number
            numbers[inside] = first + own.index(events[inside].with_features([name]), what)
            first += own.n_bins
        return numbers


def choose_categories(
    scored: Dataset, n_bins: int, target: CellTarget, min_entries: float, *, by_folds: bool
) -> CategoryBins:
    """Choose bins on a dataset whose features are the scores of the strengths, in their order; as `choose_cells`."""
    names = scored.features
    if len(names) != len(target.strengths):
        raise FitError(f"categories: {len(names)} scores for {len(target.strengths)} strengths: one for each is needed")
    bins = []
    for number, (strength, processes) in enumerate(target.strengths.items()):
        own = _in_category(scored, number, processes)
        if not all(own.total(role) > 0 for role in (Role.SIGNAL, Role.BACKGROUND)):
            raise FitError(f"categories: that of {strength} has no signal, or no background")
        n_own = max(1, n_bins // len(names))
        others = [sample.name for sample in scored.of_role(Role.SIGNAL) if sample.name not in processes]
        if by_folds:
            bins.append(optimise_bins(own, n_own, min_entries, others))
        else:
            bins.append(ScoreBins.of(optimise_edges(own, n_own, min_entries, others=others)))
    return CategoryBins(names, tuple(bins))


def _in_category(scored: Dataset, number: int, processes: Sequence[str]) -> Dataset:
    """Events whose score of this number is the largest, with these processes as the signal."""
    names = scored.features
    inside = scored.select(lambda events: _find_category(events, names) == number).with_features([names[number]])
    samples = [
        Sample(s.name, Role.BACKGROUND if s.role is Role.SIGNAL and s.name not in processes else s.role, s.events)
        for s in inside.samples
    ]
    return Dataset(samples, inside.systematics, inside.folds)


def _find_category(events: Events, names: Sequence[str]) -> NDArray[np.intp]:
    """Return the number of the largest score of each event."""
    return np.asarray(np.argmax([events.column(name) for name in names], axis=0), dtype=np.intp)
