"""What the benchmark of physics measures, as plain records: all tables and marks are made of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from qbdt.statistics import Sensitivity

__all__ = ["ALL_SOURCES", "FitRecord", "PhysicsBench", "SyntheticRecord", "TimeRecord", "mean_of"]

ALL_SOURCES = "all sources"


@dataclass(frozen=True)
class FitRecord:
    """One fit of out-of-fold scores.

    Attributes
    ----------
    problem, setup
        Which events; which sources were there in training and in the fit.
    contestant, seed
        Who, and the seed of the folds.
    binning, bins
        As asked for.
    merit
        Result.
    """

    problem: str
    setup: str
    contestant: str
    seed: int
    binning: str
    bins: int
    merit: Sensitivity

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "merit": {**asdict(self.merit), "delta_mu": self.merit.delta_mu}}


@dataclass(frozen=True)
class SyntheticRecord:
    """σ(s) of the synthetic problem in the benchmarks B0 … B4."""

    contestant: str
    seed: int
    binning: str
    bins: int
    sigma: tuple[float, ...]


@dataclass(frozen=True)
class TimeRecord:
    """CPU seconds of one training on one thread, with a number of sources of one kind."""

    kind: str
    sources: int
    seconds: float


@dataclass(frozen=True)
class PhysicsBench:
    """Everything that was measured.

    Attributes
    ----------
    fits, synthetic, times
        Records.
    titles
        Problem to what it is, with the numbers of its events.
    settings
        Settings that tuning chose: problem, contestant, seed, and one set for each fold.
    command
        What measures the same again.
    budget
        Settings that every contestant could choose from, where it has as many.
    releases
        Contestant to what did its work: package and version, or a digest of our own code.
    """

    fits: tuple[FitRecord, ...] = ()
    synthetic: tuple[SyntheticRecord, ...] = ()
    times: tuple[TimeRecord, ...] = ()
    titles: dict[str, str] = field(default_factory=dict)
    settings: tuple[dict[str, Any], ...] = ()
    command: str = "qbdt bench physics"
    budget: int = 1
    releases: dict[str, str] = field(default_factory=dict)

    def select(self, problem: str, setup: str = ALL_SOURCES, **wanted: Any) -> list[FitRecord]:
        """Fits of one problem and setup with these values of other attributes."""
        return [
            record
            for record in self.fits
            if (record.problem, record.setup) == (problem, setup)
            and all(getattr(record, name) == value for name, value in wanted.items())
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "command": self.command,
            "budget": self.budget,
            "releases": self.releases,
            "titles": self.titles,
            "fits": [record.to_dict() for record in self.fits],
            "synthetic": [asdict(record) for record in self.synthetic],
            "times": [asdict(record) for record in self.times],
            "settings": list(self.settings),
        }


def mean_of(records: Iterable[FitRecord], value: Callable[[Sensitivity], float]) -> float:
    """Mean of one figure of merit over fold seeds; NaN of nothing."""
    values = [value(record.merit) for record in records]
    return float(np.mean(values)) if values else float("nan")
