"""The boosting loop of the paper, and how it is resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.data import Dataset
from qbdt.progress import Progress, silent
from qbdt.threads import Workers
from qbdt.training.draws import drawn_features, row_seed
from qbdt.training.inputs import categories_by_number
from qbdt.training.model import End, Ending, TrainedModel, require_resumable
from qbdt.training.monitor import Monitor, TreeReport
from qbdt.training.paper.boosted_rows import PaperStart, start_paper
from qbdt.training.partitions.events import PartitionedEvents, place_events
from qbdt.training.settings import Settings
from qbdt.trees import Binning, Ensemble, Tree
from qbdt.trees.growth import Grown, Growth, LeafGrowth, PublishedGrowth, RowStore, SystematicHistograms, TreeGrower

__all__ = ["train_paper"]

GROWTH: dict[str, Callable[[int], Growth]] = {"leaves": LeafGrowth, "published": PublishedGrowth}


def train_paper(
    dataset: Dataset | PartitionedEvents,
    settings: Settings,
    *,
    n_threads: int | None = None,
    monitor: Monitor | None = None,
    progress: Progress = silent,
    resume: TrainedModel | None = None,
    checkpoint: Callable[[TrainedModel], None] | None = None,
) -> TrainedModel:
    """Train by the paper's method, whatever `settings.method` says: `qbdt.training.methods.train` looks at it.

    Parameters
    ----------
    dataset
        Signal, background and systematic sources: in memory, on disk (`OutOfCore`) or on a cluster (`OnCluster`).
    settings
        How to train.
    n_threads
        Threads; None for all cores. Results do not depend on it.
    monitor
        Validation sample, early stopping, callbacks.
    progress
        Shows how far it is.
    resume
        An earlier, shorter training on the same events with the same settings, to be continued: the outcome is that of
        one uninterrupted training.
    checkpoint
        Called with the training so far after every tree; it decides itself when to write.

    Returns
    -------
    TrainedModel
        Interrupting with Ctrl-C returns what is trained so far.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = np.concatenate([rng.normal(1, 1, 100), rng.normal(-1, 1, 100)])
    >>> dataset = Dataset.from_arrays(x[:, None], np.repeat([1, 0], 100))
    >>> len(train_paper(dataset, Settings(n_trees=3)).ensemble.trees)
    3
    """
    monitor = monitor or Monitor()
    with Workers(n_threads) as workers:
        start = start_paper(place_events(dataset, workers), settings, workers)
        boosting = _Boosting(start, settings, workers, monitor, resume)
        del dataset, start  # its weights and row numbers are not needed any more; the caller may have kept nothing else
        return boosting.run(progress, checkpoint)


class _Boosting:
    """State of one training."""

    def __init__(
        self, start: PaperStart, settings: Settings, workers: Workers, monitor: Monitor, resume: TrainedModel | None
    ) -> None:
        self.settings = settings
        self.features, self.data, self.binning, self.rows, self.criterion = start
        self.monitor = monitor
        self.workers = workers
        self.trees: list[Tree] = []
        self.end: End | None = None  # until it ends
        monitor.start(self.features)
        for tree in _resumable(resume, self.binning, settings, self.data):
            self._replay(tree)

    def run(self, progress: Progress, checkpoint: Callable[[TrainedModel], None] | None) -> TrainedModel:
        with progress("training", self.settings.n_trees) as advance:
            advance(len(self.trees))
            try:
                while len(self.trees) < self.settings.n_trees and self.end is None:
                    self._one_tree()
                    advance(1)
                    if checkpoint is not None and self.trees:
                        checkpoint(self._result(self.trees))
            except KeyboardInterrupt:
                self.end = self._end(Ending.INTERRUPTED)
        best = self.monitor.best if self.monitor.patience is not None else None
        return self._result(self.trees[:best])

    def _result(self, trees: Sequence[Tree]) -> TrainedModel:
        ensemble, history = Ensemble(self.features, tuple(trees)), tuple(self.monitor.history)
        return TrainedModel(ensemble, self.binning, self.settings, history, self._end_so_far(), self.data)

    def _end(self, how: Ending) -> End:
        return End(how, f"{len(self.trees)} trees")

    def _end_so_far(self) -> End:
        """How it ended; a checkpoint with fewer trees than asked for counts as interrupted."""
        if self.end is None and len(self.trees) < self.settings.n_trees:
            return self._end(Ending.INTERRUPTED)
        return self.end or End()

    def _start_tree(
        self, nodes: RowStore, features: Fixed, details: SystematicHistograms
    ) -> tuple[Fixed, Fixed] | None:
        """Fix the units of the next tree; return the root's histogram and quantities, or None at the end."""
        root = nodes.histogram(0)
        sums = self.criterion.start_tree(root, details.of(0), features, self.rows.units)
        if sums is None:
            self.end = self._end(Ending.NO_YIELD)
            return None
        return root, sums

    def _fix_weights(self) -> RowStore:
        return self.rows.start_tree(row_seed(self.settings, len(self.trees)), self.settings.row_fraction)

    def _one_tree(self) -> None:
        settings = self.settings
        features = drawn_features(settings, len(self.trees), len(self.features))
        nodes = self._fix_weights()
        details = SystematicHistograms(nodes)
        start = self._start_tree(nodes, features, details)
        if start is None:
            return
        rule = GROWTH[settings.growth](settings.n_leaves)
        depth = settings.max_depth or settings.n_leaves
        grown = TreeGrower(nodes, self.criterion, rule, features, depth, details).grow(*start)
        if len(grown.leaves) < 2:
            self.end = self._end(Ending.NO_GAIN)
            return
        tree = self._weighted(grown)
        self.rows.boost(grown.leaves, _factors(tree))
        self._keep(tree)

    def _keep(self, tree: Tree) -> None:
        self.trees.append(tree)
        report = TreeReport(len(self.trees) - 1, self.settings.n_trees, tree)
        if self.monitor.judge(report, self.features, self.workers.n_threads):
            self.end = self._end(Ending.STOPPED_EARLY)

    def _replay(self, tree: Tree) -> None:
        """Treat the rows as after this tree, which an earlier training grew on them."""
        nodes = self._fix_weights()
        number = {0: 0}
        for i in np.flatnonzero(~tree.is_leaf):
            node = tree.nodes[i]
            goes_right = tree.codes_right(int(i), self.binning.edges[node["feature"]])
            children = nodes.split(number[int(i)], int(node["feature"]), goes_right)
            number[int(node["left"])], number[int(node["right"])] = children
        self.rows.boost([number[int(i)] for i in np.flatnonzero(tree.is_leaf)], _factors(tree))
        self._keep(tree)

    def _weighted(self, grown: Grown) -> Tree:
        """Give a grown tree its thresholds and its weight W = learning rate × Σ Q of the leaves."""
        nodes = grown.with_thresholds(self.binning.edges)
        leaves = nodes["feature"] < 0
        weight = self.settings.learning_rate * float(sum(nodes["q"][leaves].tolist()))
        return Tree(nodes, weight, categories_by_number(self.binning))


def _factors(tree: Tree) -> Floats:
    """Return exp(−p W) for signal and exp(+p W) for background, one row per leaf.

    Where a monotonic constraint holds back the output 2p − 1 of a leaf, its p is that of the output.
    """
    purities, outputs = tree.purities, tree.nodes["value"]
    shown = np.where(outputs == 2.0 * purities - 1.0, purities, 0.5 * (1.0 + outputs))
    exponent = shown[tree.is_leaf] * tree.weight
    return np.exp(np.stack([-exponent, exponent], axis=1))


def _resumable(
    resume: TrainedModel | None, binning: Binning, settings: Settings, data: Mapping[str, Any]
) -> tuple[Tree, ...]:
    if resume is None:
        return ()
    require_resumable(resume, binning, settings, data)
    return resume.ensemble.trees[: settings.n_trees]
