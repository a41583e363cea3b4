"""The profiled training: both sums of trees on each fold of the events, then the best combination of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from qbdt.training.profile.combination import Combination, best_number, combine
from qbdt.training.profile.expectation import SHARES, choose_share, expect_result
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.ratio import FittedRatio, choose_size, fit_ratio
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.shifts import FittedShifts, fit_shifts
from qbdt.training.settings import Settings
from qbdt.trees import Tree

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
) -> TrainedModel:
    """Train the profiled method; the arguments are those of `qbdt.training.train`.

    The events are divided into five inner folds, or fewer where they do not fill five: `data["inner_folds"]` then says
    how many, and 1 that nothing is held out. For each, F is fitted on the other four; all held-out events together say
    how many of its trees are taken. Then the shifts of each are fitted, and stop growing where the held-out fold says
    so. The sums of the five are averaged, and combined to the score that is best for all held-out events together. So
    it takes no validation sample. `checkpoint` is called after every finished sum, and `resume` takes over finished
    ones. Interrupting with Ctrl-C returns the model of the finished sums, or F so far where there is none.
    """
    monitor = monitor or Monitor()
    if monitor.validation is not None:
        raise ConfigError(
            "method='profile' holds out events itself and stops where these say so: give no validation sample"
        )
    end = End()
    with Workers(n_threads) as workers:
        events = ProfiledEvents(place_events(dataset, workers), settings, workers)
        state = _Profiling(events, settings, workers, monitor, resume)
        with progress("training", state.most_trees) as advance:
            state.advance = advance
            advance(state.n_done * settings.n_trees)
            try:
                while not state.is_complete:
                    state.fit_next()
                    if checkpoint is not None and not state.is_complete:
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
        if resume is not None:
            require_resumable(resume, events.binning, settings, events.data)
        self.ratios, self.shifts = _resume(resume, settings, events)
        self.unfinished: list[Nodes] = []
        self.n_trees = 0
        self.advance: Callable[[int], None] = lambda n: None
        monitor.start(events.features)

    @property
    def most_trees(self) -> int:
        """Trees of all folds and both sums, if none stops early."""
        return self.events.n_folds * self.settings.n_trees * (1 + bool(self.events.sources))

    @property
    def n_done(self) -> int:
        """Finished sums of trees, of both kinds."""
        return len(self.ratios) + len(self.shifts) * bool(self.events.sources)

    @property
    def is_complete(self) -> bool:
        """Whether all sums are finished."""
        return len(self.shifts) == self.events.n_folds

    def fit_next(self) -> None:
        """Fit the next sum: F without each of the folds, then the shifts without each of them."""
        before, done = self.n_trees, self.n_done
        given = (self.settings, self.workers)
        if len(self.ratios) < self.events.n_folds:
            self.unfinished = []
            self.ratios.append(fit_ratio(self.events, len(self.ratios), *given, self._note_ratio_tree))
        else:
            number = len(self.shifts)
            model = self._ratio([self.chosen_ratios[number]])
            self.shifts.append(fit_shifts(self.events, number, model, *given, self._note_tree))
        self.advance((self.n_done - done) * self.settings.n_trees - (self.n_trees - before))

    @property
    def chosen_ratios(self) -> list[tuple[Nodes, ...]]:
        """Trees of F of the finished folds: where all are, as many of each as held-out events ask for."""
        finished = len(self.ratios) == self.events.n_folds
        size = choose_size(self.ratios) if finished else None
        return [ratio.trees[:size] for ratio in self.ratios]

    @property
    def chosen_shifts(self) -> list[FittedShifts]:
        """Shifts of the finished folds: where all are, as many trees of each as is best for all of them together."""
        number = best_number(self.shifts) if self.is_complete else None
        return self.shifts if number is None else [fold.cut(number) for fold in self.shifts]

    def _note_ratio_tree(self, nodes: Nodes) -> None:
        self.unfinished.append(nodes)
        self._note_tree(nodes)

    def _note_tree(self, nodes: Nodes) -> None:
        self.advance(1)
        report = TreeReport(self.n_trees, self.most_trees, Tree(nodes, 1.0, self.categories))
        self.n_trees += 1
        if self.monitor.judge(report, self.events.features, self.workers.n_threads):
            raise _StoppedByCallback

    def _ratio(self, ratios: Sequence[Sequence[Nodes]]) -> ProfiledEnsemble:
        """Return the model of the first sum of trees alone."""
        none = Combination(np.zeros(0), np.zeros(0))
        return combine(ratios, (), none, self.events.features, (), self.events.log_odds, categories=self.categories)

    def end(self, how: Ending) -> End:
        n_sums = self.events.n_folds * (1 + bool(self.events.sources))
        return End(how, f"{self.n_done} of {n_sums} sums of trees")

    def result(self, end: End) -> TrainedModel:
        """Return the model of the finished sums, or of F so far; its `parts` are what a training goes on with."""
        events, expected = self.events, None
        if not self.ratios:
            model = self._ratio([self.unfinished])
        elif not self.shifts:
            model = self._ratio(self.chosen_ratios)
        elif not self.is_complete:
            model = self._combine(self.chosen_ratios, self.shifts, Combination.of(self.shifts, events.n_folds))
        else:
            model, expected = self._finish()
        return TrainedModel(
            model, events.binning, self.settings, (), end, {**events.data, "parts": self._parts()}, expected
        )

    def _combine(
        self,
        ratios: Sequence[Sequence[Nodes]],
        folds: Sequence[FittedShifts],
        combination: Combination,
        information: tuple[float, float] | None = None,
    ) -> ProfiledEnsemble:
        names = (self.events.features, self.events.sources, self.events.log_odds)
        return combine(ratios, folds, combination, *names, information, self.categories)

    def _finish(self) -> tuple[ProfiledEnsemble, Expectation]:
        """Return the best combination of all sums, and the result to expect of it."""
        events, ratios, folds = self.events, self.chosen_ratios, self.chosen_shifts
        combination = Combination.of(folds, events.n_folds)
        models = [self._combine([ratio], [fold], combination) for ratio, fold in zip(ratios, folds, strict=True)]
        judged = (events.sources, combination.pulls)
        share, expected = choose_share(events.build_score_rows(models, SHARES), *judged)
        if events.is_smoothed:  # a fit has the weights as given
            expected = expect_result(events.build_score_rows(models, (0.0, share), as_given=True), *judged)
        won = expected.sigma_full**-2 - expected.unprofiled**-2
        information = (expected.sigma_stat**-2, won)
        return self._combine(ratios, folds, combination.times(share), information), expected

    def _parts(self) -> list[dict[str, Any]]:
        """Describe what is finished of each fold, for the model file, whose format calls folds "parts"."""
        parts: list[dict[str, Any]] = [
            {"ratio": len(own), "looks": [list(look) for look in fitted.looks.items()]}
            for own, fitted in zip(self.chosen_ratios, self.ratios, strict=True)
        ]
        for part, fold in zip(parts, self.chosen_shifts, strict=False):
            part |= {"shift": len(fold.trees), "integrals": [one.to_dict() for one in fold.integrals]}
        return parts


def _resume(
    resume: TrainedModel | None, settings: Settings, events: ProfiledEvents
) -> tuple[list[FittedRatio], list[FittedShifts]]:
    """Return the finished sums of an earlier training."""
    if resume is None:
        return [], []
    assert isinstance(resume.ensemble, ProfiledEnsemble)
    if resume.settings.n_trees != settings.n_trees:
        raise DataError("cannot resume: the sums of a profiled training stop by themselves; n_trees must be the same")
    model, ratios, folds = resume.ensemble, [], []
    ratio, shift = iter(model.ratio.trees), iter(zip(model.shift.trees, model.source_values, strict=True))
    for part in resume.data.get("parts", []):
        if "looks" not in part:
            raise DataError("cannot resume: the model was trained by an earlier release, which chose trees otherwise")
        ratios.append(FittedRatio(tuple(tree.nodes for tree in islice(ratio, part["ratio"])), dict(part["looks"])))
        if "shift" in part:
            pairs = list(islice(shift, part["shift"]))
            integrals = tuple(Integrals.from_dict(one, len(events.sources)) for one in part["integrals"])
            folds.append(
                FittedShifts(tuple(tree.nodes for tree, _ in pairs), tuple(array for _, array in pairs), integrals)
            )
    return ratios, folds
