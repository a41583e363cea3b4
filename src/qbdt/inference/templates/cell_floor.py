"""The floor of cells on the events that are fitted: cells that are poor there are joined with others.

Cells are chosen on other events than those fitted, so some may have fewer simulated background events in the fit than
where they were chosen. These are joined with the cell that costs least of the information that cells are to keep; bins
of categories with a neighbour in their own category, as long as it has one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.inference.templates.box_joining import Boxes, join_two
from qbdt.inference.templates.categories import CategoryBins
from qbdt.inference.templates.cells import CellTarget, score_boxes
from qbdt.inference.templates.score_bins import Bins
from qbdt.inference.templates.template_set import TemplateSet


@dataclass(frozen=True, eq=False)
class JoinedCells:
    """Cells of which some are one.

    Examples
    --------
    >>> from qbdt.inference.templates import ScoreBins
    >>> cells = JoinedCells(ScoreBins.of([0, 1, 2, 3]), np.array([0, 1, 0]))
    >>> cells.n_bins, cells.index(Events({"score": [0.5, 1.5, 2.5]}, np.ones(3)), "events")
    (2, array([0, 1, 0]))
    """

    cells: Bins
    labels: NDArray[np.intp]  # Number after joining of each of the cells

    @property
    def n_bins(self) -> int:
        """Number of cells after joining."""
        return int(self.labels.max()) + 1

    @property
    def axis(self) -> Floats:
        """Edges to draw: numbers of the cells."""
        return np.arange(self.n_bins + 1, dtype=float)

    def index(self, events: Events, what: str) -> NDArray[np.intp]:
        """Cell of each event; `what` names the events in messages."""
        return np.asarray(self.labels[self.cells.index(events, what)])


def join_poor(cells: Bins, templates: TemplateSet, target: CellTarget, min_entries: float) -> Bins:
    """Return the same cells where all of them have the floor in the templates to be fitted, else joined ones."""
    boxes, labels = _make_cells(templates, target), np.arange(cells.n_bins)
    category = None
    if isinstance(cells, CategoryBins):
        category = np.repeat(np.arange(len(cells.bins)), [own.n_bins for own in cells.bins])
    while True:
        left = boxes.join(labels)
        poor = left.find_poor(min_entries)
        if len(poor) == 1 or not poor.any():
            break
        one, other = _find_cheapest(left, poor, category)
        joined = join_two(np.arange(len(poor)), one, other)
        category = None if category is None else category[np.unique(joined, return_index=True)[1]]
        labels = joined[labels]
    return cells if len(poor) == cells.n_bins else JoinedCells(cells, labels)


def _make_cells(templates: TemplateSet, target: CellTarget) -> Boxes:
    """Contents of the cells of templates, each with its efficient scores."""
    model, rows = templates.arrays(), target.rows(templates)
    variance = np.maximum(model.signal + model.background + model.mc_variance, 0.0)
    scores = np.zeros((len(target.places(templates)), len(variance)))
    scores[:, variance > 0] = score_boxes(templates, target, np.vstack([rows, variance]), rows, variance)
    return Boxes(scores, variance, model.background, model.mc_variance)


def _find_cheapest(cells: Boxes, poor: NDArray[np.bool_], category: NDArray[np.intp] | None) -> tuple[int, int]:
    """Return a poor cell and the one it is joined with, where this costs least."""
    cost = cells.joining_costs()
    if category is not None:
        number = np.arange(len(category))
        near = (category[:, None] == category) & (np.abs(number[:, None] - number) == 1)
        cost = np.where(near | ~near.any(axis=1)[:, None], cost, np.inf)
    cost[~poor] = np.inf
    one, other = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return int(one), int(other)
