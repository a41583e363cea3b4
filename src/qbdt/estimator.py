"""`QBDTClassifier`: the scikit-learn face of training and scoring.

Thin: it checks and names what the caller has, makes a `Dataset` and calls `qbdt.training.methods.train`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from qbdt.data import Dataset, Events, FlatSystematic, Kind, as_columns
from qbdt.errors import ConfigError, DataError
from qbdt.models import read_model, write_model
from qbdt.progress import silent, terminal
from qbdt.training import Callback, Monitor, Settings, TrainedModel, train
from qbdt.training.profile import ProfiledEnsemble
from qbdt.trees import BinningChoice, Ensemble, Tree

__all__ = ["QBDTClassifier", "parameters"]

Validation = tuple[Any, ArrayLike] | tuple[Any, ArrayLike, ArrayLike | None]


class QBDTClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Boosted decision trees trained on the expected significance, with systematic uncertainties.

    Parameters
    ----------
    method
        "paper": the algorithm of the QBDT paper; "profile": the profiled method, which learns the best score for a fit
        that profiles the systematic uncertainties.
    n_trees
        Number of trees; None for the method's own: 100, and 500 for "profile". There it is the most of
        each sum, of which there are ten: five parts of the events, and for each the ratio of signal to background and
        the shifts; both stop where held-out events say so.
    n_leaves
        Most leaves of a tree; None for the method's own: 7, and 15 for "profile".
    max_bins
        Most bins of a feature, one of them for missing values.
    binning
        "quantile" with at most `max_bins` bins, or one (n_bins, low, high) per feature.
    growth
        "leaves": best first up to `n_leaves`; "published": the published program's node counter.
    mc_stat
        Whether the statistical uncertainty of the simulated background is added to σ_b. "profile" always counts it.
    learning_rate
        Multiplies every tree weight; for "profile" every step, which is a fifth of a tree's best output.
    n_threads
        Threads; None for all cores. Results never depend on it.
    random_state
        Seed of subsampling; None for 0: without subsampling nothing is random.
    max_depth
        Most cuts above a leaf.
    min_leaf_entries
        Least effective number of simulated background events in a leaf.
    row_fraction, feature_fraction
        Share of rows, and of features, drawn for each tree.
    categorical_features
        Features whose values are categories (whole numbers without an order): names, positions, or a mask over all.
    monotonic_constraints
        By name or position +1 for a feature with which the score must not fall, −1 for one with which it must not
        rise; or a list of +1, −1 and 0 over all features.
    early_stopping
        Trees without a better binned Q on the validation sample after which training stops.
    callbacks
        Functions called with a `TreeReport` after each tree; one that returns True stops the training.
    verbose
        Show a progress bar.

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
        method: str = "paper",
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
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        categorical_features: Sequence[str] | Sequence[int] | Sequence[bool] | NDArray[Any] | None = None,
        monotonic_constraints: Mapping[str, int] | Mapping[int, int] | Sequence[int] | NDArray[Any] | None = None,
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
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.categorical_features = categorical_features
        self.monotonic_constraints = monotonic_constraints
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
        table = self._table(X, reset=True)
        settings = self._settings(tuple(table))
        labels = self._encode_labels(X, y)
        monitor = Monitor(self._validation(validation), self.early_stopping, tuple(self.callbacks))
        self.training_: TrainedModel = train(
            self._dataset(table, labels, sample_weight, systematics),
            settings,
            n_threads=self.n_threads,
            monitor=monitor,
            progress=terminal if self.verbose else silent,
            resume=_earlier(resume),
            checkpoint=None if checkpoint is None else _Checkpoint(Path(checkpoint), checkpoint_every, self._extra()),
        )
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score of each row, positive for signal: Σ (2p − 1) W, or for "profile" t*, mapped to (−1, 1)."""
        return self.ensemble_.score(self._events(X), self.n_threads)

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Scores after the first tree, after the second, and so on."""
        yield from self.ensemble_.staged_scores(self._events(X), self.n_threads)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of background and signal, for equal yields of both.

        Every tree divides the weights' ratio of signal to background by exp((2p − 1) W), so exp(score) is the estimate
        of that ratio and 1/(1 + exp(−score)) of the probability. It orders events as the score does. For "profile"
        it is (1 + score)/2, which orders events as t* does but is no estimate of a probability.
        """
        score = self.decision_function(X)
        if isinstance(self.ensemble_, ProfiledEnsemble):
            return np.stack([0.5 * (1.0 - score), 0.5 * (1.0 + score)], axis=1)
        signal = 0.5 * (1.0 + np.tanh(0.5 * score))
        return np.stack([1.0 - signal, signal], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row: signal where the score is positive."""
        score = self.decision_function(X)
        return np.asarray(self.classes_[(score > 0).astype(np.intp)])

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Index of the leaf of each row in each tree."""
        return self.ensemble_.leaves(self._events(X), self.n_threads)

    @property
    def ensemble_(self) -> Ensemble | ProfiledEnsemble:
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
        gains = self.ensemble_.gains()
        return gains / gains.sum() if gains.sum() > 0 else gains

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
        model = cls(**parameters(training.settings))
        model.training_ = training
        model.classes_ = np.array(extra.get("classes", [0, 1]))
        model.n_features_in_ = len(training.ensemble.features)
        if extra.get("named", True):
            model.feature_names_in_ = np.array(training.ensemble.features, dtype=object)
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

    def _settings(self, features: Sequence[str]) -> Settings:
        names = inspect.signature(Settings).parameters
        resolved = {
            "random_state": 0 if self.random_state is None else self.random_state,
            "categorical_features": _names_of(self.categorical_features, features, "categorical_features"),
            "monotonic_constraints": _directions_by_name(self.monotonic_constraints, features, "monotonic_constraints"),
        }
        return Settings(**{**{name: getattr(self, name) for name in names}, **resolved})

    def _extra(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), "named": hasattr(self, "feature_names_in_")}

    def _encode_labels(self, X: Any, y: ArrayLike) -> NDArray[np.int8]:
        if y is None:
            raise DataError("requires y to be passed, but the target y is None")
        values = column_or_1d(y, warn=True)
        if (two := _two_numbers(values)) is not None:
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

    def _dataset(
        self,
        table: Mapping[str, NDArray[Any]],
        labels: NDArray[np.int8],
        weight: ArrayLike | None,
        systematics: Sequence[FlatSystematic],
    ) -> Dataset:
        weight = None if weight is None else np.asarray(weight)
        for label in (0, 1):
            if weight is not None and weight.shape == labels.shape and not np.any(weight[labels == label]):
                raise DataError(f"all weights of class {self.classes_[label]!r} are zero: both classes are needed")
        sources = [self._with_labels(source) for source in systematics]
        return Dataset.from_arrays(table, labels, weight, sources)

    def _with_labels(self, source: FlatSystematic) -> FlatSystematic:
        """Return a shape source with its labels written as those of y are."""
        if not isinstance(source, FlatSystematic) or source.kind is not Kind.SHAPE:
            return source
        sides = [
            None if s is None else (s[0], self._known_labels(s[1], source.name), s[2]) for s in (source.up, source.down)
        ]
        return FlatSystematic(source.name, source.kind, *sides)

    def _known_labels(self, y: ArrayLike, what: str) -> NDArray[np.int8]:
        values = np.asarray(y)
        unknown = values[~np.isin(values, self.classes_)]
        if unknown.size:
            raise DataError(f"{what}: y has the label {unknown[0]!r}, the labels are {self.classes_.tolist()}")
        return np.asarray(values == self.classes_[1], dtype=np.int8)

    def _validation(self, validation: Validation | None) -> Dataset | None:
        if validation is None:
            return None
        X, y = validation[0], validation[1]
        weight = validation[2] if len(validation) > 2 else None
        return Dataset.from_arrays(self._table(X, reset=False), self._known_labels(y, "validation"), weight)

    def _events(self, X: Any) -> Events:
        check_is_fitted(self, "training_")
        table = self._table(X, reset=False)
        n_rows = len(next(iter(table.values())))
        return Events(table, np.broadcast_to(np.float64(1.0), n_rows))

    def _table(self, X: Any, *, reset: bool) -> Mapping[str, NDArray[Any]]:
        """Columns of X by name, without copies; on prediction those of the fit, in its order."""
        if not _has_names(X):
            types = [np.float64, np.float32]
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


def parameters(settings: Settings) -> dict[str, Any]:
    """Return the parameters of an estimator that trains with these settings."""
    names = inspect.signature(QBDTClassifier).parameters
    values = {name: value for name, value in settings.to_dict().items() if name in names}
    return {**values, **{name: values[name] or None for name in ("categorical_features", "monotonic_constraints")}}


class _Checkpoint:
    """Writes the model after every so many trees."""

    def __init__(self, path: Path, every: int, extra: Mapping[str, Any]) -> None:
        if every < 1:
            raise ConfigError(f"checkpoint_every={every}: must be at least 1")
        self._path, self._every, self._extra = path, every, extra

    def __call__(self, training: TrainedModel) -> None:
        if training.is_checkpoint(self._every):
            write_model(self._path, training, self._extra)


def _earlier(resume: str | Path | QBDTClassifier | None) -> TrainedModel | None:
    if resume is None:
        return None
    if isinstance(resume, QBDTClassifier):
        check_is_fitted(resume, "training_")
        return resume.training_
    return read_model(resume)[0]


def _two_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int8]] | None:
    """Return the two whole numbers that labels take and which rows have the larger, without sorting; None otherwise."""
    if values.dtype.kind not in "biuf" or not values.size:
        return None
    low, high = values.min(), values.max()
    signal = values == high
    if not (np.isfinite(low) and low < high and low == int(low) and high == int(high)):
        return None
    return (np.array([low, high]), signal.view(np.int8)) if np.all(signal | (values == low)) else None


def _has_names(table: Any) -> bool:
    """Whether a table knows the names of its columns (and so is not left to scikit-learn's checks)."""
    if isinstance(table, np.ndarray) or issparse(table):
        return bool(table.dtype.names)
    return isinstance(table, Mapping) or hasattr(table, "columns") or hasattr(table, "__arrow_c_stream__")


def _names_of(choice: Any, features: Sequence[str], what: str) -> list[str]:
    """Names of features that are given by name, by position, or by a mask over all.

    Examples
    --------
    >>> _names_of([False, True], ["pt", "year"], "categorical_features"), _names_of([0], ["pt"], "")
    (['year'], ['pt'])
    """
    if choice is None:
        return []
    given = np.asarray(choice)
    if given.ndim != 1:
        raise ConfigError(f"{what}={choice!r}: a list of names or positions of features, or a mask, is needed")
    if given.dtype == np.bool_:
        if len(given) != len(features):
            raise ConfigError(f"{what}: a mask of {len(given)} entries for {len(features)} features")
        return [name for name, chosen in zip(features, given, strict=True) if chosen]
    return [_feature(one, features, what) for one in given.tolist()]


def _directions_by_name(constraints: Any, features: Sequence[str], what: str) -> dict[str, Any]:
    """Values by name that are given by name, by position, or in a list over all features.

    Examples
    --------
    >>> _directions_by_name([1, 0], ["pt", "eta"], ""), _directions_by_name({1: -1}, ["pt", "m"], "")
    ({'pt': 1, 'eta': 0}, {'m': -1})
    """
    if constraints is None:
        return {}
    if isinstance(constraints, Mapping):
        return {_feature(one, features, what): direction for one, direction in constraints.items()}
    given = np.asarray(constraints)
    if given.shape != (len(features),):
        raise ConfigError(f"{what} has shape {given.shape}: one number for each of {len(features)} features is needed")
    return dict(zip(features, given.tolist(), strict=True))


def _feature(one: Any, features: Sequence[str], what: str) -> str:
    if isinstance(one, str):
        return one
    if not isinstance(one, int | np.integer) or isinstance(one, bool):
        raise ConfigError(f"{what}: {one!r}: must be a name or a position")
    if not 0 <= one < len(features):
        raise ConfigError(f"{what}: position {one}: there are {len(features)} features, counted from 0")
    return features[int(one)]
