"""The profiled training: both sums of trees on each fold of the events, then the best combination of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from qbdt.arrays import Nodes
from qbdt.data import Dataset
from qbdt.errors import ConfigError, DataError
from qbdt.progress import Progress, silent
from qbdt.threads import Workers
from qbdt.training.inputs import categories_by_number
from qbdt.training.model import End, Ending, TrainedModel, require_resumable
from qbdt.training.monitor import Monitor, TreeReport
from qbdt.training.partitions.partition import EventsInParts, parts_of
from qbdt.training.profile.combination import Combination, FoldTrees, best_number, combine
from qbdt.training.profile.expectation import SHARES, chosen_share
from qbdt.training.profile.inner_folds import N_FOLDS
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.ratio import fit_ratio
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.shifts import fit_shifts
from qbdt.training.settings import Settings
from qbdt.trees import Binning, Ensemble, Tree

__all__ = ["train_profiled"]


def train_profiled(
    dataset: Dataset | EventsInParts,
    settings: Settings,
    *,
    n_threads: int | None = None,
    monitor: Monitor | None = None,
    progress: Progress = silent,
    resume: TrainedModel | None = None,
    checkpoint: Callable[[TrainedModel], None] | None = None,
) -> TrainedModel:
    """Train the profiled method.

    The events are divided into five folds. For each, F and the shifts are fitted on the other four, and stop growing
    where the held-out fold says so; the sums of the five are averaged, and combined to the score that is best for all
    held-out events together.

    Parameters
    ----------
    dataset
        Signal, background and sources, with true yields as weights: in memory, on disk (`OutOfCore`) or on a cluster
        (`qbdt.training.partitions.dask`).
    settings
        How to train. `n_trees` is what each sum of each fold gets, or less.
    n_threads
        Threads; None for all cores. Results do not depend on it.
    monitor
        Callbacks; the profiled method judges itself, so it takes no validation sample.
    progress
        Shows how far it is.
    resume
        An interrupted training on the same events with the same settings: finished folds are taken from it.
    checkpoint
        Called with what is there after every finished fold.

    Returns
    -------
    TrainedModel
        Interrupting with Ctrl-C returns what the finished folds give, or F so far where there is none.
    """
    monitor = monitor or Monitor()
    if monitor.validation is not None:
        raise ConfigError(
            "method='profile' holds out events itself and stops where these say so: give no validation sample"
        )
    events = EventsInParts(parts_of(dataset, 1)) if isinstance(dataset, Dataset) else dataset
    with Workers(n_threads) as workers:
        profiled = ProfiledEvents(events.hosts(workers), settings, workers)
        profiling = _Profiling(profiled, settings, workers, monitor, resume)
        return profiling.run(progress, checkpoint)


class _StoppedByCallback(Exception):
    """A callback asked for the end."""


class _Profiling:
    """State of one training."""

    def __init__(
        self,
        events: ProfiledEvents,
        settings: Settings,
        workers: Workers,
        monitor: Monitor,
        resume: TrainedModel | None,
    ) -> None:
        self.events = events
        self.settings = settings
        self.workers = workers
        self.monitor = monitor
        self.categories = categories_by_number(events.binning)
        self.folds = _resumed(resume, events.binning, settings, events.data, len(events.sources))
        self.unfinished: list[Nodes] = []
        self.n_trees = 0
        monitor.start(events.features)

    def run(self, progress: Progress, checkpoint: Callable[[TrainedModel], None] | None) -> TrainedModel:
        per_fold = self._most_trees // N_FOLDS
        end = End()
        with progress("training", self._most_trees) as advance:
            advance(len(self.folds) * per_fold)
            try:
                while len(self.folds) < N_FOLDS:
                    before = self.n_trees
                    self.folds.append(self._fit_fold(len(self.folds), advance))
                    advance(per_fold - (self.n_trees - before))
                    if checkpoint is not None and len(self.folds) < N_FOLDS:
                        checkpoint(self._result(self._end(Ending.INTERRUPTED)))
            except KeyboardInterrupt:
                end = self._end(Ending.INTERRUPTED)
            except _StoppedByCallback:
                end = self._end(Ending.STOPPED_EARLY)
        return self._result(end)

    def _fit_fold(self, number: int, advance: Callable[[int], None]) -> FoldTrees:
        """Fit both sums of trees without one fold of the events."""
        self.unfinished = []

        def after_tree(nodes: Nodes) -> None:
            advance(1)
            report = TreeReport(self.n_trees, self._most_trees, Tree(nodes, 1.0, self.categories))
            self.n_trees += 1
            if self.monitor.judge(report, self.events.features, self.workers.n_threads):
                raise _StoppedByCallback

        def after_ratio_tree(nodes: Nodes) -> None:
            self.unfinished.append(nodes)
            after_tree(nodes)

        own = fit_ratio(self.events, number, self.settings, self.workers, after_ratio_tree)
        shifts = fit_shifts(self.events, number, self._ratio(own), self.settings, self.workers, after_tree)
        return FoldTrees(own, shifts.trees, shifts.values, shifts.integrals)

    @property
    def _most_trees(self) -> int:
        return N_FOLDS * self.settings.n_trees * (1 + bool(self.events.sources))

    def _ratio(self, trees: Sequence[Nodes]) -> ProfiledEnsemble:
        """Return the model of the first sum of trees alone."""
        features = self.events.features
        ratio = Ensemble(features, tuple(Tree(nodes, 1.0, self.categories) for nodes in trees))
        return ProfiledEnsemble(ratio, Ensemble(features, ()), self.events.log_odds)

    def _end(self, how: Ending) -> End:
        return End(how, f"{len(self.folds)} of {N_FOLDS} folds")

    def _result(self, end: End) -> TrainedModel:
        events = self.events
        if not self.folds:
            return TrainedModel(self._ratio(self.unfinished), events.binning, self.settings, (), end, events.data)
        names = (events.features, events.sources, events.log_odds)
        folds, expected = self.folds, None
        if len(folds) == N_FOLDS:
            number = best_number(self.folds)
            folds = [fold.with_shifts(number) for fold in self.folds]
            combination = Combination.of(folds)
            models = [combine([fold], combination, *names, categories=self.categories) for fold in folds]
            share, expected = chosen_share(events.score_store(models, SHARES), events.sources, combination.pulls)
            won = expected.sigma_full**-2 - expected.unprofiled**-2
            information = (expected.sigma_stat**-2, won)
            model = combine(folds, combination.times(share), *names, information, self.categories)
        else:
            model = combine(folds, Combination.of(folds), *names, categories=self.categories)
        known = [
            {"ratio": len(fold.ratio), "shift": len(fold.shift), "integrals": [one.to_dict() for one in fold.integrals]}
            for fold in folds
        ]
        return TrainedModel(model, events.binning, self.settings, (), end, {**events.data, "parts": known}, expected)


def _resumed(
    resume: TrainedModel | None, binning: Binning, settings: Settings, data: Mapping[str, Any], n_sources: int
) -> list[FoldTrees]:
    """Return the finished folds of an earlier training."""
    if resume is None:
        return []
    require_resumable(resume, binning, settings, data)
    assert isinstance(resume.ensemble, ProfiledEnsemble)
    if resume.settings.n_trees != settings.n_trees:
        raise DataError("cannot resume: the folds of a profiled training stop by themselves; n_trees must be the same")
    model, folds = resume.ensemble, []
    ratio, shift = iter(model.ratio.trees), iter(zip(model.shift.trees, model.source_values, strict=True))
    for fold in resume.data.get("parts", []):
        own = tuple(tree.nodes for tree in islice(ratio, fold["ratio"]))
        pairs = list(islice(shift, fold["shift"]))
        integrals = tuple(Integrals.from_dict(one, n_sources) for one in fold["integrals"])
        folds.append(
            FoldTrees(own, tuple(tree.nodes for tree, _ in pairs), tuple(array for _, array in pairs), integrals)
        )
    return folds
