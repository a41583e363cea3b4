"""Compare methods on the events of an analysis: the same folds, the same rule of bins, the same fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from qbdt.data import Dataset
from qbdt.errors import ConfigError, FitError
from qbdt.progress import Progress, silent
from qbdt.statistics import FittedSensitivity
from qbdt.studies.comparison.contestants import LEAVE_OUT, get_contestant
from qbdt.studies.comparison.nested_training import (
    Cache,
    CrossTraining,
    assemble_scores,
    choose_settings,
    judge_settings,
    score_fold,
)
from qbdt.studies.comparison.plan import Plan, PlannedEvents
from qbdt.studies.comparison.score_sensitivity import measure_fit
from qbdt.studies.worker_pool import run_tasks

TRAININGS = "trainings"
"""Folder, inside of that of the comparison, of judged candidates and of scores."""


class ComparisonTask(NamedTuple):
    """A candidate to judge, or an outer fold to score, of one contestant on one division."""

    kind: str  # "tuning" or "training"
    contestant: str
    division: int
    number: int


@dataclass(frozen=True)
class Entry:
    """One contestant on one division."""

    contestant: str
    division: int
    result: FittedSensitivity
    seconds: float  # CPU time of the trainings of all folds
    settings: tuple[dict[str, Any], ...]  # Chosen for each fold

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "result": {**asdict(self.result), "delta_mu": self.result.delta_mu}}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Entry:
        """Inverse of `to_dict`."""
        result = FittedSensitivity(**{key: value for key, value in plain["result"].items() if key != "delta_mu"})
        return cls(**{**plain, "result": result, "settings": tuple(plain["settings"])})


@dataclass(frozen=True)
class Comparison:
    """Results of all contestants, the best first."""

    name: str  # Of the analysis
    entries: tuple[Entry, ...]  # Each contestant on each division
    # Events with the out-of-fold scores of the best contestant on the first division; None where results were read
    scored: Dataset | None = field(repr=False)
    # repeat, folds: divisions, and outer folds of each
    repeat: int
    folds: int
    releases: dict[str, str]  # Package and version of each contestant

    @property
    def contestants(self) -> list[str]:
        """Names, from the smallest σ_μ with systematics."""
        names = dict.fromkeys(entry.contestant for entry in self.entries)
        return sorted(names, key=lambda name: self.mean(name, "sigma_full"))

    @property
    def winner(self) -> str:
        """Contestant with the smallest σ_μ with systematics."""
        return self.contestants[0]

    @property
    def best_of_ours(self) -> str | None:
        """The best of this package's methods that took part."""
        return next((name for name in self.contestants if get_contestant(name).ours), None)

    @property
    def best_peer(self) -> str | None:
        """The best of the others that took part."""
        return next((name for name in self.contestants if not get_contestant(name).ours), None)

    def values(self, contestant: str, quantity: str) -> list[float]:
        """Return one number of a contestant on each division: an attribute of `FittedSensitivity`, or seconds."""
        own = [entry for entry in self.entries if entry.contestant == contestant]
        return [entry.seconds if quantity == "seconds" else getattr(entry.result, quantity) for entry in own]

    def mean(self, contestant: str, quantity: str) -> float:
        """Mean over divisions."""
        return float(np.mean(self.values(contestant, quantity)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "winner": self.winner,
            "folds": self.folds,
            "repeat": self.repeat,
            "releases": self.releases,
            "entries": [entry.to_dict() for entry in self.entries],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Comparison:
        """Make a comparison of what `to_dict` wrote, without events."""
        entries = tuple(Entry.from_dict(entry) for entry in plain["entries"])
        return cls(plain["name"], entries, None, plain["repeat"], plain["folds"], plain["releases"])


def compare_methods(plan: Plan, folder: Path, n_jobs: int | None = None, progress: Progress = silent) -> Comparison:
    """Tune, train, score and fit each contestant of a plan.

    Trainings are kept in `folder`: what was done is not done again. Each of `n_jobs` processes, one for each core by
    default, trains on one thread.
    """
    if n_jobs is not None and n_jobs < 1:
        raise ConfigError(f"jobs={n_jobs}: must be at least 1")
    events, cache = PlannedEvents(plan), Cache(folder / TRAININGS)
    jobs = n_jobs or os.cpu_count() or 1
    tuned = [
        ComparisonTask("tuning", name, division, number)
        for division in range(plan.repeat)
        for name in plan.contestants
        for number in range(len(plan.contestant(name).candidates(plan.budget)))
        if len(plan.contestant(name).candidates(plan.budget)) > 1
    ]
    trained = [
        ComparisonTask("training", name, division, fold)
        for division in range(plan.repeat)
        for name in plan.contestants
        for fold in range(events.division(division)[0].outer)
    ]
    for tasks in (tuned, trained):
        _do_all(tasks, plan, cache, jobs, progress)
    return _collect(plan, events, cache)


def _do_all(tasks: Sequence[ComparisonTask], plan: Plan, cache: Cache, n_jobs: int, progress: Progress) -> None:
    if not tasks:
        return
    with progress(tasks[0].kind, len(tasks)) as advance:
        for _ in run_tasks(partial(_do, plan, cache), tasks, partial(PlannedEvents, plan), n_jobs):
            advance(1)


def _do(plan: Plan, cache: Cache, task: ComparisonTask, events: PlannedEvents) -> None:
    """Do one task; its result stays in the cache."""
    division, key = events.division(task.division)
    contestant = events.contestant(task.contestant)
    if task.kind == "tuning":
        judge_settings(contestant, division, key, contestant.candidates(plan.budget)[task.number], cache)
    else:
        settings = choose_settings(contestant, division, key, plan.budget, cache)
        score_fold(contestant, division, key, settings[task.number], task.number, cache)


def _collect(plan: Plan, events: PlannedEvents, cache: Cache) -> Comparison:
    entries = tuple(
        _measure(plan, events, cache, name, number) for number in range(plan.repeat) for name in plan.contestants
    )
    releases = {name: plan.contestant(name).release for name in plan.contestants}
    found = Comparison(plan.analysis.name, entries, events.data, plan.repeat, events.division(0)[0].outer, releases)
    return replace(found, scored=_gather_scores(plan, events, cache, found.winner, 0).scored)


def _measure(plan: Plan, events: PlannedEvents, cache: Cache, name: str, number: int) -> Entry:
    outcome = _gather_scores(plan, events, cache, name, number)
    chosen = tuple(dict(settings) for settings in outcome.settings)
    try:
        result = measure_fit(outcome.scored, plan.fit)
    except FitError as error:
        raise FitError(f"{name}: its scores cannot be fitted ({error}); {LEAVE_OUT}") from error
    return Entry(name, number, result, outcome.seconds, chosen)


def _gather_scores(plan: Plan, events: PlannedEvents, cache: Cache, name: str, number: int) -> CrossTraining:
    """Out-of-fold scores of one contestant on one division, all of which are in the cache."""
    division, key = events.division(number)
    contestant = events.contestant(name)
    settings = choose_settings(contestant, division, key, plan.budget, cache)
    return assemble_scores(contestant, division, key, settings, cache)
