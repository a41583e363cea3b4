"""The fit of any classifier's scores, from arrays: score nominal and varied events, make templates, fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from qbdt.data import Dataset, Events, FlatSystematic
from qbdt.errors import DataError
from qbdt.inference.fit import run_fit
from qbdt.inference.result import FitResult
from qbdt.inference.settings import FitSettings
from qbdt.progress import Progress, silent

__all__ = ["fit_scores"]

METHODS = ("decision_function", "predict_proba", "predict")
"""What gives scores, of a classifier; of several columns the last is that of the signal."""


def fit_scores(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    systematics: Sequence[FlatSystematic] = (),
    *,
    settings: FitSettings | None = None,
    process: str | ArrayLike | None = None,
    progress: Progress = silent,
) -> FitResult:
    """Fit with the scores of a model: what a measurement of the signal strength would quote.

    Use events that the model was not trained on, or a `CrossTrainedClassifier`, which sees to that.

    Parameters
    ----------
    model
        A classifier of this package, of scikit-learn, XGBoost or LightGBM, or a function from a table like X to scores.
    X, y, sample_weight, systematics, process
        As for `Dataset.from_arrays`.
    settings
        How; by default optimised bins of the score as it is.
    progress
        Told how far the fits have come.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> y = np.repeat([1, 0], 2000)
    >>> X, weight = rng.normal(y, 1.0)[:, None], np.where(y == 1, 0.01, 0.1)
    >>> from qbdt.data import Systematic
    >>> source = Systematic.norm("xs", 0.1, where=y == 0)
    >>> result = fit_scores(lambda table: table[:, 0], X, y, weight, [source], settings=FitSettings(scan=False))
    >>> result.expected.z_stat > result.expected.z > 0
    True
    """
    dataset = Dataset.from_arrays(X, y, sample_weight, systematics, process=process)
    score, named = _find_scorer(model), _has_names(X)

    def compute(events: Events) -> dict[str, Any]:
        columns = {name: events.column(name) for name in events.features}
        table = _rebuild(X, columns) if named else np.column_stack(list(columns.values()))
        return {"score": _one_column(score(table), events.n_rows)}

    chosen = settings or FitSettings(transform="none", binning="optimised")
    return run_fit(dataset.transform(compute), chosen, progress=progress)


def _find_scorer(model: Any) -> Callable[[Any], Any]:
    for name in METHODS:
        if hasattr(model, name):
            return getattr(model, name)  # type: ignore[no-any-return]
    if callable(model):
        return model  # type: ignore[no-any-return]
    raise DataError(f"model={model!r}: a fitted classifier or a function from X to scores is needed")


def _one_column(scores: Any, n_rows: int) -> Any:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 2:
        values = values[:, -1]
    if values.shape != (n_rows,):
        raise DataError(f"the model gives scores of shape {values.shape} for {n_rows} rows")
    return values


def _has_names(X: Any) -> bool:
    return hasattr(X, "keys") or hasattr(X, "columns")


def _rebuild(X: Any, columns: dict[str, Any]) -> Any:
    """Make a table of the kind that X is: a pandas one stays one, others become mappings of columns."""
    return type(X)(columns) if type(X).__module__.startswith("pandas") else columns
