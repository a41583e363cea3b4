"""Cells of several scores: few regions that keep what a fit can know of several parameters together.

The space of the scores is first cut into a fine grid. Neighbouring boxes are then joined, each time the two whose loss
is smallest, until few enough are left. Joining i and j takes the rank-one term d dᵀ from the information matrix, see
`optimised_bins`, so that the covariance C of all parameters becomes C + (Cd)(Cd)ᵀ/(1 − dᵀCd). The loss is the rise of a
stated figure: the variance of one parameter, the sum of the variances, or the logarithm of the determinant of those of
interest. Boxes below the floor on effective simulated background events are joined first.

The result depends on the events it was chosen on: never fit those. Where events have folds, cells for each fold are
chosen on the others, on one grid, and numbered alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule, Role
from qbdt.errors import FitError
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.template_set import TemplateSet

__all__ = ["CellTarget", "FoldedCells", "ScoreCells", "choose_cells", "choose_folded_cells"]

BOXES = 300
"""About how many boxes the fine grid has, whatever the number of scores."""

WEAK = 1e-6
"""Information about each parameter that there is at least, so that a matrix can be inverted."""


@dataclass(frozen=True, eq=False)
class CellTarget:
    """What cells are to keep.

    Attributes
    ----------
    strengths
        Strengths by name, and the signal processes of each.
    of_interest
        Names of the parameters of interest: strengths or sources.
    free
        Names of background processes whose normalisation is free.
    known
        Information from elsewhere over strengths, sources and free normalisations; None for the constraints of sources
        alone.
    figure
        "determinant" of the covariance of the parameters of interest, "sum" of their variances, or the name of one.
    """

    strengths: dict[str, tuple[str, ...]]
    of_interest: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    known: Floats | None = None
    figure: str = "determinant"

    def __post_init__(self) -> None:
        if self.figure not in ("determinant", "sum", *self.chosen):
            known = ", ".join(("determinant", "sum", *self.chosen))
            raise FitError(f"figure={self.figure!r}: must be one of {known}")

    @property
    def chosen(self) -> tuple[str, ...]:
        """Parameters of interest: all strengths by default."""
        return self.of_interest or tuple(self.strengths)

    def rows(self, templates: TemplateSet) -> Floats:
        """Derivatives of the expected events by strengths, sources and free normalisations, as (parameter, bin)."""
        signals = [sum(templates.process(name).nominal for name in names) for names in self.strengths.values()]
        free = [templates.process(name).nominal for name in self.free]
        return np.vstack([*signals, templates.arrays().shifts, *free])

    def prior(self, templates: TemplateSet) -> Floats:
        """Information from elsewhere; sources of interest have no constraint."""
        if self.known is not None:
            return self.known
        sources = [float(name not in self.chosen) for name in templates.sources]
        return np.diag([*np.zeros(len(self.strengths)), *sources, *np.zeros(len(self.free))])

    def places(self, templates: TemplateSet) -> list[int]:
        """Numbers of the parameters that count: those of interest, or the only one of the figure."""
        names = [*self.strengths, *templates.sources]
        wanted = (self.figure,) if self.figure in self.chosen else self.chosen
        for name in wanted:
            if name not in names:
                raise FitError(f"of_interest: no strength or source {name}; there are: {', '.join(names)}")
        return [names.index(name) for name in wanted]

    def covariance(self, templates: TemplateSet) -> Floats:
        """Covariance of the parameters of interest in a fit to these templates, without MC statistics."""
        rows = self.rows(templates)
        information = (rows / templates.asimov) @ rows.T + self.prior(templates)
        places = [[*self.strengths, *templates.sources].index(name) for name in self.chosen]
        return np.asarray(np.linalg.inv(information)[np.ix_(places, places)])


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Cells of scores: boxes between the edges of each score, and the number of the cell of each box.

    Attributes
    ----------
    names
        Names of the scores.
    edges
        Inner edges of each score, ascending.
    labels
        Cell of each box; one axis for each score.

    Examples
    --------
    >>> cells = ScoreCells(("a", "b"), (np.array([0.0]), np.array([0.0])), np.array([[0, 0], [1, 2]]))
    >>> cells.index(Events({"a": [-1.0, 1.0], "b": [5.0, 5.0]}, np.ones(2)), "events")
    array([0, 2])
    """

    names: tuple[str, ...]
    edges: tuple[Floats, ...]
    labels: NDArray[np.intp]

    @property
    def n_bins(self) -> int:
        """Number of cells."""
        return int(self.labels.max()) + 1

    @property
    def axis(self) -> Floats:
        """Edges to draw: numbers of the cells."""
        return np.arange(self.n_bins + 1, dtype=float)

    def index(self, events: Events, what: str) -> NDArray[np.intp]:
        """Cell of each event; `what` names the events in messages."""
        places = []
        for name, edges in zip(self.names, self.edges, strict=True):
            score = np.asarray(events.column(name), dtype=np.float64)
            if not np.isfinite(score).all():
                raise FitError(f"{what}: the score {name} of row {int(np.argmin(np.isfinite(score)))} is not finite")
            places.append(np.searchsorted(edges, score, side="right"))
        return np.asarray(self.labels[tuple(places)], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class FoldedCells:
    """Cells for each fold, chosen on the events of the other folds; cells of the same number are added up.

    Attributes
    ----------
    cells
        Those of each fold, equally many.
    rule
        By which events find their fold.
    """

    cells: tuple[ScoreCells, ...]
    rule: FoldRule

    @property
    def n_bins(self) -> int:
        """Number of cells."""
        return self.cells[0].n_bins

    @property
    def axis(self) -> Floats:
        """Edges to draw: numbers of the cells."""
        return self.cells[0].axis

    def index(self, events: Events, what: str) -> NDArray[np.intp]:
        """Cell of each event; `what` names the events in messages."""
        fold = self.rule.assign(events)
        numbers = np.empty(events.n_rows, dtype=np.intp)
        for number, cells in enumerate(self.cells):
            numbers[fold == number] = cells.index(events[fold == number], what)
        return numbers


def choose_folded_cells(scored: Dataset, n_cells: int, target: CellTarget, min_entries: float = 10.0) -> FoldedCells:
    """Choose cells for each fold of a dataset on the events of all other folds.

    The grid, which looks at no fit, is that of all events. The number of cells is that of the fold with the fewest.
    """
    if scored.folds is None:
        raise FitError(
            "cells must be chosen on other events than those fitted; give the dataset a fold rule, or other events to "
            "choose on"
        )
    grid, total = make_grid(scored), scored.total(Role.BACKGROUND)
    rest = [scored.without_fold(number) for number in range(scored.folds.k)]
    filled = [fill(one, grid).scaled(total / one.total(Role.BACKGROUND)) for one in rest]
    while True:
        chosen = [merge_cells(grid, templates, n_cells, target, min_entries) for templates in filled]
        fewest = min(cells.n_bins for cells in chosen)
        if all(cells.n_bins == fewest for cells in chosen):
            return FoldedCells(tuple(match_cells(chosen, fill(scored, grid).asimov)), scored.folds)
        n_cells = fewest


def choose_cells(scored: Dataset, n_cells: int, target: CellTarget, min_entries: float = 10.0) -> ScoreCells:
    """Choose cells on a dataset whose features are the scores, to be used on another one.

    Parameters
    ----------
    scored
        Events to choose on.
    n_cells
        Largest number of cells.
    target
        What the cells are to keep.
    min_entries
        Smallest effective number of simulated background events in a cell.
    """
    grid = make_grid(scored)
    return merge_cells(grid, fill(scored, grid), n_cells, target, min_entries)


def make_grid(scored: Dataset) -> ScoreCells:
    """Return boxes between quantiles of each score, in which signals and the background count alike."""
    per_score = max(2, round(BOXES ** (1 / len(scored.features))))
    edges = tuple(_quantiles(scored, name, per_score) for name in scored.features)
    shape = tuple(len(own) + 1 for own in edges)
    return ScoreCells(scored.features, edges, np.arange(int(np.prod(shape)), dtype=np.intp).reshape(shape))


def _quantiles(scored: Dataset, name: str, number: int) -> Floats:
    """Inner edges between which each signal process and the whole background have, on average, equal shares."""
    values, weights = [], []
    groups = [*([sample] for sample in scored.of_role(Role.SIGNAL)), scored.of_role(Role.BACKGROUND)]
    for samples in groups:
        weight = np.concatenate([np.abs(sample.events.weight) for sample in samples])
        values.append(np.concatenate([sample.events.column(name) for sample in samples]))
        weights.append(weight / weight.sum())
    value, weight = np.concatenate(values), np.concatenate(weights)
    order = np.argsort(value, kind="stable")
    running = np.cumsum(weight[order]) / weight.sum()
    found = value[order][np.searchsorted(running, np.arange(1, number) / number)]
    return np.unique(found[found > value.min()]).astype(np.float64)


def merge_cells(
    grid: ScoreCells, templates: TemplateSet, n_cells: int, target: CellTarget, min_entries: float = 10.0
) -> ScoreCells:
    """Join neighbouring boxes, given the templates of all boxes."""
    boxes = _Boxes(grid, templates, target, min_entries)
    while boxes.n_cells > 1 and (boxes.n_cells > n_cells or boxes.poor.any()):
        boxes.merge_cheapest()
    return ScoreCells(grid.names, grid.edges, boxes.labels.reshape(grid.labels.shape))


class _Boxes:
    """Contents of cells, which of them are neighbours, and the cell of each box of the grid."""

    def __init__(self, grid: ScoreCells, templates: TemplateSet, target: CellTarget, min_entries: float) -> None:
        model = templates.arrays()
        self._rows = target.rows(templates)
        self._background, self._squares = model.background.copy(), model.mc_variance.copy()
        self._variance = model.signal + model.background + model.mc_variance
        self._prior, self._places = target.prior(templates), target.places(templates)
        self._sums = target.figure == "sum"
        self._min_entries = min_entries
        self.labels = np.arange(templates.n_bins)
        self._pairs = _neighbours(grid.labels)

    @property
    def n_cells(self) -> int:
        """Number of cells left."""
        return len(self._variance)

    @property
    def poor(self) -> NDArray[np.bool_]:
        """Which cells have no background, too few simulated events of it, (Σw)²/Σw², or no variance."""
        positive = np.maximum(self._background, 0.0)
        few = positive**2 < self._min_entries * self._squares
        return np.asarray((self._background <= 0) | few | (self._variance <= 0))

    def merge_cheapest(self) -> None:
        """Join the two neighbours whose loss is smallest; cells below the floor first."""
        rise, poor = self._rise(), self.poor
        if poor.any():
            rise = np.where(poor[self._pairs[:, 0]] | poor[self._pairs[:, 1]], rise, np.inf)
        self._join(*self._pairs[int(np.argmin(rise))])

    def _rise(self) -> Floats:
        """Rise of the figure for joining each pair of neighbours."""
        variance = np.where(self._variance > 0, self._variance, 1e-9)  # unusable cells are joined whatever they cost
        information = (self._rows / variance) @ self._rows.T + self._prior
        covariance = np.linalg.inv(information + WEAK * np.eye(len(information)))
        i, j = self._pairs.T
        size = np.sqrt(variance[i] * variance[j] / (variance[i] + variance[j]))
        lost = size * (self._rows[:, i] / variance[i] - self._rows[:, j] / variance[j])
        moved = covariance @ lost
        remaining = 1.0 - np.sum(lost * moved, axis=0)
        of_interest = moved[self._places]
        if self._sums:
            rise = np.sum(of_interest**2, axis=0)
        else:  # log det(C + x xᵀ/(1 − d·x)) − log det C = log(1 + xᵀC⁻¹x/(1 − d·x)) over the parameters of interest
            inverse = np.linalg.inv(covariance[np.ix_(self._places, self._places)])
            rise = np.sum(of_interest * (inverse @ of_interest), axis=0)
        return np.where(remaining > 0, rise / np.where(remaining > 0, remaining, 1.0), np.inf)

    def _join(self, first: int, second: int) -> None:
        """Make one cell of two; the last cell takes the number that becomes free."""
        low, high = min(first, second), max(first, second)
        for values in (self._rows, self._background, self._squares, self._variance):
            values[..., low] += values[..., high]
        self._rows, self._background, self._squares, self._variance = (
            np.delete(values, high, axis=-1) for values in (self._rows, self._background, self._squares, self._variance)
        )
        numbers = np.arange(self.n_cells + 1)
        numbers[high] = low
        numbers[high + 1 :] -= 1
        self.labels = numbers[self.labels]
        pairs = np.sort(numbers[self._pairs], axis=1)
        self._pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def _neighbours(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Pairs of boxes that share a face."""
    found = []
    for axis in range(labels.ndim):
        one, other = (np.take(labels, where, axis=axis) for where in _sides(labels.shape[axis]))
        found.append(np.stack([one.ravel(), other.ravel()], axis=1))
    return np.concatenate(found)


def _sides(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.arange(n - 1), np.arange(1, n)


def match_cells(cells: Sequence[ScoreCells], contents: Floats) -> list[ScoreCells]:
    """Number the cells of several choices on one grid alike: those that share most expected events.

    Parameters
    ----------
    cells
        Choices with equally many cells.
    contents
        Expected events of each box of the grid.
    """
    from scipy.optimize import linear_sum_assignment

    first, n = cells[0], cells[0].n_bins
    matched = [first]
    for other in cells[1:]:
        common = np.zeros((n, n))
        np.add.at(common, (other.labels.ravel(), first.labels.ravel()), contents)
        mine, its = linear_sum_assignment(common, maximize=True)
        numbers = np.empty(n, dtype=np.intp)
        numbers[mine] = its
        matched.append(ScoreCells(other.names, other.edges, numbers[other.labels]))
    return matched
