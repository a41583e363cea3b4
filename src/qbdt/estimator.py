"""The scikit-learn face of training and scoring: `QBDTClassifier`, and `CrossTrainedClassifier` for folds.

Thin: they check and name what the caller has, make a `Dataset` and call `qbdt.training.train`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from qbdt.data import (
    Dataset,
    Events,
    FlatSystematic,
    FoldRule,
    Kind,
    Systematic,
    as_columns,
    require_unmasked,
)
from qbdt.errors import ConfigError, DataError, ModelFileError
from qbdt.models import read_cross_trained, read_model, write_model
from qbdt.progress import silent, visible
from qbdt.training import (
    Callback,
    CrossTrainedModel,
    FoldedEnsemble,
    Monitor,
    Partner,
    Settings,
    SingleModel,
    TrainedModel,
    gain_shares,
    train,
)
from qbdt.trees import BinningChoice, Tree

__all__ = ["CrossTrainedClassifier", "QBDTClassifier"]

Validation = tuple[Any, ArrayLike] | tuple[Any, ArrayLike, ArrayLike | None]
Columns = Mapping[str, NDArray[Any]]

PARAMETERS = {
    "n_threads": "Threads; None for all cores. Results never depend on it.",
    "random_state": "Seed of subsampling; None for 0: without subsampling nothing is random.",
    "categorical_features": "Features whose values are categories (whole numbers without an order): names, positions, "
    "or a mask over all.",
    "monotonic_constraints": "By name or position +1 for a feature with which the score must not fall, −1 for one with "
    "which it must not rise; or a list of +1, −1 and 0 over all features.",
    "early_stopping": "Trees without a better binned Q on the validation sample after which training stops.",
    "callbacks": "Functions called with a `TreeReport` after each tree; one that returns True stops the training.",
    "verbose": "Show progress: a bar in a terminal, lines elsewhere.",
}
"""Parameters of `QBDTClassifier` that are no settings, or that take more than the setting does."""


class QBDTClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Boosted decision trees trained on the expected significance, with systematic uncertainties.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> X = np.concatenate([rng.normal(1, 1, (200, 2)), rng.normal(-1, 1, (200, 2))])
    >>> y = np.repeat([1, 0], 200)
    >>> model = QBDTClassifier(n_trees=5).fit(X, y)
    >>> model.decision_function(X[:2]).shape, model.score(X, y) > 0.85
    ((2,), True)
    """

    def __init__(
        self,
        method: str = "profile",
        n_trees: int | None = None,
        n_leaves: int | None = None,
        max_bins: int = 256,
        binning: BinningChoice = "quantile",
        growth: str = "leaves",
        mc_stat: bool = False,
        learning_rate: float = 1.0,
        n_threads: int | None = None,
        random_state: int | None = None,
        max_depth: int | None = None,
        min_leaf_entries: float = 0.0,
        negative_weights: str = "smooth",
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        categorical_features: Sequence[str] | Sequence[int] | Sequence[bool] | NDArray[Any] | None = None,
        monotonic_constraints: Mapping[str, int] | Mapping[int, int] | Sequence[int] | NDArray[Any] | None = None,
        partner: Partner | None = None,
        free: Sequence[str] = (),
        strengths: Mapping[str, Any] | None = None,
        of_interest: Sequence[str] = (),
        early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (),
        verbose: bool = False,
    ) -> None:
        self.method = method
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.max_bins = max_bins
        self.binning = binning
        self.growth = growth
        self.mc_stat = mc_stat
        self.learning_rate = learning_rate
        self.n_threads = n_threads
        self.random_state = random_state
        self.max_depth = max_depth
        self.min_leaf_entries = min_leaf_entries
        self.negative_weights = negative_weights
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.categorical_features = categorical_features
        self.monotonic_constraints = monotonic_constraints
        self.partner = partner
        self.free = free
        self.strengths = strengths
        self.of_interest = of_interest
        self.early_stopping = early_stopping
        self.callbacks = callbacks
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        systematics: Sequence[FlatSystematic] = (),
        *,
        validation: Validation | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        resume: str | Path | QBDTClassifier | None = None,
    ) -> QBDTClassifier:
        """Train.

        Parameters
        ----------
        X
            Rows × features: an array, a pandas or Arrow table. NaN is a missing value.
        y
            1 for signal, 0 (or −1) for background; of any two other labels the larger is signal.
        sample_weight
            True expected yields; negative ones are allowed.
        systematics
            Sources made with `Systematic.shape`, `.weight` or `.norm`.
        validation
            (X, y) or (X, y, weight) for early stopping.
        checkpoint
            File to write the model to during training.
        checkpoint_every
            Trees between two writings of it.
        resume
            A model, or a model file, trained with the same settings on the same events, to be continued.
        """
        table = self._check_table(X, reset=True)
        settings = self._make_settings(tuple(table))
        labels = self._encode_labels(X, y)
        monitor = Monitor(self._make_validation(validation), self.early_stopping, tuple(self.callbacks))
        self.training_: TrainedModel = train(
            self._make_dataset(table, labels, sample_weight, systematics),
            settings,
            n_threads=self.n_threads,
            monitor=monitor,
            progress=visible(last=True) if self.verbose else silent,
            resume=_read_earlier(resume),
            checkpoint=None if checkpoint is None else _Checkpoint(Path(checkpoint), checkpoint_every, self._extra()),
        )
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score of each row, positive for signal: Σ (2p − 1) W, or for "profile" t*, mapped to (−1, 1)."""
        return self.ensemble_.score(self._make_events(X), self.n_threads)

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Scores after the first tree, after the second, and so on."""
        yield from self.ensemble_.staged_scores(self._make_events(X), self.n_threads)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of background and signal, for equal yields of both.

        Every tree divides the weights' ratio of signal to background by exp((2p − 1) W), so exp(score) is the estimate
        of that ratio and 1/(1 + exp(−score)) of the probability. It orders events as the score does. For "profile"
        it is (1 + score)/2, which orders events as t* does but is no estimate of a probability.
        """
        return self.ensemble_.probabilities(self.decision_function(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row: signal where the score is positive."""
        score = self.decision_function(X)
        return np.asarray(self.classes_[(score > 0).astype(np.intp)])

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Index of the leaf of each row in each tree."""
        return self.ensemble_.leaves(self._make_events(X), self.n_threads)

    @property
    def ensemble_(self) -> SingleModel:
        """The trees."""
        check_is_fitted(self, "training_")
        return self.training_.ensemble

    @property
    def trees_(self) -> tuple[Tree, ...]:
        """The trees, one by one."""
        return self.ensemble_.trees

    @property
    def tree_weights_(self) -> NDArray[np.float64]:
        """Tree weights W."""
        return self.ensemble_.weights

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the gain of all splits: ΔQ, or for "profile" information about μ."""
        return np.asarray(gain_shares(self.ensemble_)[0])

    def to_frame(self) -> Any:
        """Return all nodes as a pandas table: one row per node, with its cuts, yields and output."""
        return self.ensemble_.to_frame()

    def save(self, path: str | Path) -> None:
        """Write the model file."""
        check_is_fitted(self, "training_")
        write_model(path, self.training_, self._extra())

    @classmethod
    def load(cls, path: str | Path) -> QBDTClassifier:
        """Read a model file."""
        training, extra = read_model(path)
        model = cls(**_make_parameters(training.settings))
        model.training_ = training
        model.classes_ = _read_classes(extra)
        model.n_features_in_ = len(training.ensemble.features)
        if extra.get("named", True):
            model.feature_names_in_ = np.array(training.ensemble.features, dtype=object)
        model.categories_ = extra.get("categories", {})
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_class = False
        return tags

    def _repr_html_inner(self) -> str:
        return self._with_summary(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return {kind: self._with_summary(text) if kind == "text/html" else text for kind, text in bundle.items()}

    def _with_summary(self, diagram: str) -> str:
        """Put what was trained above scikit-learn's picture of the parameters, which is folded away."""
        if not hasattr(self, "training_"):
            return diagram
        return f"{self.training_._repr_html_()}<details><summary>Parameters</summary>{diagram}</details>"

    def _make_settings(self, features: Sequence[str]) -> Settings:
        values = {name: getattr(self, name) for name in Settings.rules()}
        values["strengths"] = self.strengths or {}
        if self.categories_:
            given = Settings.for_features(features, categorical_features=self.categorical_features)
            values["categorical_features"] = [*given.categorical_features, *self.categories_]
        seed = 0 if self.random_state is None else self.random_state
        return Settings.for_features(features, **{**values, "random_state": seed})

    def _extra(self) -> dict[str, Any]:
        known = {"classes": self.classes_.tolist(), "named": hasattr(self, "feature_names_in_")}
        return {**known, "categories": self.categories_} if self.categories_ else known

    def _encode_labels(self, X: Any, y: ArrayLike) -> NDArray[np.int8]:
        if y is None:
            raise DataError("requires y to be passed, but the target y is None")
        values = column_or_1d(require_unmasked(y, "y"), warn=True)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise DataError("Input y contains NaN or infinity: every row needs a label")
        if (two := _encode_two_numbers(values)) is not None:
            self.classes_, signal = two
            return signal
        if not values.size:
            raise DataError("y is empty: events of signal and background are both needed")
        check_classification_targets(values)
        self.classes_ = np.unique(values)
        if len(self.classes_) > 2:
            raise DataError(f"Only binary classification is supported: y has {len(self.classes_)} classes")
        if len(self.classes_) < 2:
            raise DataError(f"y has one class only, {self.classes_[0]}: signal and background are both needed")
        return np.asarray(values == self.classes_[1], dtype=np.int8)

    def _make_dataset(
        self,
        table: Columns,
        labels: NDArray[np.int8],
        weight: ArrayLike | None,
        systematics: Sequence[FlatSystematic],
    ) -> Dataset:
        if isinstance(systematics, FlatSystematic | Systematic):
            raise DataError(f"systematics={systematics!r}: a list of sources is needed")
        weight = None if weight is None else require_unmasked(weight, "sample_weight")
        for label in (0, 1):
            if weight is not None and weight.shape == labels.shape and not np.any(weight[labels == label]):
                raise DataError(f"all weights of class {self.classes_[label]!r} are zero: both classes are needed")
        sources = [self._encode_source(source) for source in systematics]
        return Dataset.from_arrays(table, labels, weight, sources)

    def _encode_source(self, source: FlatSystematic) -> FlatSystematic:
        """Return a shape source with its labels written as those of y are."""
        if not isinstance(source, FlatSystematic) or source.kind is not Kind.SHAPE:
            return source

        def encode(side: Any) -> Any:
            table, labels, weight = side
            return _encode_categories(table, self.categories_), self._encode_known(labels, source.name), weight

        sides = [None if side is None else encode(side) for side in (source.up, source.down)]
        return FlatSystematic(source.name, source.kind, *sides)

    def _encode_known(self, y: ArrayLike, what: str) -> NDArray[np.int8]:
        values = require_unmasked(y, f"{what}: y")
        unknown = values[~np.isin(values, self.classes_)]
        if unknown.size:
            raise DataError(f"{what}: y has the label {unknown[0]!r}, the labels are {self.classes_.tolist()}")
        return np.asarray(values == self.classes_[1], dtype=np.int8)

    def _make_validation(self, validation: Validation | None) -> Dataset | None:
        if validation is None:
            return None
        X, y = validation[0], validation[1]
        weight = validation[2] if len(validation) > 2 else None
        return Dataset.from_arrays(self._check_table(X, reset=False), self._encode_known(y, "validation"), weight)

    def _make_events(self, X: Any) -> Events:
        check_is_fitted(self, "training_")
        return _make_unweighted(self._check_table(X, reset=False))

    def _check_table(self, X: Any, *, reset: bool) -> Columns:
        """Columns of X by name, without copies; on prediction those of the fit, in its order."""
        if reset:
            self.categories_ = _find_categories(X)
        X = _encode_categories(X, self.categories_)
        if not _has_names(X):
            types = [np.float64, np.float32]
            if isinstance(X, np.ma.MaskedArray):
                X = np.column_stack(list(as_columns(X).values()))
            checked = validate_data(self, X, reset=reset, dtype=types, ensure_all_finite="allow-nan")
            return as_columns(checked, None if reset else self._names())
        columns = as_columns(X, None if reset else self._names())
        for name, values in columns.items():
            if values.dtype.kind not in "biuf":
                raise DataError(f"column {name} has type {values.dtype}: features must be numbers")
            if values.dtype.kind == "f" and np.isinf(values).any():
                raise DataError(f"Input X contains infinity: column {name}")
        if reset:
            self.n_features_in_ = len(columns)
            self.feature_names_in_ = np.array(list(columns), dtype=object)
        return columns

    def _names(self) -> list[str]:
        if hasattr(self, "training_"):
            return list(self.training_.ensemble.features)
        return list(getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)]))


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
        fold = self._assign_folds(table, "X")
        labels = require_unmasked(y, "y")
        weight = np.ones(len(labels)) if sample_weight is None else require_unmasked(sample_weight, "sample_weight")
        for name, values in (("y", labels), ("sample_weight", weight)):
            if values.shape != fold.shape:
                raise DataError(f"{name} has shape {values.shape}, X has {len(fold)} rows")
        models = []
        for number in range(self.folds.k):
            keep = fold != number
            sources = [self._without(source, fold, number) for source in systematics]
            models.append(
                self._fit_one(number, self._select_features(table, keep), labels[keep], weight[keep], sources)
            )
            if not models[-1].training_.complete:  # Ctrl-C; a model for some folds only is of no use
                raise KeyboardInterrupt
        self.training_ = CrossTrainedModel(tuple(model.training_ for model in models), self.folds)
        self.classes_: NDArray[Any] = models[0].classes_
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score of each row, from the model that did not see it; X has the columns of the fold rule."""
        table = as_columns(X)
        identifiers = {name: table[name] for name in self.folds.columns if name in table}
        return self.ensemble_.score(self._make_events(table, identifiers), self.estimator.n_threads)

    def average_decision_function(self, X: Any) -> NDArray[np.float64]:
        """Mean of the scores of all models: for events that took no part in the training, with or without identifiers.

        It is spread less than the scores of single models; do not mix the two in one template.
        """
        return self.ensemble_.average(self._make_events(as_columns(X), {}), self.estimator.n_threads)

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
        template = QBDTClassifier(**_make_parameters(training.trainings[0].settings) if training.trainings else {})
        model = cls(template, training.folds)
        model.training_ = training
        model.classes_ = _read_classes(extra)
        return model

    def _fit_one(
        self, fold: int, table: Columns, y: NDArray[Any], weight: NDArray[Any], systematics: list[FlatSystematic]
    ) -> QBDTClassifier:
        try:
            return clone(self.estimator).fit(table, y, weight, systematics)  # type: ignore[no-any-return]
        except DataError as error:
            raise DataError(f"without fold {fold}: {error}") from error

    def _assign_folds(self, table: Columns, what: str) -> NDArray[np.int64]:
        absent = [name for name in self.folds.columns if name not in table]
        if absent:
            raise DataError(f"{what} has no column {', '.join(absent)}, which the fold rule needs")
        return self.folds.assign(_make_unweighted({}, {name: table[name] for name in self.folds.columns}))

    def _select_features(self, table: Columns, keep: NDArray[np.bool_]) -> Columns:
        return {name: values[keep] for name, values in table.items() if name not in self.folds.columns}

    def _without(self, source: FlatSystematic, fold: NDArray[np.int64], number: int) -> FlatSystematic:
        """Return a source on the rows that are not in a fold; a shape variation's rows are divided by their own ids."""
        keep = fold != number

        def side(values: Any) -> Any:
            if values is None:
                return None
            if source.kind is Kind.WEIGHT:
                return require_unmasked(values, f"systematic {source.name}: weight")[keep]
            if source.kind is Kind.NORM:
                size, where = values
                return size, None if where is None else require_unmasked(where, f"systematic {source.name}")[keep]
            what = f"systematic {source.name}: y or weight"
            table, labels, weight = as_columns(values[0]), *(require_unmasked(column, what) for column in values[1:])
            own = self._assign_folds(table, f"systematic {source.name}") != number
            return self._select_features(table, own), labels[own], weight[own]

        return FlatSystematic(source.name, source.kind, side(source.up), side(source.down))

    def _make_events(self, table: Columns, identifiers: Columns) -> Events:
        return _make_unweighted(as_columns(table, self.ensemble_.features), identifiers)


def _make_parameters(settings: Settings) -> dict[str, Any]:
    """Parameters of an estimator that trains with these settings."""
    values = {name: getattr(settings, name) for name in Settings.rules()}
    wider = ("categorical_features", "monotonic_constraints", "strengths")
    return {**values, **{name: values[name] or None for name in wider}}


def _make_unweighted(features: Columns, identifiers: Columns | None = None) -> Events:
    """Events of weight 1, without copies."""
    columns = features or identifiers or {}
    n_rows = len(next(iter(columns.values())))
    return Events(features, np.broadcast_to(np.float64(1.0), n_rows), identifiers or {})


def _read_classes(extra: Mapping[str, Any]) -> NDArray[Any]:
    """Labels of background and signal that are kept with a model."""
    classes = extra.get("classes", [0, 1])
    plain = isinstance(classes, list) and len(classes) == 2 and all(isinstance(c, str | int | float) for c in classes)
    if not plain or np.array(classes).dtype.kind == "O":
        raise ModelFileError("classes: two labels are needed")
    return np.array(classes)


class _Checkpoint:
    """Writes the model after every so many trees."""

    def __init__(self, path: Path, every: int, extra: Mapping[str, Any]) -> None:
        if every < 1:
            raise ConfigError(f"checkpoint_every={every}: must be at least 1")
        self._path, self._every, self._extra = path, every, extra

    def __call__(self, training: TrainedModel) -> None:
        if training.is_checkpoint(self._every):
            write_model(self._path, training, self._extra)


def _read_earlier(resume: str | Path | QBDTClassifier | None) -> TrainedModel | None:
    if resume is None:
        return None
    if isinstance(resume, QBDTClassifier):
        check_is_fitted(resume, "training_")
        return resume.training_
    return read_model(resume)[0]


def _encode_two_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int8]] | None:
    """Return the two whole numbers that labels take and which rows have the larger, without sorting; None otherwise."""
    if values.dtype.kind not in "biuf" or not values.size:
        return None
    low, high = values.min(), values.max()
    signal = values == high
    if not (low < high and low == int(low) and high == int(high)):
        return None
    return (np.array([low, high]), signal.view(np.int8)) if np.all(signal | (values == low)) else None


def _find_categories(table: Any) -> dict[str, list[Any]]:
    """Values of each categorical column of a pandas table, in their order: its rows become their numbers."""
    if not type(table).__module__.startswith("pandas") or not hasattr(table, "columns"):
        return {}
    found = {str(name): getattr(table[name].dtype, "categories", None) for name in table.columns}
    return {name: categories.tolist() for name, categories in found.items() if categories is not None}


def _encode_categories(table: Any, categories: Mapping[str, list[Any]]) -> Any:
    """Numbers of categories in place of pandas categoricals; missing where a value has none."""
    mine = [name for name in categories if name in _find_categories(table)]
    if not mine:
        return table

    def encode(name: str) -> NDArray[np.float32]:
        codes = table[name].cat.set_categories(categories[name]).cat.codes.to_numpy()
        return np.where(codes < 0, np.nan, codes).astype(np.float32)

    return table.assign(**{name: encode(name) for name in mine})


def _has_names(table: Any) -> bool:
    """Whether a table knows the names of its columns (and so is not left to scikit-learn's checks)."""
    if isinstance(table, np.ndarray) or issparse(table):
        return bool(table.dtype.names)
    return isinstance(table, Mapping) or hasattr(table, "columns") or hasattr(table, "__arrow_c_stream__")


if QBDTClassifier.__doc__:  # absent under python -OO
    _names = inspect.signature(QBDTClassifier).parameters
    QBDTClassifier.__doc__ = QBDTClassifier.__doc__.replace("{parameters}", Settings.document(_names, **PARAMETERS))
