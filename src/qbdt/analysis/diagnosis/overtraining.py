"""Over-training: whether events that a model was trained on get other scores than events that it never saw.

The distance is that of Kolmogorov and Smirnov between the weighted distributions of both. With weights it has no known
distribution, and with several folds every event takes part on both sides, so its p-value comes from permutations: if
training did not matter, which fold an event is in would say nothing about its scores, and the folds could be dealt out
anew among the events of each process. The share of deals with a distance at least as large is a p-value that is exact
for any weights, negative ones included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.training import FoldedEnsemble


@dataclass(frozen=True)
class OverTraining:
    """Scores of trained-on against unseen events of one role."""

    role: str  # "signal" or "background"
    distance: float  # Largest difference of the cumulative distributions, mean over the models
    expected: float  # Mean distance of events whose folds are dealt out anew: what statistics alone make
    # Probability of such a distance or a larger one if training made no difference; the smallest possible value is 1/(1
    # + permutations)
    p: float
    permutations: int  # How many deals


def check_over_training(
    dataset: Dataset,
    models: FoldedEnsemble,
    *,
    n_permutations: int = 499,
    seed: int = 0,
    n_threads: int | None = None,
    number: int = 0,
) -> tuple[OverTraining, ...]:
    """Test signal and background: nominal events, one model per fold, `n_permutations` deals of the folds.

    Of models with several scores the one with this `number` is looked at.
    """
    results = []
    for role in (Role.SIGNAL, Role.BACKGROUND):
        events = [sample.events for sample in dataset.of_role(role)]
        found = [[model.score(e, n_threads).reshape(e.n_rows, -1) for model in models.members] for e in events]
        scores = np.concatenate([np.column_stack([each[:, number] for each in own]) for own in found])
        folds = np.concatenate([models.folds.assign(e) for e in events])
        group = np.repeat(np.arange(len(events)), [e.n_rows for e in events])
        weight = np.concatenate([e.weight for e in events])
        result = permutation_p(scores, weight, folds, group, n_permutations, np.random.default_rng(seed))
        results.append(OverTraining(str(role), *result, n_permutations))
    return tuple(results)


def permutation_p(
    scores: Floats,
    weight: Floats,
    folds: NDArray[np.int64],
    group: NDArray[np.int64],
    n_permutations: int,
    random: np.random.Generator,
) -> tuple[float, float, float]:
    """Return the distance, its mean over deals, and the p-value.

    `scores` has the score of every event by every model, (event, model); model m was trained without fold m. Folds are
    dealt out anew within each `group`, which is the process of an event.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> folds = np.arange(200) % 2
    >>> honest = rng.normal(size=(200, 2))
    >>> spoilt = honest + 2.0 * (folds[:, None] != np.arange(2))
    >>> none = np.zeros(200, dtype=int)
    >>> [permutation_p(s, np.ones(200), folds, none, 99, np.random.default_rng(1))[2] < 0.02 for s in (honest, spoilt)]
    [False, True]
    """
    models = [_ScoreOrder(scores[:, m], weight, m) for m in range(scores.shape[1])]
    observed = _mean_distance(models, folds)
    members = [np.flatnonzero(group == g) for g in np.unique(group)]
    found = np.empty(n_permutations)
    dealt = folds.copy()
    for i in range(n_permutations):
        for rows in members:
            dealt[rows] = folds[random.permutation(rows)]
        found[i] = _mean_distance(models, dealt)
    # a tie counts as larger: with few events many deals give the same distance
    larger = int(np.sum(found >= observed * (1 - 1e-12)))
    return observed, float(found.mean()), (1 + larger) / (1 + n_permutations)


class _ScoreOrder:
    """Events in the order of one model's scores."""

    def __init__(self, score: Floats, weight: Floats, number: int) -> None:
        self.order = np.argsort(score, kind="stable")
        self.weight = weight[self.order]
        in_order = score[self.order]
        self.last = np.flatnonzero(np.append(in_order[1:] != in_order[:-1], True))
        self.running = np.cumsum(self.weight)[self.last]
        self.number = number

    def distance(self, folds: NDArray[np.int64]) -> float:
        unseen = np.cumsum(self.weight * (folds[self.order] == self.number))[self.last]
        seen = self.running - unseen
        if unseen[-1] <= 0 or seen[-1] <= 0:
            return 0.0
        return float(np.max(np.abs(unseen / unseen[-1] - seen / seen[-1])))


def _mean_distance(models: Sequence[_ScoreOrder], folds: NDArray[np.int64]) -> float:
    return float(np.mean([model.distance(folds) for model in models]))
