"""The fit of any classifier's scores: score nominal and varied events of tables or a dataset, make templates, fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.data import Dataset, Events, FlatSystematic, FoldRule, Systematic
from qbdt.data.columns import as_columns, drop_columns
from qbdt.errors import DataError
from qbdt.inference.fit import run_fit
from qbdt.inference.result import FitResult
from qbdt.inference.settings import FitSettings
from qbdt.progress import Progress, silent

METHODS = ("decision_function", "predict_proba", "predict")
"""Methods of a classifier that return scores; of several columns the last is that of the signal."""


def fit_scores(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    systematics: Sequence[FlatSystematic | Systematic] = (),
    *,
    settings: FitSettings | None = None,
    process: str | ArrayLike | None = None,
    progress: Progress = silent,
) -> FitResult:
    """Fit the signal strength with the scores of a model.

    Use events that the model was not trained on, or a `CrossTrainedClassifier`, which scores each event by a model that
    did not see it. With its folds, bins are also chosen on other events than those that fill them.

    Parameters
    ----------
    model
        A classifier of this package, of scikit-learn, XGBoost or LightGBM, a function from a table like X to scores,
        or the name of the column of X, and of the tables of shape sources, that holds scores. One that was fitted with
        a pandas table is given its columns of X.
    X, y, sample_weight, systematics, process
        As for `Dataset.from_arrays`; or X a `Dataset` and nothing else.
    settings
        How; by default bins of the score as it is: with folds optimised ones, without them of equal signal, since
        optimised bins must be chosen on other events.
    progress
        Told how far the fits have come.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> y = np.repeat([1, 0], 2000)
    >>> table = {"score": rng.normal(y, 1.0)}
    >>> source = Systematic.norm("xs", 0.1, processes=["background"])
    >>> result = fit_scores("score", table, y, np.where(y == 1, 0.01, 0.1), [source])
    >>> result.expected.z_stat > result.expected.z > 0
    True
    """
    if isinstance(X, Dataset):
        if y is not None or sample_weight is not None or systematics or process is not None:
            raise DataError("X is a Dataset, which has labels, weights, sources and processes: give nothing but it")
        scored = X.transform(_score_events(model))
    else:
        if y is None:
            raise DataError("y is missing: labels are needed, 1 for signal and 0 for background")
        tables = _ScoredTables(model, process)
        sources = [tables.score_source(source) for source in systematics]
        scored = Dataset.from_arrays(
            tables.score(X, ""), y, sample_weight, sources, process=process, folds=tables.folds
        ).require_full_folds()
    binning = "equal_signal" if scored.folds is None else "optimised"
    return run_fit(scored, settings or FitSettings(transform="none", binning=binning), progress=progress)


class _ScoredTables:
    """Puts scores in place of the features of tables; columns of processes and fold rules stay."""

    def __init__(self, model: Any, process: str | ArrayLike | None) -> None:
        self.folds = _find_folds(model)
        self._scorer = None if isinstance(model, str) else _find_scorer(model)
        self._column = model
        self._process = (process,) if isinstance(process, str) else ()

    def score(self, table: Any, context: str) -> dict[str, NDArray[Any]]:
        """Columns of the scored table."""
        features = drop_columns(table, self._process, context)
        if self._scorer is None:
            (scores,) = as_columns(features, [self._column], context).values()
        else:
            scores = self._scorer(_pick_features(self._column, features))
        kept = (*self._process, *(() if self.folds is None else self.folds.columns))
        columns = as_columns(table, kept, context) if kept else {}
        return {"score": _one_column(scores, _count_rows(table)), **columns}

    def score_source(self, source: FlatSystematic | Systematic) -> FlatSystematic | Systematic:
        """Return a source whose tables, if it has any, are scored."""

        def score(table: Any, *others: Any) -> Any:
            return self.score(table, f"systematic {source.name}: "), *others

        scored = source.map_tables(score)
        return replace(scored, event_id=(None, None)) if isinstance(scored, FlatSystematic) else scored


def _score_events(model: Any) -> Callable[[Events], dict[str, Any]]:
    """Return the function that scores the events of a dataset."""
    if isinstance(model, str):
        return lambda events: {"score": events.column(model)}
    if hasattr(model, "ensemble_"):  # of this package: looks up features and identifiers by name
        return lambda events: {"score": model.ensemble_.score(events)}
    scorer = _find_scorer(model)

    def compute(events: Events) -> dict[str, Any]:
        table = np.column_stack([events.column(name) for name in events.features])
        return {"score": _one_column(scorer(table), events.n_rows)}

    return compute


def _pick_features(model: Any, table: Any) -> Any:
    """Columns of a pandas table that a classifier was fitted with: libraries refuse a table that has others too."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or hasattr(model, "ensemble_") or not type(table).__module__.startswith("pandas"):
        return table
    return table[list(names)] if set(names) <= set(table.columns) else table


def _find_folds(model: Any) -> FoldRule | None:
    """The rule by which a cross-trained model divides events."""
    rule = getattr(getattr(model, "ensemble_", None), "folds", None)
    return rule if isinstance(rule, FoldRule) else None


def _find_scorer(model: Any) -> Callable[[Any], Any]:
    for name in METHODS:
        if hasattr(model, name):
            return getattr(model, name)  # type: ignore[no-any-return]
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise DataError(f"model={model!r}: a fitted classifier, a function from X to scores or a column is needed")


def _count_rows(table: Any) -> int:
    return len(next(iter(as_columns(table).values()), ()))


def _one_column(scores: Any, n_rows: int) -> Any:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 2:
        values = values[:, -1]
    if values.shape != (n_rows,):
        raise DataError(f"the model gives scores of shape {values.shape} for {n_rows} rows")
    return values
