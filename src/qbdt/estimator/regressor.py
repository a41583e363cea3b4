"""`QBDTRegressor`: predictions whose mean systematic sources move little."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from qbdt.arrays import Floats
from qbdt.data import FlatSystematic, Systematic, from_target
from qbdt.data.columns import as_columns, drop_columns, name_columns, number_categories, require_unmasked
from qbdt.errors import DataError, ModelFileError
from qbdt.estimator.table_estimator import COMMON_PARAMETERS, TableEstimator, replace_fit
from qbdt.models import read_model, score_events, write_model
from qbdt.training import Settings
from qbdt.training.regression import Loss, TrainedRegression, train_regression
from qbdt.trees import BinningChoice

PARAMETERS = {
    "loss": '"squared"; "huber", which is linear beyond `delta`; or "quantile", for the one that `quantile` names.',
    "delta": 'Residual, in units of the target, beyond which "huber" is linear.',
    "quantile": 'Share of events below the prediction, for "quantile".',
    "n_events": "Events whose mean prediction is measured: a shift of the mean is charged so many times. By default "
    "the expected events, the sum of the weights; 1 for the prediction of a single event.",
    "n_trees": "Most trees of each sum, by default 1000. There are two in each of five folds of the events, the "
    "prediction and the shifts, and each stops where held-out events say so.",
    "n_leaves": "Most leaves of a tree, by default 15.",
    "learning_rate": "Factor on every step, a fifth of a tree's best output.",
    "min_leaf_entries": "Least effective number of events in a leaf; at least 200 in leaves of shifts.",
    **COMMON_PARAMETERS,
}
"""Parameters of `QBDTRegressor` that are no settings, or that mean less than the setting does."""


class QBDTRegressor(RegressorMixin, TableEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Boosted decision trees for a target, with systematic uncertainties inside training.

    The loss is charged for the shift of the mean prediction under each source, as much as the shift costs a
    measurement of that mean (docs/regression.md).

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=500)
    >>> model = QBDTRegressor(n_trees=50).fit(X, y)
    >>> model.predict(X[:2]).shape, model.score(X, y) > 0.9
    ((2,), True)
    """

    def __init__(
        self,
        loss: str = "squared",
        delta: float | None = None,
        quantile: float = 0.5,
        n_events: float | None = None,
        n_trees: int | None = None,
        n_leaves: int | None = None,
        max_bins: int = 256,
        binning: BinningChoice = "quantile",
        learning_rate: float = 1.0,
        n_threads: int | None = None,
        random_state: int | None = None,
        max_depth: int | None = None,
        min_leaf_entries: float = 20.0,
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        categorical_features: Sequence[str] | Sequence[int] | Sequence[bool] | NDArray[Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.delta = delta
        self.quantile = quantile
        self.n_events = n_events
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.max_bins = max_bins
        self.binning = binning
        self.learning_rate = learning_rate
        self.n_threads = n_threads
        self.random_state = random_state
        self.max_depth = max_depth
        self.min_leaf_entries = min_leaf_entries
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.categorical_features = categorical_features
        self.verbose = verbose

    training_: TrainedRegression

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        systematics: Sequence[FlatSystematic | Systematic] = (),
        *,
        event_id: Any = None,
    ) -> QBDTRegressor:
        """Train.

        Parameters
        ----------
        X
            Rows × features: an array, a pandas or Arrow table. NaN is a missing value, and a pandas categorical a
            categorical feature.
        y
            Target of each row, a finite number.
        sample_weight
            True expected yields; 1 if not given. Negative ones are allowed, except for "quantile".
        systematics
            Sources made with `Systematic.shape` (with targets in the place of labels), `.weight` or `.norm`.
        event_id
            Identifiers that tell events apart: an array, or columns of X that are not trained on, as in
            `QBDTClassifier.fit`. Rows of every table may then come in any order.
        """
        loss = Loss(self.loss, self.delta, self.quantile)
        with replace_fit(self):
            apart = name_columns(event_id)
            table = self._check_table(drop_columns(X, apart, "X has "), reset=True)
            if y is None:
                raise DataError("requires y to be passed, but the target y is None")
            target = column_or_1d(require_unmasked(y, "y"), warn=True)
            weight = None if sample_weight is None else require_unmasked(sample_weight, "sample_weight")
            settings = self._make_settings()
            systematics = Systematic.read_list(systematics)
            sources = [source.map_tables(self._number_categories) for source in systematics]
            columns = {**table, **as_columns(X, apart)} if apart else table
            dataset = from_target(columns, target, weight, sources, event_id)
            self.training_ = train_regression(
                dataset, settings, loss, n_events=self.n_events, n_threads=self.n_threads, progress=self._progress
            )
        return self

    def predict(self, X: Any) -> Floats:
        """Prediction of each row."""
        return score_events(self.ensemble_, self._make_events(X), self.n_threads)

    def save(self, path: str | Path) -> None:
        """Write the model file."""
        check_is_fitted(self, "training_")
        write_model(path, self.training_, self._describe_features())

    @classmethod
    def load(cls, path: str | Path) -> QBDTRegressor:
        """Read a model file."""
        training, extra = read_model(path)
        if not isinstance(training, TrainedRegression):
            raise ModelFileError(f"{path}: a classifier, where a regression is needed; load it with QBDTClassifier")
        settings, loss = training.settings, training.loss
        chosen = {name: getattr(settings, name) for name in cls._settings()}
        chosen["categorical_features"] = settings.categorical_features or None
        model = cls(loss.name, loss.delta, loss.quantile, training.n_events, **chosen)
        model.training_ = training
        model._take_features(training.ensemble.features, extra)
        return model

    @classmethod
    def _settings(cls) -> list[str]:
        """Names of the parameters that are settings."""
        rules = Settings.rules()
        return [name for name in inspect.signature(cls).parameters if name in rules]

    def _make_settings(self) -> Settings:
        values = {name: getattr(self, name) for name in self._settings()}
        return self._resolve_settings(values)

    def _number_categories(self, table: Any, *others: Any) -> Any:
        """Write the categories of a varied table as numbers."""
        return number_categories(table, self.categories_, self._names()), *others


if QBDTRegressor.__doc__:  # absent under python -OO
    _names = inspect.signature(QBDTRegressor).parameters
    QBDTRegressor.__doc__ = Settings.document(QBDTRegressor.__doc__, _names, **PARAMETERS)
