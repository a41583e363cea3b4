"""`TableEstimator`: the base of the estimators, with tables as input and trees as result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.data.columns import as_columns, choose_numbered, has_names, number_categories, read_categories
from qbdt.errors import DataError
from qbdt.progress import Progress, silent, visible
from qbdt.training import Settings, SingleModel, TrainedModel, gain_shares
from qbdt.trees import Tree

NamedColumns = Mapping[str, NDArray[Any]]

COMMON_PARAMETERS = {
    "n_threads": "Threads; None for all cores. Results never depend on it.",
    "random_state": "Seed of subsampling; None for 0: without subsampling nothing is random.",
    "categorical_features": "Features whose values are categories (whole numbers without an order): names, positions, "
    "or a mask over all.",
    "verbose": "Show progress: a bar in a terminal, lines elsewhere.",
}
"""Parameters of every estimator that are no settings, or that take more than the setting does."""


class TableEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Takes tables with or without names, categories and missing values; has trees in `training_` once it is fitted."""

    n_threads: int | None
    verbose: bool
    random_state: int | None
    categorical_features: Any
    training_: TrainedModel
    categories_: dict[str, list[Any]]
    """Categories that trees know by their places: those of pandas categoricals that are no whole numbers."""

    _categorical: Sequence[str] = ()  # All pandas categoricals of the fit

    @property
    def ensemble_(self) -> SingleModel:
        """The trees."""
        check_is_fitted(self, "training_")
        return self.training_.ensemble

    @property
    def trees_(self) -> tuple[Tree, ...]:
        """The trees, one by one."""
        return self.ensemble_.trees

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Index of the leaf of each row in each tree."""
        return self.ensemble_.leaves(self._make_events(X), self.n_threads)

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the gain of all splits."""
        return np.asarray(gain_shares(self.ensemble_)[0])

    def to_frame(self) -> Any:
        """Return all nodes as a pandas table: one row per node, with its cuts, yields and output."""
        return self.ensemble_.to_frame()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _repr_html_inner(self) -> str:
        return self._with_summary(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        return {kind: self._with_summary(text) if kind == "text/html" else text for kind, text in bundle.items()}

    def _with_summary(self, diagram: str) -> str:
        """Put a summary of the training above scikit-learn's picture of the parameters, which is folded away."""
        if not hasattr(self, "training_"):
            return diagram
        return f"{self.training_._repr_html_()}<details><summary>Parameters</summary>{diagram}</details>"

    @property
    def _progress(self) -> Progress:
        return visible(last=True) if self.verbose else silent

    def _make_events(self, X: Any) -> Events:
        check_is_fitted(self, "training_")
        return make_unweighted(self._check_table(X, reset=False))

    def _check_table(self, X: Any, *, reset: bool) -> NamedColumns:
        """Columns of X by name, without copies; on prediction those of the fit, in its order."""
        if reset:
            found = read_categories(X)
            self._categorical, self.categories_ = tuple(found), choose_numbered(found)
        X = number_categories(X, self.categories_, None if reset else self._names())
        if not has_names(X):
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
            self._keep_names(list(columns))
        return columns

    def _resolve_settings(self, values: Mapping[str, Any]) -> Settings:
        """Settings of these values, with features by name and pandas categoricals among the categorical ones."""
        features, own = self._names(), dict(values)
        if self._categorical:
            given = Settings.for_features(features, categorical_features=self.categorical_features)
            own["categorical_features"] = [*given.categorical_features, *self._categorical]
        own["random_state"] = 0 if self.random_state is None else self.random_state
        return Settings.for_features(features, **own)

    def _describe_features(self) -> dict[str, Any]:
        return describe_features(hasattr(self, "feature_names_in_"), self.categories_)

    def _take_features(self, names: Sequence[str], extra: Mapping[str, Any]) -> None:
        """Take the features of a model file, and what was kept with it: whether they had names, and categories."""
        self.n_features_in_ = len(names)
        if extra.get("named", True):
            self._keep_names(names)
        self.categories_ = extra.get("categories", {})

    def _names(self) -> list[str]:
        return list(getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)]))

    def _keep_names(self, names: Sequence[str]) -> None:
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(list(names), dtype=object)


OF_A_FIT = {"training_", "classes_", "categories_", "feature_names_in_", "n_features_in_"}
"""Attributes that a fit sets; those of subclasses are theirs."""


@contextmanager
def replace_fit(estimator: BaseEstimator) -> Iterator[None]:
    """Forget what the estimator was fitted with; if this fit is refused or ends in an error, it is as it was before."""
    before = dict(vars(estimator))
    for name in OF_A_FIT & before.keys():
        delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def describe_features(named: bool, categories: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Entries of a model file on features: whether they had names, and categories where there are some."""
    return {"named": named, "categories": categories} if categories else {"named": named}


def make_unweighted(features: NamedColumns, identifiers: NamedColumns | None = None) -> Events:
    """Events of weight 1, without copies."""
    columns = features or identifiers or {}
    n_rows = len(next(iter(columns.values())))
    return Events(features, np.broadcast_to(np.float64(1.0), n_rows), identifiers or {})
