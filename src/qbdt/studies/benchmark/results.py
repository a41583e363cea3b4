"""Results of the physics benchmark: the records that tables and criteria are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from qbdt.statistics import FittedSensitivity

BINNINGS = ("equal_signal", "optimised")
BINS = (10, 20)

ALL_SOURCES = "all sources"


@dataclass(frozen=True)
class FitRecord:
    """One fit of out-of-fold scores."""

    # problem, setup: which events; which sources were there in training and in the fit
    problem: str
    setup: str
    # contestant, seed: method, and seed of the folds
    contestant: str
    seed: int
    # binning, bins: as asked for
    binning: str
    bins: int
    result: FittedSensitivity  # Of the fit

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "result": {**asdict(self.result), "delta_mu": self.result.delta_mu}}


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
class PhysicsResults:
    """All results of a run."""

    # fits, synthetic, times: records
    fits: tuple[FitRecord, ...] = ()
    synthetic: tuple[SyntheticRecord, ...] = ()
    times: tuple[TimeRecord, ...] = ()
    # Description of each problem, with the numbers of its events
    titles: dict[str, str] = field(default_factory=dict)
    # Settings that tuning chose: problem, contestant, seed, and one set for each fold
    settings: tuple[dict[str, Any], ...] = ()
    command: str = "qbdt bench physics"  # Command that measures the same again
    budget: int = 1  # Settings that every contestant could choose from, where it has as many
    # Package and version of each contestant, or a digest of our own code
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
        """Return plain data."""
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


def average(records: Iterable[FitRecord], value: Callable[[FittedSensitivity], float]) -> float:
    """Mean of one figure of merit over fold seeds; NaN of nothing."""
    values = [value(record.result) for record in records]
    return float(np.mean(values)) if values else float("nan")
