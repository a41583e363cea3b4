"""Trainings by folds: one for each fold, without its events."""

from __future__ import annotations

from dataclasses import dataclass

from qbdt.boosting.training import Training
from qbdt.dataset import FoldRule
from qbdt.ensemble import FoldedEnsemble
from qbdt.errors import DataError

__all__ = ["CrossTraining"]


@dataclass(frozen=True, eq=False)
class CrossTraining:
    """Trainings of the first folds, in their order, and the rule that says which fold an event is in.

    Attributes
    ----------
    trainings
        One for each fold, trained without its events; fewer than k, or a last one that is cut short, where the
        cross-training was interrupted.
    folds
        The rule.
    """

    trainings: tuple[Training, ...]
    folds: FoldRule

    def __post_init__(self) -> None:
        if len(self.trainings) > self.folds.k:
            raise DataError(f"{len(self.trainings)} trainings for {self.folds.k} folds")
        if len({training.ensemble.features for training in self.trainings}) > 1:
            raise DataError("the trainings of the folds have different features")

    @property
    def complete(self) -> bool:
        """Whether the models of all folds are trained to their end."""
        return len(self.trainings) == self.folds.k and all(training.complete for training in self.trainings)

    @property
    def ensemble(self) -> FoldedEnsemble:
        """The models of all folds, as one that scores every event by the one that never saw it."""
        for fold in range(self.folds.k):
            if fold >= len(self.trainings):
                raise DataError(f"fold {fold} of {self.folds.k} is not trained yet: the cross-training was interrupted")
        return FoldedEnsemble(tuple(training.ensemble for training in self.trainings), self.folds)
