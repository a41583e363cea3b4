"""Nested cross-training: settings are judged by inner folds among the events outside of each outer fold.

Every event has an outer fold o and an inner fold i. For the outer fold f, the events with o ≠ f are scored: those of
the inner fold u by a model that was trained on o ≠ f and i ≠ u. So the events of f take no part in a judgement of
settings; those that are best by it may be tried on f, and the result is no optimum of anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, FoldRule

Scorer: TypeAlias = Callable[[Events], Floats]
"""Scores of events by one model."""

Cells: TypeAlias = frozenset[tuple[int, int]]
"""Pairs of an outer and an inner fold: a set of events."""


@dataclass(frozen=True, eq=False)
class NestedFolds:
    """Events with outer and inner folds."""

    events: Dataset  # The events; those that are selected keep its fold rule, if it has one
    outer: FoldRule | None  # Rule of the outer folds; None where all these events are trained on, and others are fitted
    inner: FoldRule  # Rule of the inner folds. It may divide the outer folds further, or have nothing to do with them.

    @property
    def n_outer(self) -> int:
        """Number of outer folds."""
        return 1 if self.outer is None else self.outer.k

    @cached_property
    def cells(self) -> Cells:
        """Pairs of folds that have events."""
        found = {int(cell) for sample in self.events.samples for cell in np.unique(self._assign(sample.events))}
        return frozenset(divmod(cell, self.inner.k) for cell in found)

    def cells_outside(self, fold: int) -> Cells:
        """Cells of the events outside of an outer fold; all where there is no outer rule."""
        return frozenset(cell for cell in self.cells if self.outer is None or cell[0] != fold)

    def select(self, cells: Cells) -> Dataset:
        """Select the events of some cells."""
        wanted = [outer * self.inner.k + inner for outer, inner in cells]
        return self.events.select(lambda events: np.isin(self._assign(events), wanted))

    def score_inside(
        self, fold: int, train: Callable[[Dataset], Scorer], models: dict[Cells, Scorer] | None = None
    ) -> Dataset:
        """Score the events outside of one outer fold, each inner fold by a model trained on the others.

        `models`, by the cells they were trained on, come from other outer folds; new ones are added. Where an outer
        fold is one inner fold, the model without the folds i and j serves the outer folds i and j: half of the
        trainings.

        Returns
        -------
        Dataset
            With the feature "score" and the inner folds; its yields are those of the events outside of the fold.
        """
        models = {} if models is None else models
        outside, scorers = self.cells_outside(fold), {}
        for number in sorted({inner for _, inner in outside}):
            rest = frozenset(cell for cell in outside if cell[1] != number)
            if rest not in models:
                models[rest] = train(self.select(rest))
            scorers[number] = models[rest]
        return score_by_fold(self.select(outside).with_folds(self.inner), self.inner, scorers)

    def _assign(self, events: Events) -> NDArray[np.int64]:
        """Number of the cell of each event: outer · (inner folds) + inner."""
        inner = self.inner.assign(events)
        return inner if self.outer is None else self.outer.assign(events) * self.inner.k + inner


def score_by_fold(events: Dataset, rule: FoldRule, scorers: Mapping[int, Scorer]) -> Dataset:
    """Score nominal and varied events with the model of their fold, as the feature "score"; NaN where it has none."""

    def compute(each: Events) -> dict[str, Floats]:
        fold = rule.assign(each)
        scores = np.full(each.n_rows, np.nan)
        for number, scorer in scorers.items():
            rows = np.flatnonzero(fold == number)
            if rows.size:
                scores[rows] = scorer(each[rows])
        return {"score": scores}

    return events.transform(compute)
