"""Training of a regression: both sums of trees on each fold of the events, then the best combination of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from qbdt.arrays import LARGEST_YIELD, NODE, Floats, Nodes
from qbdt.data import TARGET, Dataset
from qbdt.errors import ConfigError, is_number
from qbdt.progress import Progress, silent
from qbdt.threads import Workers
from qbdt.training.regression.losses import Loss
from qbdt.training.regression.mean_trees import choose_number, fit_mean
from qbdt.training.regression.profiling import ProfiledShifts
from qbdt.training.regression.regression_events import HeldPrediction, RegressionEvents, Scales
from qbdt.training.regression.shift_trees import fit_shift_trees, profile_folds
from qbdt.training.regression.trained_regression import RegressionExpectation, SourceShift, TrainedRegression
from qbdt.training.settings import Settings
from qbdt.trees import Ensemble, Tree


def train_regression(
    dataset: Dataset,
    settings: Settings,
    loss: Loss,
    *,
    n_events: float | None = None,
    n_threads: int | None = None,
    progress: Progress = silent,
) -> TrainedRegression:
    """Train a regression on events with a target (`qbdt.data.from_target`).

    `n_events` are those whose mean is measured; by default the expected events of the dataset.

    For each of five inner folds the prediction g is boosted on the other four, and all held-out events together say
    how many trees it has. Then the shifts of all sources are fitted, and c chosen, as docs/regression.md says. The sums
    of the folds are averaged. With fewer than 40 rows nothing is held out.

    Examples
    --------
    >>> from qbdt.data import from_target
    >>> x = np.linspace(0, 1, 400)
    >>> trained = train_regression(from_target({"x": x}, x**2), Settings(n_trees=50, min_leaf_entries=5), Loss())
    >>> trained.prediction.profiled < 0.05
    True
    """
    nominal = dataset.samples[0].events
    loss.require_weights(nominal.weight)
    if n_events is not None:
        number = float(n_events) if is_number(n_events) else 0.0
        if not 1 / LARGEST_YIELD <= number <= LARGEST_YIELD:
            raise ConfigError(f"n_events={n_events!r}: must be a positive number up to {LARGEST_YIELD:g}")
        n_events, dataset = number, dataset.scaled(number / nominal.total)
    with Workers(n_threads) as workers:
        events = RegressionEvents(dataset, settings, workers)
        n_sums = events.n_folds * (1 + bool(events.sources))
        with progress("training", n_sums * settings.n_trees) as advance:
            return replace(_Regression(events, settings, loss, advance).fit(), n_events=n_events)


class _Regression:
    """State of one training."""

    def __init__(
        self, events: RegressionEvents, settings: Settings, loss: Loss, advance: Callable[[int], None]
    ) -> None:
        self.events, self.settings, self.loss, self.advance = events, settings, loss, advance
        self.categories = events.binning.categories_by_number
        self.start = loss.best_constant(events.nominal.identifier(TARGET), events.nominal.weight)

    def fit(self) -> TrainedRegression:
        """Fit everything and put it together."""
        means = self._fit_means()
        predictions = self._judge(means)
        if self.events.sources:
            shifts, profiled = self._fit_shifts(predictions)
        else:
            shifts, profiled = [[] for _ in means], None
        constant = self.start + (0.0 if profiled is None else profiled.constant)
        expected = self._expect(predictions, shifts, profiled)
        n = len(means)
        trees = [_constant_tree(constant)]
        trees += [self._tree(nodes, 1.0 / n) for own in (*means, *shifts) for nodes in own]
        model = Ensemble(self.events.dataset.features, tuple(trees))
        return TrainedRegression(
            model, self.events.binning, self.settings, data=self.events.data, loss=self.loss, prediction=expected
        )

    def _fit_means(self) -> list[tuple[Nodes, ...]]:
        """Trees of g of each fold, as many as held-out events ask for."""
        fitted = []
        for fold in range(self.events.n_folds):
            fitted.append(fit_mean(fold, self.loss, self.start, self.settings, self._note_tree, self.events))
            self.advance(self.settings.n_trees - len(fitted[-1].trees))
        number = choose_number(fitted) if self.events.n_folds > 1 else None
        return [one.trees[:number] for one in fitted]

    def _note_tree(self) -> None:
        self.advance(1)

    def _tree(self, nodes: Nodes, weight: float) -> Tree:
        return Tree(nodes, weight, self.categories)

    def _ensemble(self, trees: Sequence[Nodes]) -> Ensemble:
        return Ensemble(self.events.dataset.features, tuple(self._tree(nodes, 1.0) for nodes in trees))

    def _judge(self, means: Sequence[Sequence[Nodes]]) -> list[HeldPrediction]:
        """Predictions of the folds, with the curvature of the loss and the scales of all held-out events."""
        sums = [self._ensemble(trees) for trees in means]
        moved, residual, weight = [], [], []
        for fold, trees in enumerate(sums):
            _, held = self.events.nominal_of(fold)
            moved.append(trees.score(held, self.events.workers.n_threads))
            residual.append(held.identifier(TARGET) - self.start - moved[-1])
            weight.append(held.weight)
        curvature = self.loss.curvature(np.concatenate(residual), np.concatenate(weight))
        influence = self.loss.gradient(np.concatenate(residual)) / curvature
        scales = Scales(_size(np.concatenate(moved)), _size(influence))
        return [HeldPrediction(trees, self.start, self.loss, curvature, scales) for trees in sums]

    def _fit_shifts(self, predictions: Sequence[HeldPrediction]) -> tuple[list[list[Nodes]], ProfiledShifts]:
        """Trees of Σ_k c_k h_k of each fold, and the profiled shifts."""
        fitted, known = [], []
        for fold, prediction in enumerate(predictions):
            own, share = fit_shift_trees(fold, prediction, self.settings, self._note_tree, self.events)
            self.advance(self.settings.n_trees - len(own.trees))
            fitted.append(own)
            known.append(share)
        chosen, profiled = profile_folds(fitted, predictions[0], np.mean(known, axis=0))
        trees = []
        for own in chosen:
            for nodes, values in zip(own.trees, own.values, strict=True):
                nodes["value"] = values @ profiled.coefficients
            trees.append(list(own.trees))
        return trees, profiled

    def _expect(
        self,
        predictions: Sequence[HeldPrediction],
        shifts: Sequence[Sequence[Nodes]],
        profiled: ProfiledShifts | None,
    ) -> RegressionExpectation:
        """Root mean square residuals of held-out events, and the shifts of their mean."""
        squares = np.zeros(2)
        for fold, prediction in enumerate(predictions):
            _, held = self.events.nominal_of(fold)
            n_threads = self.events.workers.n_threads
            residual = held.identifier(TARGET) - prediction.start - prediction.trees.score(held, n_threads)
            moved = self._ensemble(shifts[fold]).score(held, n_threads) + (profiled.constant if profiled else 0.0)
            squares += [held.weight @ np.square(residual), held.weight @ np.square(residual - moved)]
        total = self.events.total
        rms: Floats = np.sqrt(np.maximum(squares / total, 0.0))
        n = total / (1.0 + self.events.mean_weight)
        if profiled is None:
            return RegressionExpectation(float(rms[0]), float(rms[1]), n)
        pairs = zip(self.events.sources, profiled.unprofiled / total, profiled.pulls / total, strict=True)
        sources = tuple(SourceShift(name, float(before), float(after)) for name, before, after in pairs)
        return RegressionExpectation(float(rms[0]), float(rms[1]), n, sources)


def _constant_tree(value: float) -> Tree:
    """Return a tree of one leaf."""
    nodes: Nodes = np.zeros(1, dtype=NODE)
    nodes["feature"], nodes["left"], nodes["right"], nodes["value"] = -1, -1, -1, value
    return Tree(nodes, 1.0)


def _size(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0)) or 1.0
