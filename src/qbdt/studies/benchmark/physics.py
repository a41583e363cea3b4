"""`run_physics`: all problems, all contestants, the same folds; what is in the cache is not computed again."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from qbdt.data import Dataset, Role, Systematic
from qbdt.data.samples import inferno
from qbdt.errors import ConfigError
from qbdt.progress import Progress, silent
from qbdt.studies.benchmark.problems import (
    THIN,
    EventFolders,
    Problem,
    add_sources,
    get_problem,
    make_resampled_sources,
    make_shuffled_sources,
    make_tilted_sources,
    replace_by_idle_sources,
)
from qbdt.studies.benchmark.results import (
    ALL_SOURCES,
    BINNINGS,
    BINS,
    FitRecord,
    PhysicsResults,
    SyntheticRecord,
    TimeRecord,
)
from qbdt.studies.benchmark.synthetic import measure_exact, measure_synthetic
from qbdt.studies.comparison.contestants import OURS, Contestant, select_contestants
from qbdt.studies.comparison.nested_training import Cache, cross_train_tuned, judge_settings
from qbdt.studies.comparison.score_sensitivity import measure_scores
from qbdt.studies.worker_pool import run_tasks
from qbdt.trees.device import open_device

SYNTHETIC = "P1"
NO_SOURCES, IDLE = "no sources", "7 sources without effect"
REAL, NOISY = "25 real sources", "25 real and 25 noise sources"
CHECKS = ("without", "noise", "times")
"""Checks beside the problems: trainings without sources, with noise, and times against the number of sources."""


@dataclass(frozen=True)
class BenchmarkOptions:
    """Options of a run."""

    problems: tuple[str, ...]  # Names, of P1 … P5; P5 is all of `THIN`, which may be named alone
    contestants: tuple[str, ...] | None = None  # Names; None for all that are installed
    budget: int = 12  # Settings that tuning tries for every contestant
    seeds: int | None = None  # Divisions into folds; None for each problem's own number
    folders: EventFolders = field(default_factory=EventFolders)  # Of the public files and of a generated sample
    cache: Path = Path("qbdt-bench")  # Folder of results of earlier runs
    synthetic_events: int = 100_000  # Signal, and background, events that P1 trains on
    checks: tuple[str, ...] = CHECKS  # Of `CHECKS`
    # "cuda" for our own methods, whose results are the same there, and XGBoost on a GPU; times are those of the CPU
    device: str | None = None
    jobs: int = 1  # Processes that tune and train; results do not depend on it

    def select(self) -> list[Contestant]:
        """Return the contestants, where they work."""
        return select_contestants(self.contestants, self.device)

    @property
    def command(self) -> str:
        """Command line that measures the same again.

        Examples
        --------
        >>> BenchmarkOptions(("P4",), ("XGBoost", "qbdt profile"), budget=3, seeds=1, checks=()).command
        "qbdt bench physics -p P4 -c XGBoost -c 'qbdt profile' --budget 3 --seeds 1 --no-checks"
        """
        words = [word for name in self.problems for word in ("-p", name)]
        words += [word for name in self.contestants or () for word in ("-c", name)]
        words += ["--budget", str(self.budget)]
        words += ["--seeds", str(self.seeds)] * (self.seeds is not None)
        public = any(name.startswith(("P2", "P3")) for name in self.problems)
        words += ["--data", "FOLDER"] * (public and self.folders.data is not None)
        generated = self.folders.sample is not None and any(name.startswith("P4") for name in self.problems)
        words += ["--sample", "SAMPLE"] * generated
        words += ["--events", str(self.synthetic_events)] * (SYNTHETIC in self.problems)
        words += [word for name in self.checks for word in ("--check", name)] or ["--no-checks"]
        words += ["--device", str(self.device)] * (self.device is not None)
        return shlex.join(["qbdt", "bench", "physics", *words])

    def __post_init__(self) -> None:
        each = [THIN if name == "P5" else (name,) for name in self.problems]
        object.__setattr__(self, "problems", tuple(name for names in each for name in names))
        counts = {"budget": self.budget, "seeds": self.seeds, "events": self.synthetic_events, "jobs": self.jobs}
        for name, value in counts.items():
            if value is not None and value < 1:
                raise ConfigError(f"{name}={value}: must be at least 1")
        for name in self.problems:
            if name != SYNTHETIC:
                get_problem(name)
        unknown = [name for name in self.checks if name not in CHECKS]
        if unknown:
            raise ConfigError(f"no check {unknown[0]}; there are: {', '.join(CHECKS)}")
        select_contestants(self.contestants)
        open_device(self.device)  # says what is missing before events are read


def run_physics(options: BenchmarkOptions, progress: Progress = silent) -> PhysicsResults:
    """Run the benchmark; progress is told after every contestant on every division."""
    cache = Cache(options.cache)
    releases = {contestant.name: contestant.release for contestant in options.select()}
    found = PhysicsResults(command=options.command, budget=options.budget, releases=releases)
    for name in options.problems:
        if name == SYNTHETIC:
            records = tuple(_run_synthetic(options, cache, progress))
            found = replace(found, synthetic=records)
            continue
        problem = get_problem(name)
        data = problem.load(options.folders)
        fits, settings = _run_problem(problem, data, options, progress)
        titles = {**found.titles, name: f"{problem.title}: {_count_events(problem.division(data, 1).data)}"}
        found = replace(found, fits=(*found.fits, *fits), settings=(*found.settings, *settings), titles=titles)
    if "times" in options.checks and OURS in releases:
        found = replace(found, times=tuple(_measure_times(options, progress)))
    return found


def _run_synthetic(options: BenchmarkOptions, cache: Cache, progress: Progress) -> Iterator[SyntheticRecord]:
    contestants = options.select()
    seeds = range(1, (options.seeds or 1) + 1)
    n, budget = options.synthetic_events, options.budget
    with progress(SYNTHETIC, len(contestants) * len(seeds)) as advance:
        for seed in seeds:
            results = {"exact t* (true densities)": measure_exact(seed, n)}
            for contestant in contestants:
                results[contestant.name], _ = measure_synthetic(contestant, seed, n, budget, cache)
                if contestant.name == OURS and "without" in options.checks:
                    alone, _ = measure_synthetic(contestant, seed, n, budget, cache, sources=False)
                    results[f"{OURS}, {NO_SOURCES}"] = alone
                advance(1)
            for name, measured in results.items():
                for (binning, bins), sigma in measured.items():
                    yield SyntheticRecord(name, seed, binning, bins, tuple(sigma.tolist()))


class Trial(NamedTuple):
    """A contestant on a division: a candidate that is judged, or everything that is measured of one setup."""

    contestant: str
    seed: int
    setup: str = ALL_SOURCES  # or one of `CHECKS`
    candidate: int | None = None


Trials: TypeAlias = tuple[list[FitRecord], list[dict[str, Any]]]
"""Fits, and the settings that tuning chose."""


def _run_problem(problem: Problem, data: Dataset, options: BenchmarkOptions, progress: Progress) -> Trials:
    """Judge all candidates, then train and fit: by several processes, since each result is kept in the cache."""
    judged, measured = _list_trials(problem, options)
    run = partial(_run_trial, problem.name, options)
    load = (lambda: data) if options.jobs == 1 else partial(_load_again, problem.name, options.folders)
    found: dict[Trial, Trials] = {}
    with progress(problem.name, len(judged) + len(measured)) as advance:
        for trials in (judged, measured):
            for trial, result in run_tasks(run, trials, load, options.jobs):
                found[trial] = result
                advance(1)
    fits, settings = zip(*(found[trial] for trial in measured), strict=True)
    return [fit for each in fits for fit in each], [choice for each in settings for choice in each]


def _list_trials(problem: Problem, options: BenchmarkOptions) -> tuple[list[Trial], list[Trial]]:
    """Trials that judge candidates, and those that measure, for which all candidates must have been judged."""
    judged, measured = [], []
    for seed in range(1, (options.seeds or problem.seeds) + 1):
        for contestant in options.select():
            name, candidates = contestant.name, len(contestant.candidates(options.budget))
            judged += [Trial(name, seed, candidate=number) for number in range(candidates) if candidates > 1]
            measured.append(Trial(name, seed))
            if "without" in options.checks and (name == OURS or not contestant.ours):
                measured.append(Trial(name, seed, "without"))
            if "noise" in options.checks and problem.name == "P4" and name == OURS:
                measured.append(Trial(name, seed, "noise"))
    return judged, measured


def _load_again(problem: str, folders: EventFolders) -> Dataset:
    return get_problem(problem).load(folders)


def _run_trial(name: str, options: BenchmarkOptions, trial: Trial, data: Dataset) -> Trials:
    problem, cache, seed, budget = get_problem(name), Cache(options.cache), trial.seed, options.budget
    (contestant,) = select_contestants([trial.contestant], options.device)
    if trial.candidate is not None:
        division = problem.division(data, seed)
        judge_settings(contestant, division, division.make_key(), contestant.candidates(budget)[trial.candidate], cache)
        return [], []
    if trial.setup == "without":
        return list(_run_without_sources(problem, data, contestant, seed, budget, cache)), []
    if trial.setup == "noise":
        return list(_run_with_noise(problem, data, contestant, seed, cache)), []
    outcome = cross_train_tuned(contestant, problem.division(data, seed), budget, cache)
    fits = list(_fit_scores(problem, ALL_SOURCES, contestant, seed, outcome.scored))
    chosen = [dict(settings) for settings in outcome.settings]
    return fits, [{"problem": name, "contestant": contestant.name, "seed": seed, "settings": chosen}]


def _fit_scores(
    problem: Problem, setup: str, contestant: Contestant, seed: int, scored: Dataset
) -> Iterator[FitRecord]:
    for binning in BINNINGS:
        for bins in BINS:
            found = measure_scores(scored, binning, bins)
            yield FitRecord(problem.name, setup, contestant.name, seed, binning, bins, found)


def _run_without_sources(
    problem: Problem, data: Dataset, contestant: Contestant, seed: int, budget: int, cache: Cache
) -> Iterator[FitRecord]:
    """Trainings that know of no source, or only of idle ones, and fits without sources; peers are tuned for this."""
    division = problem.division(data, seed)
    outcome = cross_train_tuned(contestant, division, budget, cache, sources=(), by="z_stat")
    yield from _fit_scores(problem, NO_SOURCES, contestant, seed, outcome.scored.with_systematics([]))
    if contestant.ours:
        idle = problem.division(replace_by_idle_sources(data, 7), seed)
        outcome = cross_train_tuned(contestant, idle, budget, cache)
        yield from _fit_scores(problem, IDLE, contestant, seed, outcome.scored.with_systematics([]))


def _run_with_noise(
    problem: Problem, data: Dataset, contestant: Contestant, seed: int, cache: Cache
) -> Iterator[FitRecord]:
    """Trainings with 25 real sources, and with 25 more that are noise; fits with the real ones, and with all."""
    real = add_sources(data, make_tilted_sources(data, 25 - len(data.systematics), seed))
    names = [source.name for source in real.systematics]
    noisy = add_sources(real, [*make_shuffled_sources(data, 13, seed), *make_resampled_sources(data, 12, seed)])
    for told, training in ((names, REAL), (None, NOISY)):
        outcome = cross_train_tuned(contestant, problem.division(noisy, seed), 1, cache, sources=told)
        for fitted, fit in ((names, REAL), ([s.name for s in noisy.systematics], NOISY)):
            setup = f"trained with {training}, fitted with {fit}"
            yield from _fit_scores(problem, setup, contestant, seed, outcome.scored.with_systematics(fitted))


def _measure_times(options: BenchmarkOptions, progress: Progress) -> Iterator[TimeRecord]:
    """CPU time of trainings of the profiled method: of P1, and against the number of sources on the bundled sample."""
    data = get_problem("P4").load(EventFolders()).with_systematics([])
    synthetic = inferno(options.synthetic_events, 1)
    (ours,) = select_contestants([OURS])
    kinds: dict[str, tuple[Callable[[Dataset, int, int], list[Systematic]], Sequence[int]]] = {
        "weight": (make_tilted_sources, (0, 5, 10, 25, 50)),
        "shape": (make_resampled_sources, (0, 2, 5, 10)),
    }
    jobs: list[tuple[str, int, Callable[[], Dataset]]] = [(SYNTHETIC, len(synthetic.systematics), lambda: synthetic)]
    for kind, (make, counts) in kinds.items():
        jobs += [(kind, count, partial(_add_sources_of_kind, data, make, count)) for count in counts]
    with progress("times", len(jobs)) as advance:
        ours.fit(data, ours.known[0], 1)  # compile
        for kind, count, prepare in jobs:
            prepared = prepare()
            start = time.process_time()
            ours.fit(prepared, ours.known[0], 1)
            yield TimeRecord(kind, count, time.process_time() - start)
            advance(1)


def _add_sources_of_kind(data: Dataset, make: Callable[[Dataset, int, int], list[Systematic]], count: int) -> Dataset:
    return add_sources(data, make(data, count, 1))


def _count_events(data: Dataset) -> str:
    rows = {role: sum(s.events.n_rows for s in data.of_role(role)) for role in (Role.SIGNAL, Role.BACKGROUND)}
    yields = {role: data.total(role) for role in rows}
    return ", ".join(f"{rows[role]:,} {role} events (yield {yields[role]:,.4g})" for role in rows)
