"""The problems that are fitted: where their events come from and how they are divided. The synthetic one is apart.

P2, P3 and P4 are those of docs/benchmarks.md. P2 and P3 need public files; P4 runs on the bundled sample, or on a
larger one that `qbdt generate tautaugamma` made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qbdt.data import Dataset
from qbdt.data.samples import cms_htautau, paper_tautaugamma, tautaugamma
from qbdt.errors import ConfigError
from qbdt.studies.benchmark.nested import Division

__all__ = ["PROBLEMS", "Places", "Problem", "get_problem"]


@dataclass(frozen=True)
class Places:
    """Where events are.

    Attributes
    ----------
    data
        Folder with the public files, in `cms_htautau` and `tautaugamma`; None where there is none.
    sample
        Folder that `qbdt generate tautaugamma` wrote; None for the bundled sample.
    """

    data: Path | None = None
    sample: Path | None = None

    def public(self, name: str) -> Path:
        """Folder of one set of public files."""
        if self.data is None or not (self.data / name).is_dir():
            where = "--data FOLDER" if self.data is None else f"--data {self.data}"
            raise ConfigError(f"{where}: a folder with {name}/ is needed for this problem (see docs/data.md)")
        return self.data / name


@dataclass(frozen=True)
class Problem:
    """Events to be fitted, and how they are divided for training.

    Attributes
    ----------
    name, title
        Short name, and what it is.
    load
        Reads the events.
    identifier
        Column that the folds hash.
    units, folds
        Units of the division and outer folds; see `qbdt.studies.benchmark.nested`.
    seeds
        Number of divisions that are averaged over.
    """

    name: str
    title: str
    load: Callable[[Places], Dataset]
    identifier: str
    units: int
    folds: int
    seeds: int

    def division(self, data: Dataset, seed: int) -> Division:
        """Divide the events."""
        return Division(data, (self.identifier,), self.units, self.folds, seed)


PROBLEMS = (
    Problem(
        "P2",
        "CMS Open Data, H → τ(µ)τ(h), 5 folds",
        lambda places: cms_htautau(places.public("cms_htautau")),
        "row",
        units=5,
        folds=5,
        seeds=2,
    ),
    Problem(
        "P3",
        "the paper's own events, 2 folds",
        lambda places: paper_tautaugamma(places.public("tautaugamma")),
        "event_number",
        units=6,
        folds=2,
        seeds=5,
    ),
    Problem(
        "P4",
        "simulated h → γττ, 5 folds",
        lambda places: tautaugamma(places.sample),
        "event_number",
        units=5,
        folds=5,
        seeds=2,
    ),
)


def get_problem(name: str) -> Problem:
    """Return one problem."""
    for problem in PROBLEMS:
        if problem.name == name:
            return problem
    raise ConfigError(f"no problem {name}; there are: P1, {', '.join(p.name for p in PROBLEMS)}")
