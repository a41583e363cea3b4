"""The first sum of trees: the prediction g of the smallest loss, without a look at any source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats, Nodes
from qbdt.training.partitions.protocol import largest
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.pair_rows import STEP, fixed_scale, grow_next
from qbdt.training.regression.losses import Loss
from qbdt.training.regression.regression_events import RegressionEvents
from qbdt.training.regression.target_rows import TargetRows
from qbdt.training.settings import Settings

PATIENCE = 40
"""Trees without a smaller loss of held-out events after which no more are grown. Chosen, not tuned."""


@dataclass(frozen=True, eq=False)
class FittedMean:
    """Trees of one fold, and the loss of its held-out events after none of them, after one, and so on."""

    trees: tuple[Nodes, ...]
    losses: tuple[float, ...]


def fit_mean(
    fold: int, loss: Loss, start: float, settings: Settings, after_tree: Callable[[], None], events: RegressionEvents
) -> FittedMean:
    """Boost the prediction from a constant, without the events of one fold."""
    events.build_target_rows(fold, loss, start)
    rows, n_rows = events.rows, events.nominal.n_rows
    least = settings.min_leaf_entries * events.mean_weight
    criterion = NewtonCriterion(0.0, least, events.rules, events.workers)
    features = np.arange(len(events.binning.features))
    losses = [float(rows.ask(largest(TargetRows.held_loss))[0][0])]
    trees: list[Nodes] = []
    for number in range(settings.n_trees):
        # A split gains N²/D with N = Σ w ψ, the gradient, and D = Σ w (for Huber less); N/D is a leaf's best step.
        terms = rows.ask(largest(TargetRows.largest_terms))[0]
        scales = (fixed_scale(float(terms[0]), n_rows), fixed_scale(float(terms[1]), n_rows))
        grown = grow_next(rows, scales, criterion, features, settings, number)
        if grown is None:
            break
        nodes = grown.with_thresholds(events.binning.edges)
        leaves = nodes["feature"] < 0
        if loss.name == "quantile":
            nodes["value"][leaves] = rows.ask(largest(TargetRows.best_outputs, grown.leaves))[0]
        nodes["value"] *= STEP * settings.learning_rate
        rows.tell(TargetRows.add, grown.leaves, nodes["value"][leaves])
        trees.append(nodes)
        losses.append(float(rows.ask(largest(TargetRows.held_loss))[0][0]))
        after_tree()
        if len(trees) - int(np.argmin(losses)) >= PATIENCE:
            break
    return FittedMean(tuple(trees), tuple(losses))


def choose_number(folds: Sequence[FittedMean]) -> int:
    """Number of trees, the same in all folds, with the smallest loss of all held-out events together."""
    most = max(len(fold.losses) for fold in folds)
    curves = [np.pad(fold.losses, (0, most - len(fold.losses)), mode="edge") for fold in folds]
    total: Floats = np.sum(curves, axis=0)
    return int(np.argmin(total))
