"""`reproduce`: the whole study, step by step, into one folder; `Study` is what tables, statements and figures read."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from qbdt.analysis import load, parse_analysis
from qbdt.analysis.examples import example_text
from qbdt.data import Dataset
from qbdt.errors import ConfigError
from qbdt.files import StepFolder, digest_file, provenance, write_text
from qbdt.progress import Progress, silent
from qbdt.studies.paper.paper_methods import METHODS, PaperMethod
from qbdt.studies.paper.published_split import evaluate_published_split
from qbdt.studies.paper.random_halves import Difference, HalfTask, compare_pairs, run_halves


@dataclass(frozen=True)
class StudyOptions:
    """Options of a study."""

    data: Path | None = None  # Folder with the paper's files; None for the bundled sample
    # Trees of QBDT0. The others keep the paper's proportions: twice as many for QBDT7, ten times for GradBDT.
    trees: int = 100
    halves: int = 10  # Number of random divisions; each is used with both of its sides
    seed: int = 1  # Seed of the divisions and of every training
    # Processes for the halves; the numbers do not depend on it
    jobs: int = field(default_factory=lambda: min(2, os.cpu_count() or 1))

    def __post_init__(self) -> None:
        for name, least in (("trees", 1), ("halves", 0), ("seed", 0), ("jobs", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name}={getattr(self, name)}: must be at least {least}")
        if self.data is not None and not self.data.is_dir():
            raise ConfigError(f"data={self.data}: no such folder")


@dataclass(frozen=True, eq=False)
class Study:
    """All results of a reproduction."""

    options: StudyOptions  # How it was run
    settings: dict[str, Any]  # Everything the numbers depend on, with checksums of the files
    methods: tuple[PaperMethod, ...]  # Methods that were run, in order
    skipped: tuple[str, ...]  # Names of those whose package is not installed
    published: dict[str, dict[str, Any]]  # For each method its results on the published split
    halves: dict[str, dict[int, list[dict[str, float]]]]  # For each method and division the results of both sides
    # Time spent on each stage of this run; what was taken over from an earlier run costs nothing
    seconds: dict[str, float]
    folder: Path  # Where everything lies
    data: Dataset  # The events

    def values(self, method: str, quantity: str) -> list[float]:
        """One quantity of a method on all halves."""
        return [side[quantity] for sides in self.halves.get(method, {}).values() for side in sides]

    def difference(self, first: str, second: str, quantity: str) -> Difference:
        """Paired difference of a quantity between two methods over the halves."""
        pair = ({i: [side[quantity] for side in sides] for i, sides in self.halves[m].items()} for m in (first, second))
        return compare_pairs(*pair)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as plain data, without timings."""
        return {"settings": self.settings, "published": self.published, "halves": self.halves}


def load_events(folder: Path | None) -> Dataset:
    """Load the paper's files from a folder, or the bundled sample."""
    if folder is not None:
        return load(parse_analysis(example_text("tautaugamma"), "tautaugamma.yaml"), folder)
    from qbdt.data.samples import tautaugamma

    return tautaugamma(k=2)


def reproduce(
    options: StudyOptions,
    out: Path,
    progress: Progress = silent,
    force: bool = False,
    methods: Sequence[PaperMethod] = METHODS,
) -> Study:
    """Run the study, or what is left of it, and write its numbers to `out/study.json`; anew with `force`."""
    available = tuple(method for method in methods if method.available)
    settings = _settings(options, available)
    steps = StepFolder(out / "steps", settings, "a study", force=force)
    seconds: dict[str, float] = {}
    data = _time(seconds, "reading", partial(load_events, options.data))
    published = _time(seconds, "published split", partial(_run_split, options, available, data, steps, out, progress))
    halves = _time(seconds, "random halves", partial(_run_halves, options, available, steps, progress))
    skipped = tuple(method.name for method in methods if not method.available)
    study = Study(options, settings, available, skipped, published, halves, seconds, out, data)
    content = {**study.to_dict(), "provenance": provenance(data=options.data)}
    write_text(out / "study.json", json.dumps(content) + "\n")
    return study


def _settings(options: StudyOptions, methods: Sequence[PaperMethod]) -> dict[str, Any]:
    from qbdt import __version__

    files = {} if options.data is None else {p.name: digest_file(p) for p in sorted(options.data.glob("*.root"))}
    plain = {name: value for name, value in asdict(options).items() if name not in ("data", "jobs")}
    return {**plain, "qbdt": __version__, "methods": [m.name for m in methods], "files": files}


def _run_split(
    options: StudyOptions,
    methods: Sequence[PaperMethod],
    data: Dataset,
    steps: StepFolder,
    out: Path,
    progress: Progress,
) -> dict[str, dict[str, Any]]:
    results = {}
    with progress("published split", len(methods)) as advance:
        for method in methods:
            compute = partial(evaluate_published_split, method, data, options.trees, options.seed, out / "models")
            results[method.name] = steps.get(f"published-{method.key}", compute)
            advance(1)
    return results


def _run_halves(
    options: StudyOptions, methods: Sequence[PaperMethod], steps: StepFolder, progress: Progress
) -> dict[str, dict[int, list[dict[str, float]]]]:
    tasks = [
        HalfTask(method.name, number, swapped, options.trees, options.seed)
        for number in range(options.halves)
        for swapped in (False, True)
        for method in methods
        if method.in_halves
    ]
    results = run_halves(tasks, steps, partial(load_events, options.data), options.jobs, progress)
    collected: dict[str, dict[int, list[dict[str, float]]]] = {}
    for task in tasks:
        collected.setdefault(task.method, {}).setdefault(task.number, []).append(results[task])
    return collected


def _time(seconds: dict[str, float], stage: str, work: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    result = work()
    seconds[stage] = time.perf_counter() - start
    return result
