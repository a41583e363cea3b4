"""Boxes of a fine grid of scores, joined to cells such that Σ v |y − ȳ|² of their efficient scores y is small.

Neighbouring boxes are joined, each time the two that cost least; then boxes go over to the cell whose mean they are
nearest to, until none moves. What is found so is a local minimum: from there a cell that loses much is divided and two
that are alike are joined, as long as this helps. Cells below a floor on effective simulated events grow at the expense
of others, or are joined with another, whichever costs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats

ROUNDS = 50
"""Most rounds in which boxes go over to nearer cells: far more than it takes."""

CANDIDATES = 6
"""Cells that are tried for division, those that lose most: others hardly ever gain."""

WORTH = 1e-3
"""Least relative gain for which another division is looked for: what cells lose is known less well."""


class Boxes(NamedTuple):
    """Contents of boxes: efficient scores in units of the figure (parameter, box), variance, background and its Σw²."""

    scores: Floats
    variance: Floats
    background: Floats
    squares: Floats

    def join(self, labels: NDArray[np.intp]) -> Boxes:
        """Return the contents of cells: sums, and means of the scores."""
        n = int(labels.max()) + 1
        variance, background, squares = (
            np.bincount(labels, weights=values, minlength=n).astype(np.float64)
            for values in (self.variance, self.background, self.squares)
        )
        sums = np.stack([np.bincount(labels, weights=self.variance * own, minlength=n) for own in self.scores])
        return Boxes(sums / np.maximum(variance, 1e-300), variance, background, squares)

    def losses(self, labels: NDArray[np.intp]) -> Floats:
        """Loss of each box, v |y − ȳ|²: what its cell takes of the figure."""
        return np.asarray(self.variance * np.sum((self.scores - self.join(labels).scores[:, labels]) ** 2, axis=0))

    def loss(self, labels: NDArray[np.intp]) -> float:
        """Σ v |y − ȳ|² over all boxes: what cells lose of the figure."""
        return float(self.losses(labels).sum())

    def add(self, other: Boxes) -> Boxes:
        """Return the contents of boxes of the same number together."""
        variance = self.variance + other.variance
        sums = self.variance * self.scores + other.variance * other.scores
        contents = (self.background + other.background, self.squares + other.squares)
        return Boxes(sums / np.maximum(variance, 1e-300), variance, *contents)

    def joining_costs(self) -> Floats:
        """What joining any two costs of the figure; infinite for one with itself."""
        cost = self.joining_costs_with(self)
        np.fill_diagonal(cost, np.inf)
        return cost

    def joining_costs_with(self, other: Boxes) -> Floats:
        """What joining each with each of the others costs of the figure, v₁ v₂/(v₁ + v₂) |y₁ − y₂|²."""
        one, two = self.variance, other.variance
        apart = np.sum((self.scores[:, :, None] - other.scores[:, None, :]) ** 2, axis=0)
        return np.asarray(np.multiply.outer(one, two) / np.maximum(np.add.outer(one, two), 1e-300) * apart)

    def find_poor(self, min_entries: float) -> NDArray[np.bool_]:
        """Which have no background, or fewer than `min_entries` effective simulated events of it, (Σw)²/Σw²."""
        return np.asarray(_are_poor(self.background, self.squares, min_entries))


def _are_poor(background: Floats, squares: Floats, min_entries: float) -> NDArray[np.bool_]:
    return (background <= 0) | (np.maximum(background, 0.0) ** 2 < min_entries * squares)


def _is_poor(background: float, squares: float, min_entries: float) -> bool:
    return background <= 0 or background**2 < min_entries * squares


def find_neighbours(labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Pairs of boxes that share a face."""
    found = []
    for axis in range(labels.ndim):
        n = labels.shape[axis]
        one, other = (np.take(labels, where, axis=axis) for where in (np.arange(n - 1), np.arange(1, n)))
        found.append(np.stack([one.ravel(), other.ravel()], axis=1))
    return np.concatenate(found)


def join_neighbours(boxes: Boxes, pairs: NDArray[np.intp], numbers: Sequence[int]) -> list[NDArray[np.intp]]:
    """Cell of each box after joining, one by one, the neighbours that cost least, for some numbers of cells."""
    labels, kept = np.arange(len(boxes.variance)), []
    scores, variance = boxes.scores.copy(), boxes.variance.copy()
    for left in range(len(variance), 0, -1):
        if left in numbers or (left == len(variance) and left < numbers[0]):
            kept.append(labels)
        if left <= numbers[0]:
            break
        i, j = pairs.T
        both = np.maximum(variance[i] + variance[j], 1e-300)
        cost = variance[i] * variance[j] / both * np.sum((scores[:, i] - scores[:, j]) ** 2, axis=0)
        low, high = pairs[int(np.argmin(cost))]
        total = variance[low] + variance[high]
        if total > 0:
            scores[:, low] = (variance[low] * scores[:, low] + variance[high] * scores[:, high]) / total
        variance[low] = total
        scores, variance = np.delete(scores, high, axis=1), np.delete(variance, high)
        renamed = np.arange(left)
        renamed[high] = low
        renamed[high + 1 :] -= 1
        labels, pairs = renamed[labels], np.sort(renamed[pairs], axis=1)
        pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return kept


def move_to_nearest(boxes: Boxes, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Let boxes go over to the cell whose mean they are nearest to, until none moves: Lloyd's algorithm."""
    for _ in range(ROUNDS):
        means = boxes.join(labels).scores
        distances = np.sum((boxes.scores[:, :, None] - means[:, None, :]) ** 2, axis=0)
        nearest = np.unique(np.argmin(distances, axis=1), return_inverse=True)[1].reshape(-1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
    return labels


def exchange_cells(boxes: Boxes, labels: NDArray[np.intp], min_entries: float) -> NDArray[np.intp]:
    """Divide a cell and join two others, then let boxes move, as long as cells lose less by it and none is lost."""
    n_cells = int(labels.max()) + 1
    for _ in range(n_cells):
        loss, cost = boxes.loss(labels), boxes.join(labels).joining_costs()
        largest = np.argsort(-np.bincount(labels, weights=boxes.losses(labels)), kind="stable")[:CANDIDATES]
        for cell in largest:
            moved = move_to_nearest(boxes, _exchange(boxes, labels, int(cell), cost))
            exchanged = join_to_few(boxes, moved, n_cells, min_entries)
            if int(exchanged.max()) + 1 == n_cells and boxes.loss(exchanged) < (1 - WORTH) * loss:
                labels = exchanged
                break
        else:
            break
    return labels


def _exchange(boxes: Boxes, labels: NDArray[np.intp], cell: int, cost: Floats) -> NDArray[np.intp]:
    """Divide one cell across the direction in which it is longest, and join the two others that cost least."""
    others = cost.copy()
    others[cell], others[:, cell] = np.inf, np.inf
    kept, joined = np.unravel_index(int(np.argmin(others)), others.shape)
    changed = np.where(labels == joined, kept, labels)
    own = np.flatnonzero(labels == cell)
    apart = boxes.scores[:, own] - boxes.join(labels).scores[:, [cell]]
    _, directions = np.linalg.eigh((apart * boxes.variance[own]) @ apart.T)
    changed[own[directions[:, -1] @ apart > 0]] = joined
    return np.asarray(changed, dtype=np.intp)


def join_to_few(boxes: Boxes, labels: NDArray[np.intp], n_cells: int, min_entries: float) -> NDArray[np.intp]:
    """Bring all cells to the floor, then join those that cost least until there are few enough."""
    labels = _fill_poor(boxes, labels, min_entries)
    while (count := int(labels.max()) + 1) > max(n_cells, 1):
        one, other = np.unravel_index(int(np.argmin(boxes.join(labels).joining_costs())), (count, count))
        labels = join_two(labels, int(one), int(other))
    return labels


def join_two(labels: NDArray[np.intp], one: int, other: int) -> NDArray[np.intp]:
    """Return the cells with two of them joined, without gaps in their numbers."""
    return np.unique(np.where(labels == one, other, labels), return_inverse=True)[1].reshape(-1)


def _fill_poor(boxes: Boxes, labels: NDArray[np.intp], min_entries: float) -> NDArray[np.intp]:
    """Bring cells to the floor, each time by what costs least: a poor cell grows, or is joined with another.

    To join pure cells, which are the poor ones, loses much more than to take a few boxes of a neighbour.
    """
    while True:
        cells = boxes.join(labels)
        poor = cells.find_poor(min_entries)
        if len(poor) == 1 or not poor.any():
            return labels
        cost, before = cells.joining_costs(), boxes.loss(labels)
        changed = []
        for cell in np.flatnonzero(poor).tolist():
            other = int(np.argmin(cost[cell]))
            changed.append((float(cost[cell, other]), join_two(labels, cell, other)))
            if (grown := _grow(boxes, labels, cell, cells, min_entries)) is not None:
                changed.append((boxes.loss(grown) - before, grown))
        labels = min(changed, key=lambda one: one[0])[1]


def _grow(
    boxes: Boxes, labels: NDArray[np.intp], cell: int, cells: Boxes, min_entries: float
) -> NDArray[np.intp] | None:
    """Let a cell take boxes of others until it meets the floor; None where it cannot.

    Boxes come in the order of |y − ȳ|² − |y − ȳ'|², ȳ' being the mean of the cell they are in: so the walls of the cell
    move outwards (a power diagram), over empty boxes too. To take boxes for the events in them would follow the
    fluctuations of these. Cells that give boxes must keep the floor.
    """
    poor = cells.find_poor(min_entries)
    apart = np.sum((boxes.scores - cells.scores[:, [cell]]) ** 2, axis=0)
    order = apart - np.sum((boxes.scores - cells.scores[:, labels]) ** 2, axis=0)
    others = np.flatnonzero((labels != cell) & ~poor[labels])
    others = others[np.argsort(order[others], kind="stable")]
    # Numbers of Python: one by one they are many times as fast as those of NumPy.
    background, squares, taken = cells.background.tolist(), cells.squares.tolist(), []
    each = (labels[others], boxes.background[others], boxes.squares[others])
    for box, giver, b, s in zip(others.tolist(), *(values.tolist() for values in each), strict=True):
        rest, rest_squares = background[giver] - b, squares[giver] - s
        if s > 0 and _is_poor(rest, rest_squares, min_entries):
            continue
        background[giver], squares[giver] = rest, rest_squares
        background[cell] += b
        squares[cell] += s
        taken.append(box)
        if not _is_poor(background[cell], squares[cell], min_entries):
            grown = labels.copy()
            grown[taken] = cell
            return grown
    return None
