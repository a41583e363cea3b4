"""Models by folds: every event is scored by the one that never saw it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.dataset import Events, FoldRule
from qbdt.dtypes import Yields
from qbdt.ensemble.profiled import ProfiledEnsemble
from qbdt.ensemble.trees import Ensemble
from qbdt.errors import DataError

__all__ = ["FoldedEnsemble"]


@dataclass(frozen=True, eq=False)
class FoldedEnsemble:
    """One ensemble per fold, each trained without that fold: every event is scored by the one that never saw it.

    Parameters
    ----------
    ensembles
        In the order of folds.
    folds
        The rule that says which fold an event is in.
    """

    ensembles: tuple[Ensemble | ProfiledEnsemble, ...]
    folds: FoldRule

    def __post_init__(self) -> None:
        if len(self.ensembles) != self.folds.k:
            raise DataError(f"{len(self.ensembles)} models for {self.folds.k} folds: one for each is needed")

    def score(self, events: Events, n_threads: int | None = None) -> Yields:
        """Score of every event, from the ensemble of its fold."""
        fold = self.folds.assign(events)
        scores = np.empty(events.n_rows)
        for number, ensemble in enumerate(self.ensembles):
            scores[fold == number] = ensemble.score(events[fold == number], n_threads)
        return scores
