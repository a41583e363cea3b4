"""Labels of y: which of them are signal, the processes that several signal labels name, and which is predicted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from qbdt.arrays import Floats
from qbdt.data.columns import as_columns, is_plain, require_unmasked
from qbdt.errors import ConfigError, DataError, ModelFileError
from qbdt.training import Model

PROCESS = "process of the label"
"""Column that names the process of each row, where y has several signal labels."""


class ScoringClassifier(Protocol):
    """A fitted classifier: its model, its labels, and its scores of rows."""

    classes_: NDArray[Any]

    @property
    def ensemble_(self) -> Model:
        """The trees."""

    def decision_function(self, X: Any) -> Floats:
        """Score of each row."""

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of background and of each signal."""


def choose_labels(classifier: ScoringClassifier, X: Any) -> NDArray[Any]:
    """Label of each row: signal where the score is positive; with several strengths the most likely one."""
    strengths = classifier.ensemble_.strengths  # says so where nothing is fitted
    classes = classifier.classes_
    if not strengths:
        return np.asarray(classes[(classifier.decision_function(X) > 0).astype(np.intp)])
    if len(classes) != len(strengths) + 1:
        raise DataError("a strength has several labels: which one a row has is not predicted; see predict_proba")
    return np.asarray(classes[np.argmax(classifier.predict_proba(X), axis=1)])


def read_labels(y: ArrayLike | None, *, several: bool) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the labels that y takes, the background's first, and which rows are signal.

    With `several` there may be more than one signal label.
    """
    if y is None:
        raise DataError("requires y to be passed, but the target y is None")
    values = column_or_1d(require_unmasked(y, "y"), warn=True)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError("Input y contains NaN or infinity: every row needs a label")
    classes, signal = _read_two_numbers(values) or _find_classes(values, several)
    if not _are_plain(classes.tolist()):
        raise DataError(
            f"y has the labels {', '.join(map(ascii, classes.tolist()))}: labels are all texts, all numbers, or True "
            "and False, which a model file can hold"
        )
    return classes, signal


def _find_classes(values: NDArray[Any], several: bool) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if not values.size:
        raise DataError("y is empty: events of signal and background are both needed")
    try:
        check_classification_targets(values)
    except TypeError as error:  # bytes
        raise DataError(f"y: {error}") from None
    classes = np.unique(values)
    if len(classes) > 2 and not several:
        raise DataError(
            f"Only binary classification is supported: y has {len(classes)} classes; for several signals "
            "name the strength of each label, strengths={'mu_1': [1], 'mu_2': [2]}"
        )
    if len(classes) < 2:
        raise DataError(f"y has one class only, {classes[0]}: signal and background are both needed")
    return classes, np.asarray(values != classes[0])


def _read_two_numbers(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """Return the two whole numbers that labels take and which rows have the larger, without sorting; None otherwise."""
    if values.dtype.kind not in "biuf" or not values.size:
        return None
    low, high = values.min(), values.max()
    signal = values == high
    if not (low < high and low == int(low) and high == int(high)):
        return None
    return (np.array([low, high]), signal) if np.all(signal | (values == low)) else None


def _are_plain(classes: list[Any]) -> bool:
    """Whether a model file holds labels, and gives them back as they are."""
    return all(map(is_plain, classes)) and np.array(classes).tolist() == classes


def find_signal(y: ArrayLike, classes: NDArray[Any], what: str) -> NDArray[np.bool_]:
    """Return which rows of another table are signal; refuse labels that are not among the classes."""
    values = require_unmasked(y, f"{what}: y")
    unknown = values[~np.isin(values, classes)]
    if unknown.size:
        raise DataError(f"{what}: y has the label {unknown[0]!r}, the labels are {classes.tolist()}")
    return np.asarray(values != classes[0])


def add_process(table: Any, y: Any, classes: NDArray[Any]) -> dict[str, Any]:
    """Columns of a table with one for the process of each row, made of its label."""
    names = np.array(["background", *map(_name_signal, classes[1:].tolist())])
    return {**as_columns(table), PROCESS: names[np.searchsorted(classes, np.asarray(y))]}


def name_strengths(strengths: Mapping[str, Any] | None, classes: NDArray[Any]) -> dict[str, Any]:
    """Strengths with the names of processes in place of labels of y."""
    labels = {} if len(classes) == 2 else {label: _name_signal(label) for label in classes.tolist()}
    try:
        listed = {name: _list_labels(one) for name, one in (strengths or {}).items()}
        return {name: [labels.get(one, one) for one in own] for name, own in listed.items()}
    except (AttributeError, TypeError):
        raise ConfigError(f"strengths={strengths!r}: must say which signals each strength scales") from None


def _list_labels(one: Any) -> list[Any]:
    return [one] if isinstance(one, str | int | np.generic) else list(one)


def _name_signal(label: Any) -> str:
    """Name of the process of a signal label."""
    return f"signal {label}"


def read_classes(extra: Mapping[str, Any]) -> NDArray[Any]:
    """Labels of background and signal that are kept with a model."""
    classes = extra.get("classes", [0, 1])
    if not (isinstance(classes, list) and len(classes) >= 2 and _are_plain(classes)):
        raise ModelFileError("classes: two labels or more are needed")
    return np.array(classes)
