"""Trainings by folds: one for each fold, without its events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.data import FoldRule
from qbdt.errors import DataError
from qbdt.tables import Table, notebook_html
from qbdt.training.folded import FoldedEnsemble
from qbdt.training.model import TrainedModel

__all__ = ["CrossTrainedModel"]


@dataclass(frozen=True, eq=False)
class CrossTrainedModel:
    """Trainings of the first folds, in their order, and the rule that says which fold an event is in.

    Attributes
    ----------
    trainings
        One for each fold, trained without its events; fewer than k, or a last one that is cut short, where the
        cross-training was interrupted.
    folds
        The rule.
    """

    trainings: tuple[TrainedModel, ...]
    folds: FoldRule

    def __post_init__(self) -> None:
        if len(self.trainings) > self.folds.k:
            raise DataError(f"{len(self.trainings)} trainings for {self.folds.k} folds")
        if len({training.ensemble.features for training in self.trainings}) > 1:
            raise DataError("the trainings of the folds have different features")

    def tables(self) -> tuple[Table, ...]:
        """Features by gain in the model of each fold, and the other tables of the first."""
        gains = [training.ensemble.gains() for training in self.trainings]
        share = np.array([100 * gain / max(float(gain.sum()), 1e-300) for gain in gains])
        if not len(share):
            return ()
        names = self.trainings[0].ensemble.features
        rows = tuple((names[i], *(f"{value:.1f}" for value in share[:, i])) for i in np.argsort(-share.mean(axis=0)))
        header = ("feature", *(f"fold {fold}" for fold in range(len(share))))
        return (Table("Share of each feature in the gain (%)", header, rows), *self.trainings[0].tables()[1:])

    def _repr_html_(self) -> str:
        columns = ", ".join(self.folds.columns)
        trees = " + ".join(str(len(training.ensemble.trees)) for training in self.trainings)
        headline = f"{len(self.trainings)} of {self.folds.k} folds by {columns}: {trees} trees"
        return notebook_html(headline, self.tables())

    @property
    def complete(self) -> bool:
        """Whether the models of all folds are trained to their end."""
        return len(self.trainings) == self.folds.k and all(training.complete for training in self.trainings)

    @property
    def ensemble(self) -> FoldedEnsemble:
        """The models of all folds, as one that scores every event by the one that never saw it."""
        for fold in range(self.folds.k):
            if fold >= len(self.trainings) or not self.trainings[fold].complete:
                state = "not trained yet" if fold >= len(self.trainings) else "trained in part only"
                raise DataError(
                    f"fold {fold} of {self.folds.k} is {state}: the cross-training was interrupted; resume it"
                )
        return FoldedEnsemble(tuple(training.ensemble for training in self.trainings), self.folds)
