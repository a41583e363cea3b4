"""Cells of several scores: few regions that keep the information on several parameters together.

The space of the scores is first cut into a fine grid (`score_grid`). With a the derivatives of the expected events of a
box by all parameters, v their variance and C the covariance of the parameters, y = C_φ a/v is the efficient score of
the parameters of interest φ in a box, and joining boxes takes Σ v |y − ȳ|² of a stated figure: the variance of one
parameter, the sum of the variances, or the logarithm of the determinant of C_φφ, which says how |y| is measured. Since
shifts in small boxes are mostly MC noise, y is smoothed first: by a fit of second order in the values of the scores,
which is exact for the scores of `EfficientScores`, and for other ones by steps in each. Neighbouring boxes are then
joined, each time the two that cost least, and moved between cells as long as that loses less (`box_joining`). Cells
below the floor on effective simulated background events grow, or are joined with another.

The result depends on the events it was chosen on: never fit those. Where events have folds, cells for each fold are
chosen on the others, on grids whose boxes are alike, and numbered such that adding up those of all folds costs least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule
from qbdt.errors import FitError, find_repeated
from qbdt.inference.templates.box_joining import (
    Boxes,
    exchange_cells,
    find_neighbours,
    join_neighbours,
    join_to_few,
    move_to_nearest,
)
from qbdt.inference.templates.optimised_bins import find_scale
from qbdt.inference.templates.score_bins import Bins
from qbdt.inference.templates.score_grid import (
    MOST_SCORES,
    ScoreCells,
    find_values,
    make_blocks,
    make_fold_grids,
    make_grid,
)
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.template_set import TemplateSet

BLOCKS = 400
"""Most blocks of neighbouring boxes that joining begins with; boxes go over one by one only later."""

INFORMED = 100
"""Most blocks from which the covariance of all parameters is found: in more, noise of the shifts would pass for
information about nuisance parameters."""

GROUPS = 40
"""Groups of boxes in which a score may show more than a smooth dependence: a few times the bins of a usual fit."""

SPARE = 4
"""Cells more than asked for that are tried: some are lost where they have too few events."""

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

    strengths: Mapping[str, Sequence[str]]
    of_interest: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    known: Floats | None = None
    figure: str = "determinant"

    MOST: ClassVar[int] = MOST_SCORES
    """Scores that cells can be made of."""

    FLOOR: ClassVar[float] = 1.5
    """Cells have that many times the floor of the fit where they are chosen, so that they keep it on the events fitted.
    """

    def __post_init__(self) -> None:
        if self.figure not in ("determinant", "sum", *self.chosen):
            known = ", ".join(("determinant", "sum", *self.chosen))
            raise FitError(f"figure={self.figure!r}: must be one of {known}")
        if twice := find_repeated(self.chosen):
            raise FitError(f"of_interest: {twice[0]} is given twice")

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


def _choose_by_folds(scored: Dataset, n_cells: int, target: CellTarget, min_entries: float) -> FoldedCells:
    """Choose cells for each fold of a dataset on the events of all other folds.

    The grid of a fold, and the floor on events, which look at no fit, are those of the events that are fitted. The
    number of cells is that of the fold with the fewest.
    """
    if scored.folds is None:
        raise FitError(
            "cells must be chosen on other events than those fitted; give the dataset a fold rule, or other events to "
            "choose on"
        )
    rest = [scored.without_fold(number) for number in range(scored.folds.k)]
    scales = [find_scale(scored, one, f"the cells of fold {number}") for number, one in enumerate(rest)]
    grids = FoldedCells(tuple(make_fold_grids(scored, scored.folds)), scored.folds)
    grid = grids.cells[0]
    values = find_values(scored, grid, grids)
    filled = [_more_events(fill(one, grids), scale) for one, scale in zip(rest, scales, strict=True)]
    counted = fill(scored, grids)
    boxes = [_make_boxes(grid, values, templates, target, counted) for templates in filled]
    chosen = [_choose_labels(grid, one, n_cells, min_entries) for one in boxes]
    fewest = min(int(labels.max()) + 1 for labels in chosen)
    chosen = [join_to_few(one, labels, fewest, min_entries) for one, labels in zip(boxes, chosen, strict=True)]
    matched = _match_cells(boxes, chosen)
    cells = [_label_grid(own, labels) for own, labels in zip(grids.cells, matched, strict=True)]
    return FoldedCells(tuple(cells), scored.folds)


def _more_events(templates: TemplateSet, factor: float) -> TemplateSet:
    """Templates of so many times the simulated events, so that information and floor are those of the fit."""
    grown = tuple(process.map(lambda values: factor * values) for process in templates.processes)
    return replace(templates, processes=grown)


def choose_cells(
    scored: Dataset,
    n_cells: int,
    target: CellTarget,
    min_entries: float = 10.0,
    *,
    by_folds: bool = False,
    by_category: bool = False,
) -> Bins:
    """Choose cells on a dataset whose features are the scores.

    Parameters
    ----------
    scored
        Events to choose on.
    n_cells
        Largest number of cells.
    target
        Information that the cells are to keep.
    min_entries
        Smallest effective number of simulated background events in a cell.
    by_folds
        Whether the cells are for the same events: then those of each fold are chosen on the other folds. Otherwise they
        are for other events.
    by_category
        Whether events go to the category of their largest score, and are binned in it.
    """
    if by_category:
        from qbdt.inference.templates.categories import choose_categories

        return choose_categories(scored, n_cells, target, min_entries, by_folds=by_folds)
    if by_folds:
        return _choose_by_folds(scored, n_cells, target, min_entries)
    grid = make_grid(scored)
    filled = fill(scored, grid)
    boxes = _make_boxes(grid, find_values(scored, grid), filled, target, filled)
    return _label_grid(grid, _choose_labels(grid, boxes, n_cells, min_entries))


def _make_boxes(
    grid: ScoreCells, values: Floats, templates: TemplateSet, target: CellTarget, counted: TemplateSet
) -> Boxes:
    """Contents of the boxes of a grid, given values of the scores (box, score) and the templates of all boxes.

    The floor is on `counted`, the templates of all simulated events: it protects the fit.
    """
    model, total = templates.arrays(), counted.arrays()
    variance = np.maximum(model.signal + model.background + model.mc_variance, 0.0)
    smoothed = _smooth_scores(grid, values, templates, target, variance)
    return Boxes(smoothed, variance, total.background, total.mc_variance)


def _choose_labels(grid: ScoreCells, boxes: Boxes, n_cells: int, min_entries: float) -> NDArray[np.intp]:
    """Cell of each box: of some numbers of cells to begin with, the choice that loses least."""
    numbers = range(max(n_cells, 1), n_cells + SPARE + 1)
    block, blocks = make_blocks(grid, max(BLOCKS, 2 * n_cells))
    found = [labels[block] for labels in join_neighbours(boxes.join(block), find_neighbours(blocks), numbers)]
    tried = [join_to_few(boxes, move_to_nearest(boxes, labels), n_cells, min_entries) for labels in found]
    return exchange_cells(boxes, min(tried, key=boxes.loss), min_entries)


def _label_grid(grid: ScoreCells, labels: NDArray[np.intp]) -> ScoreCells:
    return ScoreCells(grid.names, grid.edges, labels.reshape(grid.labels.shape))


def _smooth_scores(
    grid: ScoreCells, values: Floats, templates: TemplateSet, target: CellTarget, variance: Floats
) -> Floats:
    """Efficient scores of all boxes in units of the figure, smoothed over the values of the scores (box, score)."""
    rows, used = target.rows(templates), variance > 0
    block, _ = make_blocks(grid, INFORMED)
    coarse = np.stack([np.bincount(block, weights=row).astype(np.float64) for row in (*rows, variance)])
    raw = score_boxes(templates, target, coarse, rows, variance)
    return np.stack([_smooth(values, used, own, variance[used]) for own in raw])


def score_boxes(templates: TemplateSet, target: CellTarget, coarse: Floats, rows: Floats, variance: Floats) -> Floats:
    """Efficient scores of all boxes with any variance, in units of the figure (parameter, box).

    `rows` are the derivatives of the expected events of the boxes, and `coarse` those and the variance of the few
    blocks from which the covariance of all parameters is found.
    """
    places = target.places(templates)
    coarse = coarse[:, coarse[-1] > 0]
    information = (coarse[:-1] / coarse[-1]) @ coarse[:-1].T + target.prior(templates)
    covariance = np.linalg.inv(information + WEAK * np.eye(len(information)))
    used = variance > 0
    raw = covariance[places] @ (rows[:, used] / variance[used])
    # Loss of Σ σ²: |Cd|² over those of interest. Of log det C_φφ: (Cd)ᵀ C_φφ⁻¹ (Cd).
    if target.figure != "sum":
        inverse = np.linalg.inv(covariance[np.ix_(places, places)])
        raw = np.linalg.cholesky(inverse).T @ raw
    return np.asarray(raw)


def _smooth(values: Floats, used: NDArray[np.bool_], raw: Floats, weight: Floats) -> Floats:
    """Fit of second order in the scores, and what each shows beyond it in groups of boxes as far as it is no noise."""
    terms, root = _second_order(values), np.sqrt(weight)
    coefficients = np.linalg.lstsq(terms[used] * root[:, None], raw * root, rcond=1e-10)[0]
    fitted = np.asarray(terms @ coefficients)
    for score in values.T:
        group = _group_boxes(score, used)
        rest = raw - fitted[used]
        total = np.maximum(np.bincount(group[used], weights=weight, minlength=GROUPS), 1e-300)
        mean = np.bincount(group[used], weights=weight * rest, minlength=GROUPS) / total
        spread = weight * (rest - mean[group[used]]) ** 2
        entries = np.maximum(np.bincount(group[used], minlength=GROUPS), 2)
        error = np.bincount(group[used], weights=spread, minlength=GROUPS) / total / (entries - 1)
        # A mean m of variance σ² has the share 1 − σ²/m² of its square that is no noise.
        known = np.maximum(1.0 - error / np.maximum(mean**2, 1e-300), 0.0)
        fitted += (known * mean)[group]
    return fitted


def _group_boxes(score: Floats, used: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Group of each box, by quantiles of a score over boxes, which lie close where there is information."""
    edges = np.quantile(score[used], np.arange(1, GROUPS) / GROUPS)
    return np.searchsorted(edges, score, side="right")


def _second_order(values: Floats) -> Floats:
    """Return 1, all x and all products of two."""
    products = [values[:, i] * values[:, j] for i in range(values.shape[1]) for j in range(i + 1)]
    return np.column_stack([np.ones(len(values)), values, *products])


def _match_cells(boxes: Sequence[Boxes], labels: Sequence[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """Number the cells of several choices alike, such that adding up those of the same number costs least.

    Cells that share most events would not do: a small pure one would be added to any other that is left.

    Parameters
    ----------
    boxes
        Contents of the boxes for each choice.
    labels
        Cell of each box, equally many cells in each choice.
    """
    from scipy.optimize import linear_sum_assignment

    matched, summed = [labels[0]], boxes[0].join(labels[0])
    for other, own in zip(boxes[1:], labels[1:], strict=True):
        cells = other.join(own)
        mine, its = linear_sum_assignment(cells.joining_costs_with(summed))
        numbers = np.empty(len(mine), dtype=np.intp)
        numbers[mine] = its
        matched.append(numbers[own])
        summed = summed.add(other.join(matched[-1]))
    return matched
