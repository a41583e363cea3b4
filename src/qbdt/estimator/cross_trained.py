"""`CrossTrainedClassifier`: one `QBDTClassifier` for each fold of the events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule
from qbdt.data.columns import as_columns, number_categories
from qbdt.errors import ConfigError
from qbdt.estimator.classifier import QBDTClassifier, Sources, make_parameters
from qbdt.estimator.labels import choose_labels, read_classes
from qbdt.estimator.table_estimator import describe_features, make_unweighted, replace_fit
from qbdt.models import classify_events, read_cross_trained, score_events, write_model
from qbdt.training import CrossTrainedModel, FoldedEnsemble, TrainedModel, train


class CrossTrainedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """One model per fold, each event scored by the one that saw neither it nor a shifted copy of it.

    Parameters
    ----------
    estimator
        How each model is trained; a `QBDTClassifier` with its defaults if not given.
    folds
        The rule that divides events: `ModuloFolds`, `HashFolds` or `SplitFolds` of qbdt.data. Tables of events carry
        its columns beside the features, those of shape variations too; they are never trained on. Not needed for a
        `Dataset` that has a rule.

    Examples
    --------
    >>> from qbdt.data import ModuloFolds
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> y = np.repeat([1, 0], 200)
    >>> table = {"m": rng.normal(y, 1.0), "pt": rng.normal(-y, 1.0), "event_number": np.arange(400)}
    >>> model = CrossTrainedClassifier(QBDTClassifier(n_trees=5), ModuloFolds(4, "event_number")).fit(table, y)
    >>> model.decision_function(table).shape, len(model.training_.trainings)
    ((400,), 4)
    """

    def __init__(self, estimator: QBDTClassifier | None = None, folds: FoldRule | None = None) -> None:
        self.estimator = estimator
        self.folds = folds

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        systematics: Sources = (),
        *,
        process: str | None = None,
        event_id: Any = None,
    ) -> CrossTrainedClassifier:
        """Train one model for each fold, without its events.

        Parameters
        ----------
        X
            A table with named columns: the features and the columns of the fold rule. Or a `Dataset`.
        y, sample_weight, systematics, process, event_id
            As for `QBDTClassifier.fit`; the tables of shape variations have the columns of the fold rule too.
        """
        template = self._make_template()
        with replace_fit(self):
            dataset = template._prepare(X, y, sample_weight, systematics, process, event_id, self.folds)
            rule = self.folds or dataset.folds
            if rule is None:
                raise ConfigError("folds=None: a rule such as ModuloFolds(2, 'event') is needed, since X has none")
            self.training_ = _train_folds(template, dataset.with_folds(rule).require_trainable_folds(), rule)
            self.classes_, self.categories_ = template.classes_, template.categories_
            self._keep_features(dataset.features)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Score of each row, from the model that did not see it; X has the columns of the fold rule."""
        return score_events(self.ensemble_, self._make_events(X), self._n_threads, self._device)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of background and of each signal, from the model that did not see it; see `QBDTClassifier`."""
        return classify_events(self.ensemble_, self._make_events(X), self._n_threads, self._device)

    def average_decision_function(self, X: Any) -> Floats:
        """Mean of the scores of all models: for events that took no part in the training, with or without identifiers.

        It is spread less than the scores of single models; do not mix the two in one template.
        """
        return self.ensemble_.average(self._make_events(X), self._n_threads)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row: signal where the score is positive; with several strengths the most likely one."""
        return choose_labels(self, X)

    @property
    def ensemble_(self) -> FoldedEnsemble:
        """The models of all folds with their rule."""
        check_is_fitted(self, "training_")
        return self.training_.ensemble

    def save(self, path: str | Path) -> None:
        """Write one model file with all models and the rule."""
        check_is_fitted(self, "training_")
        classes = {"classes": self.classes_.tolist()}
        write_model(path, self.training_, {**classes, **describe_features(True, self.categories_)})

    @classmethod
    def load(cls, path: str | Path) -> CrossTrainedClassifier:
        """Read a model file that `save`, `qbdt train --folds` or `qbdt run` wrote."""
        training, extra = read_cross_trained(path)
        template = QBDTClassifier(**make_parameters(training.trainings[0].settings) if training.trainings else {})
        model = cls(template, training.folds)
        model.training_ = training
        model.classes_, model.categories_ = read_classes(extra), extra.get("categories", {})
        if training.trainings:
            model._keep_features(training.ensemble.features)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags

    def _make_template(self) -> QBDTClassifier:
        """Return what trains each fold; refuse an estimator and a rule that are none."""
        if not isinstance(self.estimator, QBDTClassifier | None):
            raise ConfigError(f"estimator={self.estimator!r}: a QBDTClassifier is needed, or None for its defaults")
        if not isinstance(self.folds, FoldRule | None):
            raise ConfigError(f"folds={self.folds!r}: a rule such as ModuloFolds(2, 'event') is needed")
        return QBDTClassifier() if self.estimator is None else clone(self.estimator)

    def _keep_features(self, names: Sequence[str]) -> None:
        """Keep the names of the features; columns of the fold rule are none."""
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(list(names), dtype=object)

    @property
    def _n_threads(self) -> int | None:
        return None if self.estimator is None else self.estimator.n_threads

    @property
    def _device(self) -> str | None:
        return None if self.estimator is None else self.estimator.device

    def _make_events(self, X: Any) -> Events:
        """Events with the features of the models and, where X has them, the columns of the fold rule."""
        table = as_columns(number_categories(X, self.categories_))
        model = self.ensemble_
        identifiers = {name: table[name] for name in model.folds.columns if name in table}
        return make_unweighted(as_columns(table, model.features), identifiers)


def _train_folds(template: QBDTClassifier, dataset: Dataset, rule: FoldRule) -> CrossTrainedModel:
    """Train one model for each fold, without its events."""
    settings, monitor = template._make_settings(), template._make_monitor()
    options: dict[str, Any] = {"n_threads": template.n_threads, "device": template.device}
    trainings: list[TrainedModel] = []
    for fold in range(rule.k):
        events = dataset.without_fold(fold)
        trainings.append(train(events, settings, monitor=monitor, progress=template._progress, **options))
        if not trainings[-1].complete:  # Ctrl-C; a model for some folds only is of no use
            raise KeyboardInterrupt
    return CrossTrainedModel(tuple(trainings), rule)
