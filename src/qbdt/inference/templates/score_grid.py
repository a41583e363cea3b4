"""The fine grid of scores that cells are made of: `ScoreCells`, its boxes, and what is known of them.

A box is small where cells may have to tell events apart. Joining boxes of widths δ with v expected events costs about
Σ v δ² of what scores know that are linear in the efficient ones, as those of `EfficientScores`. Of all ways to cut an
axis into as many pieces, those whose density goes with the cube root of that of the events cost least (the companding
law of quantisers). With many simulated events half of the edges follow it; the others are quantiles, which serve scores
of any other scale.

Each fold is scored by a model of its own, whose scores may be twice as large as those of another. Its grid is therefore
made of its own events: then boxes of the same number hold events that are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule, Role, Sample
from qbdt.errors import FitError
from qbdt.inference.templates.score_bins import Bins

BOXES, FEWER_BOXES = 4900, 2500
"""About how many boxes the fine grid has, whatever the number of scores, with many and with few simulated events."""

MOST_SCORES = 16
"""Scores that cells can be made of: each is cut once at least, so that so many have 65 536 boxes and take a minute."""

AMPLE = 20.0
"""Effective simulated background events in a box, on average, from which on they are many: twice the floor that cells
of a usual fit have, since cells may be chosen on half of the events. With fewer the floor decides about cells more than
the shape of boxes does, and quantiles serve it: on the CMS files (10 events in a box) other edges gain nothing."""

PIECES = 1000
"""Quantiles of a score between which its density is taken as constant: many times the boxes of an axis of two."""


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Cells of scores: boxes between the edges of each score, and the number of the cell of each box.

    Examples
    --------
    >>> cells = ScoreCells(("a", "b"), (np.array([0.0]), np.array([0.0])), np.array([[0, 0], [1, 2]]))
    >>> cells.index(Events({"a": [-1.0, 1.0], "b": [5.0, 5.0]}, np.ones(2)), "events")
    array([0, 2])
    """

    names: tuple[str, ...]  # Names of the scores
    edges: tuple[Floats, ...]  # Inner edges of each score, ascending
    labels: NDArray[np.intp]  # Cell of each box; one axis for each score

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


def make_grid(scored: Dataset) -> ScoreCells:
    """Return boxes that are small where events of signals or background are, and where they are far from the others."""
    (grid,) = _make_grids(scored, [scored])
    return grid


def make_fold_grids(scored: Dataset, folds: FoldRule) -> list[ScoreCells]:
    """Return a grid for each fold, equally many boxes at the same shares of its own events.

    A fold without events of some signal, or without background, has the grid of all events.
    """
    alone = [scored.select(lambda events, n=n: folds.assign(events) == n) for n in range(folds.k)]  # type: ignore[misc]
    return _make_grids(scored, [one if all(_count_events(one)) else scored for one in alone])


def _make_grids(scored: Dataset, parts: Sequence[Dataset]) -> list[ScoreCells]:
    """Return a grid for each of some parts of a dataset, with the number of boxes that all its events allow."""
    if (n_scores := len(scored.features)) > MOST_SCORES:
        raise FitError(f"cells: {n_scores} scores have too many corners; at most {MOST_SCORES} are divided so")
    weight = np.concatenate([sample.events.weight for sample in scored.of_role(Role.BACKGROUND)])
    is_ample = weight.sum() ** 2 >= AMPLE * BOXES * (weight**2).sum()
    per_score = max(2, round((BOXES if is_ample else FEWER_BOXES) ** (1 / len(scored.features))))
    shape = (per_score,) * len(scored.features)
    labels = np.arange(int(np.prod(shape)), dtype=np.intp).reshape(shape)
    return [
        ScoreCells(
            scored.features, tuple(_choose_edges(part, name, per_score, is_ample) for name in scored.features), labels
        )
        for part in parts
    ]


def _group_samples(scored: Dataset) -> list[Sequence[Sample]]:
    """Each signal, and all backgrounds."""
    return [*([sample] for sample in scored.of_role(Role.SIGNAL)), scored.of_role(Role.BACKGROUND)]


def _count_events(scored: Dataset) -> list[int]:
    """Events of each signal and of all backgrounds."""
    return [sum(sample.events.n_rows for sample in own) for own in _group_samples(scored)]


def _choose_edges(scored: Dataset, name: str, number: int, is_ample: bool) -> Floats:
    """Inner edges of a score: quantiles, and with many events as many by the cube root of their density.

    There are `number` − 1, equal ones where many events have the same score.
    """
    groups = _group_samples(scored)
    values = [np.concatenate([np.asarray(s.events.column(name), dtype=np.float64) for s in own]) for own in groups]
    weights = [np.concatenate([np.abs(s.events.weight) for s in own]) for own in groups]
    value, expected = np.concatenate(values), np.concatenate(weights)
    alike = np.concatenate([own / own.sum() for own in weights])
    if not is_ample:
        return _find_quantiles(value, alike, number)
    inner = _find_quantiles(value, alike, PIECES)
    content = np.bincount(np.searchsorted(inner, value, side="right"), weights=expected, minlength=len(inner) + 1)
    ends = np.concatenate([[value.min()], inner, [value.max()]])
    # The cube root of the density v/δ, integrated over the piece of width δ
    root = np.cbrt(content) * np.diff(ends) ** (2 / 3)
    share = root / max(root.sum(), 1e-300) + 1 / len(root)
    running = np.concatenate([[0.0], np.cumsum(share)]) / share.sum()
    return np.asarray(np.interp(np.arange(1, number) / number, running, ends))


def _find_quantiles(value: Floats, weight: Floats, number: int) -> Floats:
    """Inner edges between which there are equal shares of events, and of x².

    x is the score relative to its mean: where it is large, there are few events, but much information.
    """
    squares = weight * (value - np.average(value, weights=weight)) ** 2
    weight = weight / weight.sum() + (squares / squares.sum() if squares.sum() > 0 else 0.0)
    order = np.argsort(value, kind="stable")
    running = np.cumsum(weight[order]) / weight.sum()
    return np.asarray(value[order][np.searchsorted(running, np.arange(1, number) / number)])


def make_blocks(grid: ScoreCells, most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Block of each box, of equal sides and at most so many, and the blocks as an array with an axis for each score."""
    shape = np.array(grid.labels.shape)
    side = 1
    while np.prod(-(-shape // side)) > most:
        side += 1
    blocks = np.arange(int(np.prod(-(-shape // side)))).reshape(tuple(-(-shape // side)))
    places = np.indices(grid.labels.shape) // side
    return blocks[tuple(places)].ravel(), blocks


def find_values(scored: Dataset, grid: ScoreCells, boxes: Bins | None = None) -> Floats:
    """Mean of each score in each box, as (box, score); in the middle of boxes of the grid that hold no event.

    Where folds have grids of their own, `boxes` are those of all of them.
    """
    middles = []
    for edges in grid.edges:
        ends = np.concatenate([edges[:1], edges, edges[-1:]]) if len(edges) else np.zeros(2)
        middles.append((ends[1:] + ends[:-1]) / 2)
    values = np.stack([each.ravel() for each in np.meshgrid(*middles, indexing="ij")], axis=1)
    sums, counts = np.zeros_like(values), np.zeros(len(values))
    for sample in (*scored.of_role(Role.SIGNAL), *scored.of_role(Role.BACKGROUND)):
        box, weight = (boxes or grid).index(sample.events, f"sample {sample.name}"), np.abs(sample.events.weight)
        counts += np.bincount(box, weights=weight, minlength=len(values))
        for i, name in enumerate(grid.names):
            sums[:, i] += np.bincount(box, weights=weight * sample.events.column(name), minlength=len(values))
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1e-300)[:, None], values)
