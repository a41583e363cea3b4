"""The problems that are fitted, their folds, and sources that the benchmark adds to them.

P2, P3 and P4 are those of docs/benchmarks.md. P2 and P3 need public files; P4 runs on the bundled sample, or on a
larger one that `qbdt generate tautaugamma` made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from qbdt.analysis.diagnosis import thin_events
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role, Sample, Systematic
from qbdt.data.samples import cms_htautau, paper_tautaugamma, tautaugamma
from qbdt.errors import ConfigError
from qbdt.studies.comparison.nested_training import Division


@dataclass(frozen=True)
class EventFolders:
    """Folders of events."""

    # Folder with the public files, in `cms_htautau` and `tautaugamma`; None where there is none
    data: Path | None = None
    sample: Path | None = None  # Folder that `qbdt generate tautaugamma` wrote; None for the bundled sample

    def public(self, name: str) -> Path:
        """Folder of one set of public files."""
        if self.data is None or not (self.data / name).is_dir():
            raise ConfigError(f"data={self.data}: a folder with {name}/ is needed for this problem (see docs/data.md)")
        return self.data / name


@dataclass(frozen=True)
class Problem:
    """Events to be fitted, and how they are divided for training."""

    # name, title: short name and description
    name: str
    title: str
    load: Callable[[EventFolders], Dataset]  # Reads the events
    identifier: str  # Column that the folds hash
    # inner_folds, folds: inner and outer folds; see `Division`
    inner_folds: int
    folds: int
    seeds: int  # Number of divisions that are averaged over
    thinned: int = 1  # One of so many events is kept, in every division others

    def division(self, data: Dataset, seed: int) -> Division:
        """Divide the events, or those of them that are kept."""
        kept = data if self.thinned == 1 else thin_events(data, 1 / self.thinned, seed)
        return Division(kept, (self.identifier,), self.inner_folds, self.folds, seed)


PROBLEMS = (
    Problem(
        "P2",
        "CMS Open Data, H → τ(µ)τ(h), 5 folds",
        lambda folders: cms_htautau(folders.public("cms_htautau")),
        "row",
        inner_folds=5,
        folds=5,
        seeds=2,
    ),
    Problem(
        "P3",
        "the paper's own events, 2 folds",
        lambda folders: paper_tautaugamma(folders.public("tautaugamma")),
        "event_number",
        inner_folds=6,
        folds=2,
        seeds=5,
    ),
    Problem(
        "P4",
        "simulated h → γττ, 5 folds",
        lambda folders: tautaugamma(folders.sample),
        "event_number",
        inner_folds=5,
        folds=5,
        seeds=2,
    ),
)


THIN = tuple(f"{name}/{thinned}" for name in ("P2", "P4") for thinned in (2, 4, 8))
"""The problems of P5: P2 and P4 with half, a quarter and an eighth of their simulated events, at the same yields."""


def get_problem(name: str) -> Problem:
    """Return one problem; "P4/8" is P4 with one of eight events."""
    whole, _, thinned = name.partition("/")
    for problem in PROBLEMS:
        if problem.name == name:
            return problem
        if problem.name == whole and name in THIN:
            title = f"{problem.title}, one of {thinned} events"
            return replace(problem, name=name, title=title, seeds=10, thinned=int(thinned))
    raise ConfigError(f"no problem {name}; there are: P1, {', '.join([*(p.name for p in PROBLEMS), *THIN])}")


TILT = 0.02
"""Largest relative change of a weight by a smooth source."""

SCATTER = 0.2
"""Relative scatter of weights by a source that is nothing but noise."""

LOST = 0.05
"""Share of events that a resampled variation loses, and share that it holds twice."""


def add_sources(data: Dataset, sources: list[Systematic]) -> Dataset:
    """Add sources to a dataset."""
    return Dataset(data.samples, [*data.systematics, *sources], data.folds)


def replace_by_idle_sources(data: Dataset, n: int) -> Dataset:
    """Replace all sources by `n` that leave every event as it is."""
    sources = [
        Systematic.shape(f"idle{k}", up={sample.name: sample.events for sample in data.of_role(Role.BACKGROUND)})
        for k in range(n)
    ]
    return Dataset(data.samples, sources, data.folds)


def make_tilted_sources(data: Dataset, n: int, seed: int) -> list[Systematic]:
    """Sources with an effect: background weights tilted along random directions of the features."""
    random = np.random.default_rng(seed)
    directions = random.normal(size=(n, len(data.features)))
    centre, spread = _measure_moments(data)

    def change(direction: Floats, sample: Sample) -> Floats:
        z = np.nan_to_num((np.asarray(sample.events.matrix(), dtype=np.float64) - centre) / spread)
        return np.asarray(TILT * np.tanh(z @ direction / np.linalg.norm(direction)))

    return [_make_weight_source(f"tilt{k}", data, partial(change, direction)) for k, direction in enumerate(directions)]


def make_shuffled_sources(data: Dataset, n: int, seed: int) -> list[Systematic]:
    """Noise of weights: each background event moves by its own random amount, zero on average."""
    random = np.random.default_rng(seed)
    return [
        _make_weight_source(f"noise{k}", data, lambda sample: SCATTER * random.normal(size=sample.events.n_rows))
        for k in range(n)
    ]


def make_resampled_sources(data: Dataset, n: int, seed: int) -> list[Systematic]:
    """Noise of events: variations of the background that lose some events and hold others twice, at random."""
    random = np.random.default_rng(seed)

    def draw() -> dict[str, Events]:
        found = {}
        for sample in data.of_role(Role.BACKGROUND):
            times = random.choice([0, 1, 2], size=sample.events.n_rows, p=[LOST, 1 - 2 * LOST, LOST])
            found[sample.name] = sample.events[np.repeat(np.arange(sample.events.n_rows), times)]
        return found

    return [Systematic.shape(f"resampled{k}", up=draw(), down=draw()) for k in range(n)]


def _make_weight_source(name: str, data: Dataset, change: Callable[[Sample], Floats]) -> Systematic:
    effects = {s.name: (s.events.weight, change(s)) for s in data.of_role(Role.BACKGROUND)}
    up, down = ({p: w * (1 + sign * e) for p, (w, e) in effects.items()} for sign in (1, -1))
    return Systematic.weight(name, up=up, down=down)


def _measure_moments(data: Dataset) -> tuple[Floats, Floats]:
    values = np.concatenate([np.asarray(s.events.matrix(), dtype=np.float64) for s in data.of_role(Role.BACKGROUND)])
    return np.nanmean(values, axis=0), np.nanstd(values, axis=0)
