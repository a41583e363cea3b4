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
from qbdt.training.model import End, Ending, TrainedModel, require_resumable
from qbdt.training.monitor import Monitor, TreeReport
from qbdt.training.partitions.events import PartitionedEvents, place_events
from qbdt.training.profile.combination import Combination, FoldTrees, best_number, combine
from qbdt.training.profile.expectation import SHARES, choose_share, expect_result
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.ratio import fit_ratio
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.shifts import fit_shifts
from qbdt.training.settings import Settings
from qbdt.trees import Binning, Ensemble, Tree
from qbdt.trees.device import open_device

__all__ = ["train_profiled"]


def train_profiled(
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
    """Train the profiled method; the arguments are those of `qbdt.training.train`.

    The events are divided into five inner folds, or fewer where they do not fill five: `data["inner_folds"]` then says
    how many, and 1 that nothing is held out. For each, F and the shifts are fitted on the other four, and stop
    growing where the held-out fold says so; the sums of the five are averaged, and combined to the score that is best
    for all held-out events together. So it takes no validation sample. `checkpoint` is called after every finished
    fold, and `resume` takes over finished folds. Interrupting with Ctrl-C returns the model of the finished folds, or F
    so far where there is none.
    """
    monitor = monitor or Monitor()
    if monitor.validation is not None:
        raise ConfigError(
            "method='profile' holds out events itself and stops where these say so: give no validation sample"
        )
    end = End()
    with Workers(n_threads) as workers:
        events = ProfiledEvents(place_events(dataset, workers, open_device(device)), settings, workers)
        state = _Profiling(events, settings, workers, monitor, resume)
        with progress("training", state.most_trees) as advance:
            state.advance = advance
            advance(len(state.folds) * state.most_trees // events.n_folds)
            try:
                while len(state.folds) < events.n_folds:
                    state.fit_fold()
                    if checkpoint is not None and len(state.folds) < events.n_folds:
                        checkpoint(state.result(state.end(Ending.INTERRUPTED)))
            except KeyboardInterrupt:
                end = state.end(Ending.INTERRUPTED)
            except _StoppedByCallback:
                end = state.end(Ending.STOPPED_EARLY)
        return state.result(end)


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
        self.categories = events.binning.categories_by_number
        self.folds = _resume_folds(resume, events.binning, settings, events.data, len(events.sources))
        self.unfinished: list[Nodes] = []
        self.n_trees = 0
        self.advance: Callable[[int], None] = lambda n: None
        monitor.start(events.features)

    @property
    def most_trees(self) -> int:
        """Trees of all folds and both sums, if none stops early."""
        return self.events.n_folds * self.settings.n_trees * (1 + bool(self.events.sources))

    def fit_fold(self) -> None:
        """Fit both sums of trees without the next fold."""
        number, before = len(self.folds), self.n_trees
        self.unfinished = []
        given = (self.settings, self.workers)
        ratio = fit_ratio(self.events, number, *given, self._note_ratio_tree)
        shifts = fit_shifts(self.events, number, self._ratio(ratio), *given, self._note_tree)
        self.folds.append(FoldTrees(ratio, shifts.trees, shifts.values, shifts.integrals))
        self.advance(self.most_trees // self.events.n_folds - (self.n_trees - before))

    def _note_ratio_tree(self, nodes: Nodes) -> None:
        self.unfinished.append(nodes)
        self._note_tree(nodes)

    def _note_tree(self, nodes: Nodes) -> None:
        self.advance(1)
        report = TreeReport(self.n_trees, self.most_trees, Tree(nodes, 1.0, self.categories))
        self.n_trees += 1
        if self.monitor.judge(report, self.events.features, self.workers.n_threads):
            raise _StoppedByCallback

    def _ratio(self, trees: Sequence[Nodes]) -> ProfiledEnsemble:
        """Return the model of the first sum of trees alone."""
        features = self.events.features
        ratio = Ensemble(features, tuple(Tree(nodes, 1.0, self.categories) for nodes in trees))
        return ProfiledEnsemble(ratio, Ensemble(features, ()), self.events.log_odds)

    def end(self, how: Ending) -> End:
        return End(how, f"{len(self.folds)} of {self.events.n_folds} folds")

    def result(self, end: End) -> TrainedModel:
        events = self.events
        if not self.folds:
            return TrainedModel(self._ratio(self.unfinished), events.binning, self.settings, (), end, events.data)
        names = (events.features, events.sources, events.log_odds)
        folds, expected = self.folds, None
        if len(folds) == events.n_folds:
            number = best_number(self.folds)
            folds = [fold.with_shifts(number) for fold in self.folds]
            combination = Combination.of(folds, events.n_folds)
            models = [combine([fold], combination, *names, categories=self.categories) for fold in folds]
            judged = (events.sources, combination.pulls)
            share, expected = choose_share(events.build_score_rows(models, SHARES), *judged)
            if events.is_smoothed:  # a fit has the weights as given
                expected = expect_result(events.build_score_rows(models, (0.0, share), as_given=True), *judged)
            won = expected.sigma_full**-2 - expected.unprofiled**-2
            information = (expected.sigma_stat**-2, won)
            model = combine(folds, combination.times(share), *names, information, self.categories)
        else:
            model = combine(folds, Combination.of(folds, events.n_folds), *names, categories=self.categories)
        known = [  # the file format calls folds "parts"
            {"ratio": len(fold.ratio), "shift": len(fold.shift), "integrals": [one.to_dict() for one in fold.integrals]}
            for fold in folds
        ]
        return TrainedModel(model, events.binning, self.settings, (), end, {**events.data, "parts": known}, expected)


def _resume_folds(
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
