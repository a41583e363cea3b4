"""Monotonic maps of the score before it is binned: tanh(c·y) with the paper's scan of c."""

from __future__ import annotations

import numpy as np

from qbdt.data import Dataset, Role
from qbdt.errors import FitError
from qbdt.inference.templates.filling import collect_scores
from qbdt.statistics import TanhScan, scan_tanh

__all__ = ["scan_transform", "tanh_scores"]


def tanh_scores(scored: Dataset, c: float) -> Dataset:
    """Map the scores of nominal and varied events to tanh(c·y), which lies in (−1, 1)."""
    name = scored.features[0]
    return scored.transform(lambda events: {name: np.tanh(c * np.asarray(events.column(name), dtype=float))})


def scan_transform(scored: Dataset, n_bins: int = 20) -> TanhScan:
    """Find the constant with the largest binned Q without systematics, as the paper does.

    A constant counts only if the last bin still holds background; at least one must.

    Examples
    --------
    >>> from qbdt import Events, Sample
    >>> rng = np.random.default_rng(1)
    >>> signal = Sample("s", "signal", Events({"score": rng.normal(2, 2, 5000)}, np.full(5000, 0.01)))
    >>> background = Sample("b", "background", Events({"score": rng.normal(-2, 2, 5000)}, np.full(5000, 1.0)))
    >>> 0.05 < scan_transform(Dataset([signal, background])).best < 0.5
    True
    """
    scan = scan_tanh(*collect_scores(scored, Role.SIGNAL), *collect_scores(scored, Role.BACKGROUND), n_bins)
    if scan.best is None:
        raise FitError("scan of c: no constant leaves background in the last bin; give c a smaller value")
    return scan
