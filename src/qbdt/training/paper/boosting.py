"""The paper's boosting loop, and how it is resumed.

Signal and nominal background are each scaled to one event. Each tree is grown by ΔQ (`criterion`) and gets the weight
W = Σ Q over its leaves. Then signal in a leaf of purity p is multiplied by exp(−p W), background by exp(+p W): the next
tree looks at what this one did not separate. The score of an event is Σ (2p − 1) W over trees (eq:qbdt_score).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset
from qbdt.progress import Progress, silent
from qbdt.threads import Workers
from qbdt.training.device_growth import DeviceGrowth, grow_plain
from qbdt.training.inputs import draw_features, draw_rows
from qbdt.training.model import End, Ending, TrainedModel, require_resumable
from qbdt.training.monitor import Monitor, TreeReport
from qbdt.training.paper.boosted_rows import Prepared, prepare_events
from qbdt.training.paper.device_rows import DeviceWeightedRows
from qbdt.training.partitions.events import PartitionedEvents, place_events
from qbdt.training.settings import Settings
from qbdt.trees import Ensemble, Tree
from qbdt.trees.device import DeviceMemory, open_device
from qbdt.trees.growth import Grown, Growth, LeafGrowth, PublishedGrowth, RowStore, SystematicHistograms, TreeGrower

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
    device: str | None = None,
) -> TrainedModel:
    """Train by the paper's method, whatever `settings.method` says; parameters are those of `qbdt.training.train`."""
    with Workers(n_threads) as workers:
        prepared = prepare_events(
            place_events(dataset, workers, DeviceMemory.of(open_device(device))), settings, workers
        )
        boosting = _Boosting(prepared, settings, workers.n_threads, monitor or Monitor())
        # Only the binned rows are needed from here on; the caller may have kept no other reference to the events.
        del dataset, prepared
        boosting.replay(resume)
        with progress("training", settings.n_trees) as advance:
            advance(len(boosting.trees))
            try:
                while not boosting.is_finished:
                    boosting.add_tree()
                    advance(1)
                    if checkpoint is not None and boosting.trees:
                        checkpoint(boosting.result())
            except KeyboardInterrupt:
                boosting.interrupt()
    return boosting.result(best_only=True)


class _Boosting:
    """State of one training."""

    def __init__(self, prepared: Prepared, settings: Settings, n_threads: int, monitor: Monitor) -> None:
        self._settings = settings
        self._features, self._data, self._binning, self._rows, self._criterion = prepared
        self._n_threads = n_threads
        self._monitor = monitor
        self._end: End | None = None  # until it ends
        self.trees: list[Tree] = []
        monitor.start(self._features)

    @property
    def is_finished(self) -> bool:
        """Whether there are as many trees as asked for, or no further one can be grown."""
        return len(self.trees) >= self._settings.n_trees or self._end is not None

    def add_tree(self) -> None:
        """Grow the next tree, and re-weight all rows by it."""
        settings = self._settings
        # 1. Weights of this tree in fixed point.
        rows = self._start_tree()
        # 2. Best-first growth by ΔQ; signal and background are each scaled to one event.
        grown = self._grow(rows)
        if grown is None:
            self._end = self._end_as(Ending.NO_YIELD)
            return
        if len(grown.leaves) < 2:
            self._end = self._end_as(Ending.NO_GAIN)
            return
        # 3. Tree weight W = Σ Q over the leaves, times the learning rate (1 in the paper).
        nodes = grown.with_thresholds(self._binning.edges)
        weight = settings.learning_rate * float(sum(nodes["q"][nodes["feature"] < 0].tolist()))
        tree = Tree(nodes, weight, self._binning.categories_by_number)
        # 4. Re-weighting.
        self._rows.boost(grown.leaves, _boost_factors(tree))
        self._keep(tree)

    def _grow(self, rows: RowStore) -> Grown | None:
        """Grow a tree on rows; None where signal or background has no positive yield."""
        settings, criterion = self._settings, self._criterion
        features = draw_features(settings, len(self.trees), len(self._features))
        depth = settings.max_depth or settings.n_leaves
        if (growth := self._device_growth(rows, depth)) and (grown := grow_plain(growth, criterion, features)):
            return grown
        root, systematics = rows.histogram(0), SystematicHistograms(rows)
        sums = criterion.normalise(root, systematics.of(0), features, self._rows.units)
        if sums is None:
            return None
        rule = GROWTH[settings.growth](settings.n_leaves)
        return TreeGrower(rows, criterion, rule, features, depth, systematics).grow(root, sums)

    def _device_growth(self, rows: RowStore, depth: int) -> DeviceGrowth | None:
        """Growth on the device that the rows are on, where it can judge splits by itself."""
        n_leaves, is_plain = self._settings.n_leaves, self._criterion.is_plain and self._settings.growth == "leaves"
        if not (is_plain and isinstance(rows, DeviceWeightedRows) and DeviceGrowth.fits(rows, n_leaves)):
            return None
        if rows.growth is None:
            rows.growth = DeviceGrowth(rows, self._binning.n_cuts, n_leaves, depth)
        growth: DeviceGrowth = rows.growth
        return growth

    def replay(self, earlier: TrainedModel | None) -> None:
        """Re-weight the rows by the trees of an earlier training on them."""
        if earlier is None:
            return
        require_resumable(earlier, self._binning, self._settings, self._data)
        for tree in earlier.ensemble.trees[: self._settings.n_trees]:
            rows = self._start_tree()
            number = {0: 0}  # node of the tree → node of the rows
            for i in np.flatnonzero(~tree.is_leaf):
                node = tree.nodes[i]
                goes_right = tree.codes_right(int(i), self._binning.edges[node["feature"]])
                children = rows.split(number[int(i)], int(node["feature"]), goes_right)
                number[int(node["left"])], number[int(node["right"])] = children
            leaves = [number[int(i)] for i in np.flatnonzero(tree.is_leaf)]
            self._rows.boost(leaves, _boost_factors(tree))
            self._keep(tree)

    def interrupt(self) -> None:
        """Take note that the user stopped the training."""
        self._end = self._end_as(Ending.INTERRUPTED)

    def result(self, *, best_only: bool = False) -> TrainedModel:
        """Training so far; with `best_only` the trees after the best one are dropped where it was to stop early.

        A checkpoint with fewer trees than asked for counts as interrupted.
        """
        best = self._monitor.best if best_only and self._monitor.patience is not None else None
        end = self._end or (End() if self.is_finished else self._end_as(Ending.INTERRUPTED))
        ensemble, history = Ensemble(self._features, tuple(self.trees[:best])), tuple(self._monitor.history)
        return TrainedModel(ensemble, self._binning, self._settings, history, end, self._data)

    def _start_tree(self) -> RowStore:
        return self._rows.start_tree(*draw_rows(self._settings, len(self.trees)))

    def _keep(self, tree: Tree) -> None:
        self.trees.append(tree)
        report = TreeReport(len(self.trees) - 1, self._settings.n_trees, tree)
        if self._monitor.judge(report, self._features, self._n_threads):
            self._end = self._end_as(Ending.STOPPED_EARLY)

    def _end_as(self, how: Ending) -> End:
        return End(how, f"{len(self.trees)} trees")


def _boost_factors(tree: Tree) -> Floats:
    """Factors exp(−p W) of signal and exp(+p W) of background, one row per leaf.

    Where a monotonic constraint holds back the output 2p − 1 of a leaf, its p is that of the output.
    """
    purities, outputs = tree.purities, tree.nodes["value"]
    p = np.where(outputs == 2.0 * purities - 1.0, purities, 0.5 * (1.0 + outputs))
    exponent = p[tree.is_leaf] * tree.weight
    return np.exp(np.stack([-exponent, exponent], axis=1))
