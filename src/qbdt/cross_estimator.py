"""`CrossTrainedClassifier`: the scikit-learn face of cross-training.

Thin: it divides what the caller has by the fold rule and fits a `QBDTClassifier` on each part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from qbdt.data import Events, FlatSystematic, FoldRule, Kind, as_columns
from qbdt.errors import DataError
from qbdt.estimator import QBDTClassifier, parameters
from qbdt.models import read_cross_trained, write_model
from qbdt.training import CrossTrainedModel, FoldedEnsemble

__all__ = ["CrossTrainedClassifier"]

Columns = Mapping[str, NDArray[Any]]


class CrossTrainedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """One model per fold, each event scored by the one that saw neither it nor a shifted copy of it.

    Parameters
    ----------
    estimator
        How each model is trained.
    folds
        The rule that divides events: `ModuloFolds`, `HashFolds` or `SplitFolds` of qbdt.data. Tables of events carry
        its columns beside the features, those of shape variations too; they are never trained on.

    Examples
    --------
    >>> from qbdt.data import ModuloFolds
    >>> rng = np.random.default_rng(1)
    >>> y = np.repeat([1, 0], 200)
    >>> table = {"m": rng.normal(y, 1.0), "pt": rng.normal(-y, 1.0), "event_number": np.arange(400)}
    >>> model = CrossTrainedClassifier(QBDTClassifier(n_trees=5), ModuloFolds(4, "event_number")).fit(table, y)
    >>> model.decision_function(table).shape, len(model.training_.trainings)
    ((400,), 4)
    """

    def __init__(self, estimator: QBDTClassifier, folds: FoldRule) -> None:
        self.estimator = estimator
        self.folds = folds

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, systematics: Sequence[FlatSystematic] = ()
    ) -> CrossTrainedClassifier:
        """Train one model for each fold, without its events.

        Parameters
        ----------
        X
            A table with named columns: the features and the columns of the fold rule.
        y, sample_weight, systematics
            As for `QBDTClassifier.fit`; the tables of shape variations have the columns of the fold rule too.
        """
        table = as_columns(X)
        fold = self._fold(table, "X")
        labels = np.asarray(y)
        weight = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight)
        for name, values in (("y", labels), ("sample_weight", weight)):
            if values.shape != fold.shape:
                raise DataError(f"{name} has shape {values.shape}, X has {len(fold)} rows")
        models = []
        for number in range(self.folds.k):
            keep = fold != number
            sources = [self._part(source, fold, number) for source in systematics]
            models.append(self._fit_one(number, self._features(table, keep), labels[keep], weight[keep], sources))
            if not models[-1].training_.complete:  # Ctrl-C; a model for some folds only is of no use
                raise KeyboardInterrupt
        self.training_ = CrossTrainedModel(tuple(model.training_ for model in models), self.folds)
        self.classes_: NDArray[Any] = models[0].classes_
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score of each row, from the model that did not see it; X has the columns of the fold rule."""
        table = as_columns(X)
        identifiers = {name: table[name] for name in self.folds.columns if name in table}
        return self.ensemble_.score(self._events(table, identifiers), self.estimator.n_threads)

    def average_decision_function(self, X: Any) -> NDArray[np.float64]:
        """Mean of the scores of all models: for events that took no part in the training, with or without identifiers.

        It is spread less than the scores of single models; do not mix the two in one template.
        """
        return self.ensemble_.average(self._events(as_columns(X), {}), self.estimator.n_threads)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row: signal where the score is positive."""
        return np.asarray(self.classes_[(self.decision_function(X) > 0).astype(np.intp)])

    @property
    def ensemble_(self) -> FoldedEnsemble:
        """The models of all folds with their rule."""
        check_is_fitted(self, "training_")
        return self.training_.ensemble

    def save(self, path: str | Path) -> None:
        """Write one model file with all models and the rule."""
        check_is_fitted(self, "training_")
        write_model(path, self.training_, {"classes": self.classes_.tolist(), "named": True})

    @classmethod
    def load(cls, path: str | Path) -> CrossTrainedClassifier:
        """Read a model file that `save`, `qbdt train --folds` or `qbdt run` wrote."""
        training, extra = read_cross_trained(path)
        template = QBDTClassifier(**parameters(training.trainings[0].settings) if training.trainings else {})
        model = cls(template, training.folds)
        model.training_ = training
        model.classes_ = np.array(extra.get("classes", [0, 1]))
        return model

    def _fit_one(
        self, fold: int, table: Columns, y: NDArray[Any], weight: NDArray[Any], systematics: list[FlatSystematic]
    ) -> QBDTClassifier:
        try:
            return clone(self.estimator).fit(table, y, weight, systematics)  # type: ignore[no-any-return]
        except DataError as error:
            raise DataError(f"without fold {fold}: {error}") from error

    def _fold(self, table: Columns, what: str) -> NDArray[np.int64]:
        absent = [name for name in self.folds.columns if name not in table]
        if absent:
            raise DataError(f"{what} has no column {', '.join(absent)}, which the fold rule needs")
        rows = len(table[self.folds.columns[0]])
        identifiers = {name: table[name] for name in self.folds.columns}
        return self.folds.assign(Events({}, np.broadcast_to(np.float64(1.0), rows), identifiers))

    def _features(self, table: Columns, keep: NDArray[np.bool_]) -> Columns:
        return {name: values[keep] for name, values in table.items() if name not in self.folds.columns}

    def _part(self, source: FlatSystematic, fold: NDArray[np.int64], number: int) -> FlatSystematic:
        """Return a source on the rows that are not in a fold; a shape variation's rows are divided by their own ids."""
        keep = fold != number

        def side(values: Any) -> Any:
            if values is None:
                return None
            if source.kind is Kind.WEIGHT:
                return np.asarray(values)[keep]
            if source.kind is Kind.NORM:
                size, where = values
                return size, None if where is None else np.asarray(where)[keep]
            table, labels, weight = as_columns(values[0]), *(np.asarray(column) for column in values[1:])
            own = self._fold(table, f"systematic {source.name}") != number
            return self._features(table, own), labels[own], weight[own]

        return FlatSystematic(source.name, source.kind, side(source.up), side(source.down))

    def _events(self, table: Columns, identifiers: Columns) -> Events:
        features = as_columns(table, self.ensemble_.features)
        rows = len(next(iter(features.values())))
        return Events(features, np.broadcast_to(np.float64(1.0), rows), identifiers)
