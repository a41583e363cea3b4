"""Bin edges that look at one distribution: uniform, equal signal, equal background.

`optimised` has the edges that look at the fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.errors import FitError
from qbdt.inference.templates.filling import collect_scores, read_score

__all__ = ["equal_yield_edges", "uniform_edges"]


def uniform_edges(n_bins: int, low: float = -1.0, high: float = 1.0) -> Floats:
    """Edges of bins of equal width; the default range is that of tanh(c·y).

    Examples
    --------
    >>> uniform_edges(4)
    array([-1. , -0.5,  0. ,  0.5,  1. ])
    """
    return np.linspace(low, high, n_bins + 1)


def equal_yield_edges(scored: Dataset, n_bins: int, role: Role | str) -> Floats:
    """Edges between which the expected yield of all samples of one role is the same.

    Equal scores stay together, so a score with few different values can give fewer bins.

    Examples
    --------
    >>> from qbdt import Events, Sample
    >>> signal = Sample("s", "signal", Events({"score": [1.0, 2.0, 3.0, 4.0]}, [1.0, 1.0, 1.0, 1.0]))
    >>> background = Sample("b", "background", Events({"score": [0.0, 2.5]}, [9.0, 1.0]))
    >>> equal_yield_edges(Dataset([signal, background]), 2, "signal")
    array([0., 3., 4.])
    """
    score, weight = collect_scores(scored, Role(role))
    every = [read_score(s.events, f"sample {s.name}") for s in scored.samples if s.role is not Role.DATA]
    low, high = min(float(x.min(initial=np.inf)) for x in every), max(float(x.max(initial=-np.inf)) for x in every)
    inner = _quantiles(score, weight, np.arange(1, n_bins) / n_bins)
    inner = np.unique(inner[(inner > low) & (inner < high)])
    if not low < high:
        raise FitError(f"all scores are {low:.4g}: nothing can be binned")
    return np.concatenate([[low], inner, [high]])


def _quantiles(score: Floats, weight: Floats, levels: Floats) -> NDArray[np.float64]:
    """Smallest scores with at least a share `levels` of the yield below; negative weights are smoothed over."""
    order = np.argsort(score, kind="stable")
    running = np.maximum.accumulate(np.cumsum(weight[order]))
    below = np.concatenate([[0.0], running[:-1]])
    index = np.searchsorted(below, levels * running[-1] - 1e-12 * abs(running[-1]), side="left")
    return np.asarray(score[order][np.minimum(index, len(order) - 1)])
