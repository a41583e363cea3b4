"""The profiled training: both sums of trees on each fold of the events, then the best combination of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from qbdt.arrays import Nodes
from qbdt.data import Dataset
from qbdt.errors import ConfigError, DataError
from qbdt.progress import Progress, silent
from qbdt.statistics import Expectation
from qbdt.threads import Workers
from qbdt.training.model import End, Ending, TrainedModel, require_resumable
from qbdt.training.monitor import Monitor, TreeReport
from qbdt.training.partitions.events import PartitionedEvents, place_events
from qbdt.training.profile.combination import Combination, FoldTrees, ModelFrame, best_number, combine
from qbdt.training.profile.efficient_scores import EfficientScores
from qbdt.training.profile.expectation import ALL, SHARES, choose_share, expect_result
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.parameters import Parameters, free_normalisations
from qbdt.training.profile.profiled_events import ProfiledEvents, Scorer
from qbdt.training.profile.ratio import fit_ratio
from qbdt.training.profile.ratios import Ratios
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.shifts import fit_shifts
from qbdt.training.settings import Settings
from qbdt.trees import Binning, Tree
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
        given = _add_free(dataset, settings.free)
        events = ProfiledEvents(place_events(given, workers, open_device(device)), settings, workers)
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


def _add_free(dataset: Dataset | PartitionedEvents, processes: Sequence[str]) -> Dataset | PartitionedEvents:
    """Add a source for each free normalisation."""
    change = partial(free_normalisations, processes=processes)
    if not processes:
        return dataset
    return change(dataset) if isinstance(dataset, Dataset) else dataset.map(change)


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
        self.parameters = events.parameters
        self.frame = ModelFrame(events.features, self.parameters, events.log_odds, events.binning.categories_by_number)
        self.folds = _resume_folds(resume, events.binning, settings, events.data, self.parameters)
        self.unfinished: list[list[Nodes]] = []
        self.n_trees = 0
        self.advance: Callable[[int], None] = lambda n: None
        monitor.start(events.features)

    @property
    def most_trees(self) -> int:
        """Trees of all folds and all sums, if none stops early."""
        n_sums = len(self.parameters.strengths) + bool(self.events.sources)
        return self.events.n_folds * self.settings.n_trees * n_sums

    def fit_fold(self) -> None:
        """Fit all sums of trees without the next fold."""
        number, before = len(self.folds), self.n_trees
        self.unfinished = []
        given = (self.settings, self.workers)
        ratios = []
        for strength in range(len(self.parameters.strengths)):
            self.unfinished.append([])
            ratios.append(fit_ratio(self.events.of_strength(strength), number, *given, self._note_ratio_tree))
        shifts = fit_shifts(self.events, number, self._ratios(ratios), *given, self._note_tree)
        self.folds.append(FoldTrees(tuple(ratios), shifts.trees, shifts.values, shifts.integrals))
        self.advance(self.most_trees // self.events.n_folds - (self.n_trees - before))

    def _note_ratio_tree(self, nodes: Nodes) -> None:
        self.unfinished[-1].append(nodes)
        self._note_tree(nodes)

    def _note_tree(self, nodes: Nodes) -> None:
        self.advance(1)
        report = TreeReport(self.n_trees, self.most_trees, Tree(nodes, 1.0, self.frame.categories))
        self.n_trees += 1
        if self.monitor.judge(report, self.events.features, self.workers.n_threads):
            raise _StoppedByCallback

    def _ratios(self, trees: Sequence[Sequence[Nodes]]) -> Ratios:
        """Return the sums of trees of each strength's F."""
        return Ratios(tuple(self.frame.make_ensemble(own) for own in trees), self.frame.log_odds)

    def _unfinished_model(self) -> ProfiledEnsemble:
        """Return the model of the first F so far alone."""
        trees = self.unfinished[0] if self.unfinished else []
        return ProfiledEnsemble(self.frame.make_ensemble(trees), self.frame.make_ensemble(()), self.frame.log_odds[0])

    def end(self, how: Ending) -> End:
        return End(how, f"{len(self.folds)} of {self.events.n_folds} folds")

    def result(self, end: End) -> TrainedModel:
        events = self.events
        if not self.folds:
            return TrainedModel(self._unfinished_model(), events.binning, self.settings, (), end, events.data)
        folds = self.folds
        expected: tuple[Expectation, ...] = ()
        if len(folds) == events.n_folds:
            number = best_number(self.folds, self.parameters)
            folds = [fold.with_shifts(number) for fold in self.folds]
            combination = Combination.of(folds, events.n_folds, self.parameters)
            shares, expected = self._expect(folds, combination)
            won = expected[0].sigma_full ** -2 - expected[0].unprofiled ** -2
            information = (expected[0].sigma_stat ** -2, won)
            model = combine(folds, combination.times(shares), self.frame, information)
        else:
            model = combine(folds, Combination.of(folds, events.n_folds, self.parameters), self.frame)
        data = {**events.data, "parts": [_describe_fold(fold) for fold in folds]}
        return TrainedModel(model, events.binning, self.settings, (), end, data, expected)

    def _expect(
        self, folds: Sequence[FoldTrees], combination: Combination
    ) -> tuple[list[float], tuple[Expectation, ...]]:
        """Share of the shifts' coefficients of each score, and the result to expect of it."""
        models = [combine([fold], combination, self.frame) for fold in folds]
        shares, expected = [], []
        for number in range(len(self.parameters.interest)):
            share, expectation = self._expect_score(
                [_one_score(model, number) for model in models], number, combination
            )
            shares.append(share)
            expected.append(expectation)
        return shares, tuple(expected)

    def _expect_score(
        self, models: Sequence[Scorer], number: int, combination: Combination
    ) -> tuple[float, Expectation]:
        parameter, events = self.parameters.interest[number], self.events
        judged = (self.parameters, number, combination.pulls[number])
        tried = ALL if parameter >= len(self.parameters.strengths) else SHARES
        share, expected = choose_share(events.build_score_rows(models, tried), tried, *judged)
        if events.is_smoothed:  # a fit has the weights as given
            both = (tried[0], share)
            expected = expect_result(events.build_score_rows(models, both, as_given=True), *judged)
        return share, expected


def _one_score(model: ProfiledEnsemble | EfficientScores, number: int) -> Scorer:
    return model.of_parameter(number) if isinstance(model, EfficientScores) else model


def _describe_fold(fold: FoldTrees) -> dict[str, Any]:
    """Numbers of trees and integrals of one fold; the file format calls folds "parts"."""
    ratios: Any = [len(trees) for trees in fold.ratios]
    return {
        "ratio": ratios if len(ratios) > 1 else ratios[0],
        "shift": len(fold.shift),
        "integrals": [one.to_dict() for one in fold.integrals],
    }


def _resume_folds(
    resume: TrainedModel | None, binning: Binning, settings: Settings, data: Mapping[str, Any], parameters: Parameters
) -> list[FoldTrees]:
    """Return the finished folds of an earlier training."""
    if resume is None:
        return []
    require_resumable(resume, binning, settings, data)
    assert isinstance(resume.ensemble, ProfiledEnsemble | EfficientScores)
    if resume.settings.n_trees != settings.n_trees:
        raise DataError("cannot resume: the folds of a profiled training stop by themselves; n_trees must be the same")
    model, folds = resume.ensemble, []
    sums = [iter(one.trees) for one in (model.ratios if isinstance(model, EfficientScores) else (model.ratio,))]
    shift = iter(zip(model.shift.trees, model.source_values, strict=True))
    sizes = (len(parameters.sources), len(parameters.strengths))
    for fold in resume.data.get("parts", []):
        counts = np.atleast_1d(fold["ratio"]).tolist()
        own = tuple(tuple(tree.nodes for tree in islice(trees, n)) for trees, n in zip(sums, counts, strict=True))
        pairs = list(islice(shift, fold["shift"]))
        integrals = tuple(Integrals.from_dict(one, *sizes) for one in fold["integrals"])
        folds.append(
            FoldTrees(own, tuple(tree.nodes for tree, _ in pairs), tuple(array for _, array in pairs), integrals)
        )
    return folds
