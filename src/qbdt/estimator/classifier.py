"""`QBDTClassifier`: signal against background, from arrays, tables or a `Dataset`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from qbdt.arrays import Floats
from qbdt.data import Dataset, FlatSystematic, FoldRule, Systematic
from qbdt.data.columns import as_columns, drop_columns, has_names, name_columns, number_categories, require_unmasked
from qbdt.errors import ConfigError, DataError, ModelFileError, is_number
from qbdt.estimator.labels import (
    PROCESS,
    add_process,
    choose_labels,
    find_signal,
    name_strengths,
    read_classes,
    read_labels,
)
from qbdt.estimator.table_estimator import COMMON_PARAMETERS, TableEstimator, replace_fit
from qbdt.models import classify_events, read_model, require_model_place, score_events, write_model
from qbdt.training import Callback, Monitor, Partner, Settings, TrainedModel, train
from qbdt.training.regression import TrainedRegression
from qbdt.trees import BinningChoice
from qbdt.trees.device import open_device

Validation = tuple[Any, ArrayLike] | tuple[Any, ArrayLike, ArrayLike | None]
Sources = Sequence[FlatSystematic | Systematic]

PARAMETERS = {
    **COMMON_PARAMETERS,
    "device": '"cuda" to train and score on a GPU, None for the CPU. Results never depend on it.',
    "monotonic_constraints": "By name or position +1 for a feature with which the score must not fall, −1 for one with "
    "which it must not rise; or a list of +1, −1 and 0 over all features.",
    "strengths": 'For "profile": several signal strengths by name, and the labels of y (or signal processes) that each '
    "multiplies; the smallest label is the background. There is a score for each strength.",
    "early_stopping": "Trees without a better binned Q on the validation sample after which training stops.",
    "callbacks": "Functions called with a `TreeReport` after each tree; one that returns True stops the training.",
}
"""Parameters of `QBDTClassifier` that are no settings, or that take more than the setting does."""


class QBDTClassifier(ClassifierMixin, TableEstimator):  # type: ignore[misc]  # scikit-learn is untyped
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
        at: Mapping[str, float] | None = None,
        early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (),
        verbose: bool = False,
        device: str | None = None,
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
        self.at = at
        self.early_stopping = early_stopping
        self.callbacks = callbacks
        self.verbose = verbose
        self.device = device

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        systematics: Sources = (),
        *,
        process: str | ArrayLike | None = None,
        event_id: Any = None,
        validation: Validation | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        resume: str | Path | QBDTClassifier | None = None,
    ) -> QBDTClassifier:
        """Train.

        Parameters
        ----------
        X
            Rows × features: an array, a pandas or Arrow table. NaN is a missing value, and a pandas categorical a
            categorical feature. Or a `Dataset`, which has all that follows up to `event_id`.
        y
            1 for signal, 0 (or −1) for background; of any two other labels the larger is signal. With `strengths` there
            may be more labels: the smallest is the background.
        sample_weight
            True expected yields; negative ones are allowed.
        systematics
            Sources made with `Systematic.shape`, `.weight` or `.norm`.
        process
            Process of each row, or the column of X (and of the tables of shape sources) that names it, for
            normalisations by process; that column is not trained on.
        event_id
            Identifiers that tell events apart: an array over the rows (or rows × numbers), or columns of X that hold
            them, which are not trained on. Shape sources have them too: `Systematic.shape(…, event_id=…)` for an array,
            else the same columns. Rows are put into their order, so that those of every table may come in any order.
            Without them the profiled method divides events into inner folds by position, and `row_fraction` below 1
            draws rows by position: there another order is another draw.
        validation
            (X, y) or (X, y, weight) for early stopping.
        checkpoint, checkpoint_every
            File to write the model to during training, and trees between two writings of it.
        resume
            A model, or a model file, trained with the same settings on the same events, to be continued.
        """
        open_device(self.device)  # says what is missing before events are looked at
        earlier = _read_earlier(resume)
        with replace_fit(self):
            prepared = [self._prepare(X, y, sample_weight, systematics, process, event_id)]
            monitor = self._make_monitor(self._make_validation(validation))
            self.training_: TrainedModel = train(
                prepared.pop(),  # so that training can let go of the events when its own arrays are filled
                self._make_settings(),
                n_threads=self.n_threads,
                monitor=monitor,
                progress=self._progress,
                resume=earlier,
                checkpoint=None if checkpoint is None else _Checkpoint(checkpoint, checkpoint_every, self._extra()),
                device=self.device,
            )
        return self

    def decision_function(self, X: Any) -> Floats:
        """Score of each row, positive for signal: Σ (2p − 1) W, or for "profile" t*, mapped to (−1, 1).

        With several parameters of interest there is a column for each.
        """
        return score_events(self.ensemble_, self._make_events(X), self.n_threads, self.device)

    def staged_decision_function(self, X: Any) -> Iterator[Floats]:
        """Scores after the first tree, after the second, and so on."""
        yield from self.ensemble_.staged_scores(self._make_events(X), self.n_threads)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of background and signal, for equal yields of both.

        Every tree divides the weights' ratio of signal to background by exp((2p − 1) W), so exp(score) is the estimate
        of that ratio and 1/(1 + exp(−score)) of the probability. It orders events as the score does. For "profile"
        it is (1 + score)/2, which orders events as t* does but is no estimate of a probability. With several strengths
        it is the share of each one's signal, as (row, label).
        """
        return classify_events(self.ensemble_, self._make_events(X), self.n_threads, self.device)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row: signal where the score is positive; with several strengths the most likely one."""
        return choose_labels(self, X)

    @property
    def tree_weights_(self) -> Floats:
        """Tree weights W."""
        return self.ensemble_.weights

    def save(self, path: str | Path) -> None:
        """Write the model file."""
        check_is_fitted(self, "training_")
        write_model(path, self.training_, self._extra())

    @classmethod
    def load(cls, path: str | Path) -> QBDTClassifier:
        """Read a model file."""
        training, extra = read_model(path)
        if isinstance(training, TrainedRegression):
            raise ModelFileError(f"{path}: a regression, where a classifier is needed; load it with QBDTRegressor")
        model = cls(**make_parameters(training.settings))
        model.training_ = training
        model.classes_ = read_classes(extra)
        model._take_features(training.ensemble.features, extra)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _make_settings(self) -> Settings:
        values = {name: getattr(self, name) for name in Settings.rules()}
        return self._resolve_settings(
            {**values, "strengths": name_strengths(self.strengths, self.classes_), "at": self.at or {}}
        )

    def _extra(self) -> dict[str, Any]:
        return {"classes": self.classes_.tolist(), **self._describe_features()}

    def _prepare(
        self,
        X: Any,
        y: ArrayLike | None,
        weight: ArrayLike | None,
        systematics: Sources,
        process: str | ArrayLike | None,
        event_id: Any = None,
        folds: FoldRule | None = None,
    ) -> Dataset:
        """Check and name what is given and make a dataset of it; features, classes and categories are kept."""
        if isinstance(X, Dataset):
            return self._take_dataset(X, y, weight, systematics, process, event_id)
        of_folds = () if folds is None else folds.columns
        apart = (*([process] if isinstance(process, str) else []), *of_folds)
        apart = tuple(dict.fromkeys((*apart, *name_columns(event_id))))
        table = self._check_table(drop_columns(X, apart, "X has "), reset=True)
        self.classes_, signal = read_labels(y, several=bool(self.strengths))
        systematics = Systematic.read_list(systematics)
        weight = None if weight is None else require_unmasked(weight, "sample_weight")
        for label, rows in zip(self.classes_, (~signal, signal), strict=False):
            if weight is not None and weight.shape == rows.shape and not np.any(weight[rows]):
                raise DataError(f"all weights of class {label} are zero: both classes are needed")
        columns = {**table, **as_columns(X, apart)} if apart else table
        if len(self.classes_) > 2:
            if process is not None:
                raise DataError("process: y has several signal labels, which name the processes; give one of the two")
            process, columns = PROCESS, add_process(columns, y, self.classes_)
        sources = [self._encode_source(source) for source in systematics]
        return Dataset.from_arrays(columns, signal, weight, sources, None, process, folds, event_id)

    def _take_dataset(self, dataset: Dataset, *others: Any) -> Dataset:
        """Take events that have their labels, weights, sources and processes."""
        if any(other is not None and not (isinstance(other, tuple | list) and not other) for other in others):
            raise DataError("X is a Dataset, which has labels, weights, sources and processes: give nothing but it")
        self.classes_ = np.array([0, 1])
        self.categories_, self._categorical = {}, ()
        self._keep_names(dataset.features)
        return dataset.require_usable()

    def _encode_source(self, source: FlatSystematic | Systematic) -> FlatSystematic | Systematic:
        """Return a shape source with its labels written as those of y are."""

        def encode(table: Any, labels: ArrayLike, weight: ArrayLike | None) -> tuple[Any, ArrayLike, ArrayLike | None]:
            known = find_signal(labels, self.classes_, source.name)
            table = number_categories(table, self.categories_, self._names(), f"systematic {source.name}: ")
            if len(self.classes_) > 2:
                named = table if has_names(table) else as_columns(table, self._names())
                table = add_process(named, labels, self.classes_)
            return table, known, weight

        return source.map_tables(encode)

    def _make_monitor(self, validation: Dataset | None = None) -> Monitor:
        return Monitor(validation, self.early_stopping, () if self.callbacks is None else self.callbacks)

    def _make_validation(self, validation: Validation | None) -> Dataset | None:
        if validation is None:
            return None
        if not (isinstance(validation, tuple | list) and len(validation) in (2, 3)):
            raise DataError(f"validation is a {type(validation).__name__}: (X, y) or (X, y, weight) is needed")
        X, y, weight = (*validation, None)[:3]
        signal = find_signal(y, self.classes_, "validation")
        return Dataset.from_arrays(self._check_table(X, reset=False), signal, weight)


def make_parameters(settings: Settings) -> dict[str, Any]:
    """Parameters of an estimator that trains with these settings."""
    values = {name: getattr(settings, name) for name in Settings.rules()}
    wider = ("categorical_features", "monotonic_constraints", "strengths", "at")
    return {**values, **{name: values[name] or None for name in wider}}


class _Checkpoint:
    """Writes the model after every so many trees."""

    def __init__(self, path: str | Path, every: int, extra: Mapping[str, Any]) -> None:
        if not is_number(every) or every != int(every) or every < 1:
            raise ConfigError(f"checkpoint_every={every!r}: must be a whole number, at least 1")
        require_model_place(path)
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


if QBDTClassifier.__doc__:  # absent under python -OO
    _names = inspect.signature(QBDTClassifier).parameters
    QBDTClassifier.__doc__ = Settings.document(QBDTClassifier.__doc__, _names, **PARAMETERS)
