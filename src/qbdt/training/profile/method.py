"""The profiled training: both sums of trees on each fold of the events, then the best combination of all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

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
from qbdt.training.profile.combination import BestNumber, Combination, ModelFrame, best_number, combine_folds
from qbdt.training.profile.expectation import ALL, SHARES, choose_share, expect_result
from qbdt.training.profile.folds_at_once import fit_at_once
from qbdt.training.profile.integrals import Integrals
from qbdt.training.profile.joint_end import JointEnd
from qbdt.training.profile.parameters import Parameters, free_normalisations
from qbdt.training.profile.profiled_events import ProfiledEvents
from qbdt.training.profile.ratio import FittedRatio, choose_size, end_together, fit_ratio, is_joint_end
from qbdt.training.profile.shifts import FittedShifts, fit_shifts
from qbdt.training.profile.sums_of_trees import SumsOfTrees, TermScorer
from qbdt.training.profile.turns import Turns
from qbdt.training.settings import Settings
from qbdt.trees import Tree
from qbdt.trees.device import DeviceMemory, open_device

Result = TypeVar("Result")


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
        given = _add_free(dataset, settings.free)
        memory = DeviceMemory.of(open_device(device))
        events = ProfiledEvents(place_events(given, workers, memory), settings, workers)
        state = _Profiling(events, settings, workers, monitor, resume, memory)
        with progress("training", state.most_trees) as advance:
            state.advance = advance
            advance(state.n_done * settings.n_trees)
            try:
                for _ in state.fit():
                    if checkpoint is not None and not state.is_complete:
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
        memory: DeviceMemory | None,
    ) -> None:
        self.events = events
        self.settings = settings
        self.workers = workers
        self.monitor = monitor
        self.parameters = events.parameters
        self.frame = ModelFrame(events.features, self.parameters, events.log_odds, events.binning.categories_by_number)
        self.judging = self.frame if memory is None else replace(self.frame, judging=(memory, events.binning))
        if resume is not None:
            require_resumable(resume, events.binning, settings, events.data)
        # Finished sums of trees: F of the first fold for each strength, of the second …; then the shifts by fold
        self.ratios, self.shifts = _resume(resume, settings, self.parameters)
        self.unfinished: list[Nodes] = []
        self.n_trees = 0
        self.lock, self.turns = threading.Lock(), Turns()
        self.advance: Callable[[int], None] = lambda n: None
        monitor.start(events.features)

    @property
    def n_strengths(self) -> int:
        """Number of strengths, each of which has an F."""
        return len(self.parameters.strengths)

    @property
    def n_sums(self) -> int:
        """Sums of trees in all."""
        return self.events.n_folds * (self.n_strengths + bool(self.events.sources))

    @property
    def n_done(self) -> int:
        """Finished sums of trees, of both kinds."""
        return len(self.ratios) + len(self.shifts) * bool(self.events.sources)

    @property
    def most_trees(self) -> int:
        """Trees of all sums, if none stops early."""
        return self.n_sums * self.settings.n_trees

    @property
    def is_complete(self) -> bool:
        """Whether all sums are finished."""
        return len(self.shifts) == self.events.n_folds

    def fit(self) -> Iterator[None]:
        """Fit what is missing: F without each of the folds, then the shifts without each of them; pause after each."""
        for ratio in self._fit_at_once(self._ratio_jobs()):
            self.ratios.append(ratio)
            self._skip_trees(len(ratio.trees))
            yield
        for strength in range(self.n_strengths):
            own = slice(strength, None, self.n_strengths)
            self.ratios[own] = end_together(self.ratios[own])
        for shifts in self._fit_at_once(self._shift_jobs()):
            self.shifts.append(shifts)
            self._skip_trees(len(shifts.trees) if self.events.sources else self.settings.n_trees)
            yield

    def _ratio_jobs(self) -> list[Callable[[ProfiledEvents, Workers], FittedRatio]]:
        n, n_folds = self.n_strengths, self.events.n_folds
        looks = [{fold: one.looks for fold, one in enumerate(self.ratios[strength::n])} for strength in range(n)]
        ends = [JointEnd(n_folds, is_joint_end, own) for own in looks]
        jobs: list[Callable[[ProfiledEvents, Workers], FittedRatio]] = []
        for number in range(len(self.ratios), n_folds * n):
            fold, strength = divmod(number, n)
            note = self._note_tree if number else self._note_first_ratio
            jobs.append(partial(fit_ratio, strength, fold, self.settings, note, ends[strength]))
        return jobs

    def _shift_jobs(self) -> list[Callable[[ProfiledEvents, Workers], FittedShifts]]:
        chosen, n_folds = self.chosen_ratios, self.events.n_folds
        finished: dict[int, Sequence[Integrals]] = {fold: one.integrals for fold, one in enumerate(self.shifts)}
        end = JointEnd(n_folds, BestNumber(self.parameters).is_end, finished)
        pending = range(len(self.shifts), n_folds)
        ratios = {fold: self.judging.make_ratios(chosen[fold]) for fold in pending}
        return [partial(fit_shifts, fold, own, self.settings, self._note_tree, end) for fold, own in ratios.items()]

    def _fit_at_once(self, jobs: Sequence[Callable[[ProfiledEvents, Workers], Result]]) -> Iterator[Result]:
        """Do jobs at the same time, or one after the other where callbacks want to see every tree in order."""
        return fit_at_once(self.events, self.workers, jobs, self.turns, in_order=bool(self.monitor.callbacks))

    def _skip_trees(self, n_grown: int) -> None:
        """Let progress jump over trees that a finished sum does not need."""
        with self.lock:
            self.advance(self.settings.n_trees - n_grown)

    @property
    def chosen_ratios(self) -> list[list[tuple[Nodes, ...]]]:
        """Trees of F of the finished folds, for each strength: where all are, as many as held-out events ask for."""
        n, finished = self.n_strengths, len(self.ratios) == self.events.n_folds * self.n_strengths
        sizes = [choose_size(self.ratios[strength::n]) if finished else None for strength in range(n)]
        trees = [fitted.trees[: sizes[i % n]] for i, fitted in enumerate(self.ratios)]
        return [trees[i : i + n] for i in range(0, len(trees), n)]

    @property
    def chosen_shifts(self) -> list[FittedShifts]:
        """Shifts of the finished folds: where all are, as many trees of each as is best for all of them together."""
        number = best_number(self.shifts, self.parameters) if self.is_complete else None
        return self.shifts if number is None else [fold.cut(number) for fold in self.shifts]

    def _note_first_ratio(self, nodes: Nodes) -> None:
        self.unfinished.append(nodes)
        self._note_tree(nodes)

    def _note_tree(self, nodes: Nodes) -> None:
        self.turns.note_tree()
        with self.lock:
            self.advance(1)
            report = TreeReport(self.n_trees, self.most_trees, Tree(nodes, 1.0, self.frame.categories))
            self.n_trees += 1
            if self.monitor.judge(report, self.events.features, self.workers.n_threads):
                raise _StoppedByCallback

    def end(self, how: Ending) -> End:
        return End(how, f"{self.n_done} of {self.n_sums} sums of trees")

    def result(self, end: End) -> TrainedModel:
        """Return the model of the finished sums, or of F so far; a training goes on with its `parts`."""
        events, ratios, shifts = self.events, self.chosen_ratios, self.chosen_shifts
        expected: tuple[Expectation, ...] = ()
        if not self.shifts:
            trees = ratios or [[tuple(self.unfinished)]]
            model = combine_folds(trees, (), Combination.without_shifts(self.parameters), self.frame)
        else:
            combination, information = Combination.of(shifts, events.n_folds, self.parameters), None
            if self.is_complete:
                shares, expected = self._expect(ratios, shifts, combination)
                won = expected[0].sigma_full ** -2 - expected[0].unprofiled ** -2
                information = (expected[0].sigma_stat ** -2, won)
                combination = combination.times(shares)
            model = combine_folds(ratios, shifts, combination, self.frame, information)
        data = {**events.data, "parts": self._parts()}
        return TrainedModel(model, events.binning, self.settings, (), end, data, expected)

    def _parts(self) -> list[dict[str, Any]]:
        """Describe what is finished of each fold, for the model file, whose format calls folds "parts"."""
        looks = [[list(look) for look in fitted.looks.items()] for fitted in self.ratios]
        parts: list[dict[str, Any]] = []
        for fold, trees in enumerate(self.chosen_ratios):
            counts = [len(own) for own in trees]
            first = fold * self.n_strengths
            own_looks = looks[first : first + len(trees)]
            parts.append({"ratio": counts if self.n_strengths > 1 else counts[0], "looks": own_looks})
        for part, own in zip(parts, self.chosen_shifts, strict=False):
            part |= {"shift": len(own.trees), "integrals": [one.to_dict() for one in own.integrals]}
        return parts

    def _expect(
        self, ratios: Sequence[Sequence[Sequence[Nodes]]], shifts: Sequence[FittedShifts], combination: Combination
    ) -> tuple[list[float], tuple[Expectation, ...]]:
        """Share of the shifts' coefficients of each score, and the result to expect of it."""
        folds = zip(ratios, shifts, strict=True)
        models = [combine_folds([ratio], [shift], combination, self.judging) for ratio, shift in folds]
        shares, expected = [], []
        for number in range(len(self.parameters.interest)):
            share, expectation = self._expect_score(
                [model.of_parameter(number) for model in models], number, combination
            )
            shares.append(share)
            expected.append(expectation)
        return shares, tuple(expected)

    def _expect_score(
        self, models: Sequence[TermScorer], number: int, combination: Combination
    ) -> tuple[float, Expectation]:
        parameter, events = self.parameters.interest[number], self.events
        judged = (self.parameters, number, combination.pulls[number])
        tried = ALL if parameter >= len(self.parameters.strengths) else SHARES
        share, expected = choose_share(events.build_score_rows(models, tried), tried, *judged)
        if events.is_smoothed:  # a fit has the weights as given
            both = (tried[0], share)
            expected = expect_result(events.build_score_rows(models, both, as_given=True), *judged)
        return share, expected


def _resume(
    resume: TrainedModel | None, settings: Settings, parameters: Parameters
) -> tuple[list[FittedRatio], list[FittedShifts]]:
    """Return the finished sums of an earlier training."""
    if resume is None:
        return [], []
    assert isinstance(resume.ensemble, SumsOfTrees)  # as its settings say
    if resume.settings.n_trees != settings.n_trees:
        raise DataError("cannot resume: the sums of a profiled training stop by themselves; n_trees must be the same")
    model, ratios, folds = resume.ensemble, [], []
    sums = [iter(one.trees) for one in [*model.sums.values()][:-1]]
    shift = iter(zip(model.shift.trees, model.source_values, strict=True))
    sizes = (len(parameters.sources), len(parameters.strengths))
    for part in resume.data.get("parts", []):
        if "looks" not in part:
            raise DataError("cannot resume: the model was trained by an earlier release, which chose trees otherwise")
        own = zip(sums, np.atleast_1d(part["ratio"]).tolist(), part["looks"], strict=False)
        ratios += [FittedRatio(tuple(tree.nodes for tree in islice(trees, n)), dict(looks)) for trees, n, looks in own]
        if "shift" in part:
            pairs = list(islice(shift, part["shift"]))
            integrals = tuple(Integrals.from_dict(one, *sizes) for one in part["integrals"])
            trees = tuple(tree.nodes for tree, _ in pairs)
            folds.append(FittedShifts(trees, tuple(array for _, array in pairs), integrals))
    return ratios, folds
