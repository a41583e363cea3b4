"""Bins of the score: `ScoreBins`, and edges that look at one distribution, of equal signal or equal background.

`optimised_bins` has the edges that look at the fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule, Role
from qbdt.errors import FitError
from qbdt.inference.templates.scores import collect_scores, read_score, score_range


class Bins(Protocol):
    """Bins of templates: of the score, or cells of several scores."""

    @property
    def n_bins(self) -> int:
        """Number of bins."""

    @property
    def axis(self) -> Floats:
        """Edges to draw."""

    def index(self, events: Events, what: str) -> NDArray[np.intp]:
        """Bin of each event; `what` names the events in messages."""


@dataclass(frozen=True)
class ScoreBins:
    """Bin edges of the score: one set for all events, or one per fold.

    Edges that are chosen by looking at events must not be applied to the same events. With folds, the edges for the
    events of one fold are chosen on the other folds; bins of the same number are then added, and the variable that is
    histogrammed is the number of the bin.
    """

    edges: tuple[tuple[float, ...], ...]  # One ascending tuple of n + 1 edges, or one for each fold in turn
    folds: FoldRule | None = None  # The rule by which events find their edges; None where there is one set

    def __post_init__(self) -> None:
        for edges in self.edges:
            if len(edges) < 2 or not np.all(np.diff(edges) > 0):
                raise FitError(f"bin edges {list(edges)}: at least two ascending numbers are needed")
        if len({len(edges) for edges in self.edges}) > 1:
            raise FitError("every fold needs the same number of bins")
        if (self.folds.k if self.folds else 1) != len(self.edges):
            raise FitError(f"{len(self.edges)} sets of edges: one, or one for each fold, is needed")

    @classmethod
    def of(cls, edges: ArrayLike) -> ScoreBins:
        """Make bins with one set of edges for all events."""
        return cls((tuple(float(edge) for edge in np.asarray(edges, dtype=float)),))

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges[0]) - 1

    @property
    def axis(self) -> Floats:
        """Edges to draw: those of the score, or bin numbers where each fold has its own."""
        return np.array(self.edges[0]) if self.folds is None else np.arange(self.n_bins + 1, dtype=float)

    def index(self, events: Events, what: str) -> NDArray[np.intp]:
        """Bin number of each event, under- and overflow in the first and last; `what` names the events in messages."""
        score = read_score(events, what)
        if self.folds is None:
            return _find_bins(score, self.edges[0])
        fold = self.folds.assign(events)
        numbers = np.empty(len(score), dtype=np.intp)
        for number, edges in enumerate(self.edges):
            numbers[fold == number] = _find_bins(score[fold == number], edges)
        return numbers


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
    low, high = score_range(scored)
    inner = _quantiles(score, weight, np.arange(1, n_bins) / n_bins)
    inner = np.unique(inner[(inner > low) & (inner < high)])
    if not low < high:
        raise FitError(f"all scores are {low:.4g}: nothing can be binned")
    return np.concatenate([[low], inner, [high]])


def _find_bins(score: Floats, edges: tuple[float, ...]) -> NDArray[np.intp]:
    return np.clip(np.searchsorted(np.array(edges), score, side="right") - 1, 0, len(edges) - 2)


def _quantiles(score: Floats, weight: Floats, levels: Floats) -> Floats:
    """Smallest scores with at least a share `levels` of the yield below; negative weights are smoothed over."""
    order = np.argsort(score, kind="stable")
    running = np.maximum.accumulate(np.cumsum(weight[order]))
    below = np.concatenate([[0.0], running[:-1]])
    # A level that is met but for rounding counts as met.
    index = np.searchsorted(below, levels * running[-1] - 1e-12 * abs(running[-1]), side="left")
    return np.asarray(score[order][np.minimum(index, len(order) - 1)])
