"""Monotonic maps of the score before it is binned: tanh(c·y) with the paper's scan of c."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.errors import FitError
from qbdt.inference.templates.edges import uniform_edges
from qbdt.inference.templates.filling import Binning, fill
from qbdt.statistics import binned_significance
from qbdt.tables import Table

__all__ = ["SCANNED", "TransformScan", "scan_transform", "tanh_scores"]

SCANNED = tuple(np.round(np.arange(0.05, 1.5001, 0.05), 2).tolist())
"""Constants that the paper's scan tries: 0.05 to 1.5 in steps of 0.05."""


@dataclass(frozen=True, eq=False)
class TransformScan:
    """Binned Q of tanh(c·y) for each c.

    Attributes
    ----------
    constants
        Values of c.
    q
        Q without systematics summed over the bins, eq:Q0.
    allowed
        Whether the last bin still holds background.
    best
        Allowed constant with the largest Q.
    """

    constants: Floats
    q: Floats
    allowed: Floats
    best: float

    def table(self) -> Table:
        """Return the scan as a table."""
        marks = np.where(
            self.constants == self.best, "best", np.where(self.allowed, "", "no background in the last bin")
        )
        rows = tuple((f"{c:.2f}", f"{q:.4f}", str(m)) for c, q, m in zip(self.constants, self.q, marks, strict=True))
        return Table("Scan of c in tanh(c·y)", ("c", "binned Q", ""), rows)


def tanh_scores(scored: Dataset, c: float) -> Dataset:
    """Map the scores of nominal and varied events to tanh(c·y), which lies in (−1, 1)."""
    name = scored.features[0]
    return scored.transform(lambda events: {name: np.tanh(c * np.asarray(events.column(name), dtype=float))})


def scan_transform(scored: Dataset, n_bins: int = 20, constants: tuple[float, ...] = SCANNED) -> TransformScan:
    """Find the constant with the largest binned Q without systematics, as the paper does.

    A constant counts only if the last bin still holds background.

    Examples
    --------
    >>> from qbdt import Events, Sample
    >>> rng = np.random.default_rng(1)
    >>> signal = Sample("s", "signal", Events({"score": rng.normal(2, 2, 5000)}, np.full(5000, 0.01)))
    >>> background = Sample("b", "background", Events({"score": rng.normal(-2, 2, 5000)}, np.full(5000, 1.0)))
    >>> 0.05 < scan_transform(Dataset([signal, background])).best < 0.5
    True
    """
    nominal = scored.with_systematics([])
    binning = Binning.of(uniform_edges(n_bins))
    sets = [fill(tanh_scores(nominal, c), binning) for c in constants]
    q = np.array([binned_significance(t.signal, t.background) for t in sets])
    allowed = np.array([t.total(Role.BACKGROUND)[-1] > 0 for t in sets])
    if not allowed.any():
        raise FitError("scan of c: no constant leaves background in the last bin; give c a smaller value")
    best = float(np.asarray(constants)[int(np.argmax(np.where(allowed, q, -np.inf)))])
    return TransformScan(np.asarray(constants), q, allowed, best)
