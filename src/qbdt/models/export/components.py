"""A model taken apart for formats that know sums of trees only."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.training import FoldedEnsemble
from qbdt.training.profile import ProfiledEnsemble
from qbdt.trees import Ensemble

__all__ = ["Model", "Single", "combined", "float32_at_least", "members", "rounding_bound", "sums"]

Single: TypeAlias = Ensemble | ProfiledEnsemble
Model: TypeAlias = Ensemble | ProfiledEnsemble | FoldedEnsemble

HALF_ULP = 2.0**-24
"""Largest relative error of rounding to single precision."""


def members(model: Model) -> tuple[Single, ...]:
    """Return the models of the folds, or the one model."""
    return model.ensembles if isinstance(model, FoldedEnsemble) else (model,)


def sums(model: Single) -> dict[str, Ensemble]:
    """Return the sums of trees that make a score, by name: `score`, or `ratio` and `shift`."""
    if isinstance(model, ProfiledEnsemble):
        return {"ratio": model.ratio, "shift": model.shift}
    return {"score": model}


def combined(model: Single, values: dict[str, Floats]) -> Floats:
    """Score from the values of its sums of trees."""
    if isinstance(model, ProfiledEnsemble):
        return model.combined(values["ratio"], values["shift"])
    return values["score"]


def float32_at_least(thresholds: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the smallest single-precision numbers that are not below the thresholds.

    No single-precision number lies between a threshold and its result, so `x < c` decides alike with either for every
    single-precision x, infinities included.

    Examples
    --------
    >>> float32_at_least(np.array([0.1, 0.5, 1e300]))
    array([0.1, 0.5, inf], dtype=float32)
    """
    values = np.asarray(thresholds, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
        return np.where(rounded < values, np.nextafter(rounded, np.float32(np.inf)), rounded)


def rounding_bound(model: Single) -> float:
    """Largest error of a score whose leaves and partial sums are rounded to single precision."""
    errors = {}
    for name, ensemble in sums(model).items():
        sizes = [float(np.abs(tree.outputs[tree.is_leaf]).max()) for tree in ensemble.trees]
        errors[name] = 2.0 * (len(sizes) + 2) * HALF_ULP * sum(sizes)
    if isinstance(model, ProfiledEnsemble):  # |dp/dF| is at most 1/4, and |d score/du| at most 1
        return (errors["ratio"] / 4 + errors["shift"]) / model.share + 1e-15
    return errors["score"]
