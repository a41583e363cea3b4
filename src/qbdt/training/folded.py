"""Models by folds: every event is scored by the one that never saw it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Events, FoldRule
from qbdt.errors import DataError
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.trees import Ensemble

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

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, in order."""
        return self.ensembles[0].features

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        """Score of every event, from the ensemble of its fold."""
        absent = [name for name in self.folds.columns if name not in events.id_names]
        if absent:
            raise DataError(
                f"the events have no identifier column {', '.join(absent)}, so which model did not see them is not "
                "known; for events that took no part in the training ask for the average of the models"
            )
        fold = self.folds.assign(events)
        scores = np.empty(events.n_rows)
        for number, ensemble in enumerate(self.ensembles):
            scores[fold == number] = ensemble.score(events[fold == number], n_threads)
        return scores

    def average(self, events: Events, n_threads: int | None = None) -> Floats:
        """Mean of the scores of all ensembles, for events of which none took part in the training.

        It is spread less than the scores of single models are, so what is compared in one template must be scored in
        one way: recorded data beside simulated events by the rule, like these.
        """
        total = np.zeros(events.n_rows)
        for ensemble in self.ensembles:
            total += ensemble.score(events, n_threads)
        return total / len(self.ensembles)
