"""The boosting loop of the paper, and how it is resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.data import Dataset
from qbdt.errors import DataError
from qbdt.progress import Progress, silent
from qbdt.statistics import Expectation
from qbdt.tables import Table, notebook_html
from qbdt.threads import Workers
from qbdt.training.description import training_headline, training_tables
from qbdt.training.draws import drawn_features, row_seed
from qbdt.training.inputs import InMemory, Start, TrainingRows, categories_by_number
from qbdt.training.monitor import Monitor, TreeReport
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.settings import Settings
from qbdt.trees import Binning, Ensemble, Tree
from qbdt.trees.growth import Grown, Growth, LeafGrowth, PublishedGrowth, SystematicHistograms, TreeGrower

__all__ = ["Training", "require_resumable", "train_paper"]

GROWTH: dict[str, Callable[[int], Growth]] = {"leaves": LeafGrowth, "published": PublishedGrowth}


@dataclass(frozen=True, eq=False)
class Training:
    """A finished (or interrupted) training.

    Attributes
    ----------
    ensemble
        The trees.
    binning
        Where features could be cut.
    settings
        How it was trained.
    history
        Binned Q of the validation sample after each tree; empty where there was none.
    stopped
        Why there are fewer trees than asked for, otherwise None.
    data
        What it was trained on: rows and yield of each sample, names of the sources.
    expectation
        Expected σ_μ and what each source does to it; of the profiled method only.
    """

    ensemble: Ensemble | ProfiledEnsemble
    binning: Binning
    settings: Settings
    history: tuple[float, ...] = ()
    stopped: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    expectation: Expectation | None = None

    @property
    def complete(self) -> bool:
        """Whether it came to its end: all trees, or a reason other than an interruption to have fewer."""
        if self.stopped is not None:
            return "interrupted" not in self.stopped
        return isinstance(self.ensemble, ProfiledEnsemble) or len(self.ensemble.trees) == self.settings.n_trees

    def is_checkpoint(self, every: int) -> bool:
        """Whether an unfinished training is to be written: after so many trees; a profiled one, after each part."""
        return isinstance(self.ensemble, ProfiledEnsemble) or len(self.ensemble.trees) % every == 0

    def tables(self) -> tuple[Table, ...]:
        """Features by gain, what is expected, what it was trained on, settings."""
        return tuple(table for table in training_tables(self) if table.rows)

    def __str__(self) -> str:
        return "\n\n".join([training_headline(self), *map(str, self.tables())])

    def _repr_html_(self) -> str:
        return notebook_html(training_headline(self), self.tables())


def train_paper(
    dataset: Dataset | TrainingRows,
    settings: Settings,
    *,
    n_threads: int | None = None,
    monitor: Monitor | None = None,
    progress: Progress = silent,
    resume: Training | None = None,
    checkpoint: Callable[[Training], None] | None = None,
) -> Training:
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
    Training
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
        start = (InMemory(dataset) if isinstance(dataset, Dataset) else dataset).start(settings, workers)
        boosting = _Boosting(start, settings, workers, monitor, resume)
        del dataset, start  # its weights and row numbers are not needed any more; the caller may have kept nothing else
        return boosting.run(progress, checkpoint)


class _Boosting:
    """State of one training."""

    def __init__(
        self, start: Start, settings: Settings, workers: Workers, monitor: Monitor, resume: Training | None
    ) -> None:
        self.settings = settings
        self.features, self.data, self.binning, self.store, self.criterion = start
        self.monitor = monitor
        self.workers = workers
        self.trees: list[Tree] = []
        self.stopped: str | None = None
        monitor.start(self.features)
        for tree in _resumable(resume, self.binning, settings, self.data):
            self._replay(tree)

    def run(self, progress: Progress, checkpoint: Callable[[Training], None] | None) -> Training:
        with progress("training", self.settings.n_trees) as advance:
            advance(len(self.trees))
            try:
                while len(self.trees) < self.settings.n_trees and self.stopped is None:
                    self._one_tree()
                    advance(1)
                    if checkpoint is not None and self.trees:
                        checkpoint(self._result(self.trees))
            except KeyboardInterrupt:
                self.stopped = f"interrupted after {len(self.trees)} trees"
        best = self.monitor.best if self.monitor.patience is not None else None
        return self._result(self.trees[:best])

    def _result(self, trees: Sequence[Tree]) -> Training:
        ensemble, history = Ensemble(self.features, tuple(trees)), tuple(self.monitor.history)
        return Training(ensemble, self.binning, self.settings, history, self.stopped, self.data)

    def _start_tree(self, features: Fixed, details: SystematicHistograms) -> tuple[Fixed, Fixed] | None:
        """Fix weights and units of the next tree; return the root's histogram and quantities, or None at the end."""
        self._fix_weights()
        root = self.store.histogram(0)
        sums = self.criterion.start_tree(root, details.of(0), features, self.store.units)
        if sums is None:
            self.stopped = f"signal or background has no positive yield after {len(self.trees)} trees"
            return None
        return root, sums

    def _fix_weights(self) -> None:
        self.store.start_tree(row_seed(self.settings, len(self.trees)), self.settings.row_fraction)

    def _one_tree(self) -> None:
        settings = self.settings
        features = drawn_features(settings, len(self.trees), len(self.features))
        details = SystematicHistograms(self.store)
        start = self._start_tree(features, details)
        if start is None:
            return
        rule = GROWTH[settings.growth](settings.n_leaves)
        depth = settings.max_depth or settings.n_leaves
        grown = TreeGrower(self.store, self.criterion, rule, features, depth, details).grow(*start)
        if len(grown.leaves) < 2:
            self.stopped = f"no split gains anything after {len(self.trees)} trees"
            return
        tree = self._weighted(grown)
        self.store.boost(grown.leaves, _factors(tree))
        self._keep(tree)

    def _keep(self, tree: Tree) -> None:
        self.trees.append(tree)
        report = TreeReport(len(self.trees) - 1, self.settings.n_trees, tree)
        if self.monitor.judge(report, self.features, self.workers.n_threads):
            self.stopped = f"stopped early after {len(self.trees)} trees"

    def _replay(self, tree: Tree) -> None:
        """Treat the rows as after this tree, which an earlier training grew on them."""
        self._fix_weights()
        number = {0: 0}
        for i in np.flatnonzero(~tree.is_leaf):
            node = tree.nodes[i]
            goes_right = tree.codes_right(int(i), self.binning.edges[node["feature"]])
            children = self.store.split(number[int(i)], int(node["feature"]), goes_right)
            number[int(node["left"])], number[int(node["right"])] = children
        self.store.boost([number[int(i)] for i in np.flatnonzero(tree.is_leaf)], _factors(tree))
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
    resume: Training | None, binning: Binning, settings: Settings, data: Mapping[str, Any]
) -> tuple[Tree, ...]:
    if resume is None:
        return ()
    require_resumable(resume, binning, settings, data)
    return resume.ensemble.trees[: settings.n_trees]


def require_resumable(resume: Training, binning: Binning, settings: Settings, data: Mapping[str, Any]) -> None:
    """Refuse to go on with a training that had other settings or events; `data` is what `described` says of these."""
    if replace(resume.settings, n_trees=settings.n_trees) != settings:
        raise DataError("cannot resume: the earlier training had other settings")
    same = resume.binning.features == binning.features and all(
        np.array_equal(mine, other) for mine, other in zip(resume.binning.edges, binning.edges, strict=True)
    )
    same = same and resume.binning.categories.keys() == binning.categories.keys()
    same = same and all(np.array_equal(resume.binning.categories[n], own) for n, own in binning.categories.items())
    if not same or any(resume.data.get(key) != value for key, value in data.items()):
        raise DataError("cannot resume: the earlier training was on other events")
