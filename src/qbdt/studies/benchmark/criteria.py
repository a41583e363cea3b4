"""Criteria that the profiled method should meet, each compared with the best tuned peer of the same run.

The best peer of a problem, a binning and a number of bins is the one with the largest full-fit Z there; without sources
the one with the smallest σ_μ. All numbers are means over the same divisions into folds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from qbdt.statistics import FittedSensitivity
from qbdt.studies.benchmark.physics import IDLE, NO_SOURCES, NOISY, REAL, SYNTHETIC
from qbdt.studies.benchmark.results import ALL_SOURCES, BINNINGS, FitRecord, PhysicsResults, average
from qbdt.studies.comparison.contestants import CONTESTANTS, OURS
from qbdt.studies.paper.random_halves import Difference, compare_pairs

BINS = 20
"""Number of bins of all criteria but those of P1."""
LINEAR = 0.1
"""Largest distance of training times from a straight line in the number of sources, relative to the longest."""
SECONDS = 60.0
"""Longest training of P1, in CPU seconds on one thread."""
PEERS = tuple(contestant.name for contestant in CONTESTANTS if not contestant.ours)


@dataclass(frozen=True)
class BenchmarkCriterion:
    """One statement and whether it holds."""

    # problem, claim: name of the problem, and the statement
    problem: str
    claim: str
    # value, limit: measured value, and the limit it is compared with
    value: float
    limit: float
    holds: bool  # Whether the claim is true


def check_criteria(bench: PhysicsResults) -> list[BenchmarkCriterion]:
    """Check all criteria whose problems were run with the profiled method and a peer."""
    return [
        *_synthetic(bench),
        *_problem(bench, "P2", delta_mu=0.5, z_full=1.3, z_stat=0.97),
        *_judge_pairs(bench, "P3"),
        *_problem(bench, "P4", delta_mu=0.65, z_full=1.05, z_stat=0.98),
        *_without_sources(bench),
        *_noise(bench),
        *_times(bench),
    ]


def find_best_peer(
    bench: PhysicsResults, problem: str, binning: str, bins: int, setup: str = ALL_SOURCES
) -> str | None:
    """Name of the best peer; None where none took part."""
    records = {name: bench.select(problem, setup, contestant=name, binning=binning, bins=bins) for name in PEERS}
    quantity: Callable[[FittedSensitivity], float] = (
        (lambda m: -m.sigma_stat) if setup == NO_SOURCES else attrgetter("z_full")
    )
    means = {name: average(found, quantity) for name, found in records.items() if found}
    return max(means, key=lambda name: means[name]) if means else None


def compare_records(
    first: list[FitRecord], second: list[FitRecord], value: Callable[[FittedSensitivity], float]
) -> Difference:
    """Difference of two contestants on the same divisions."""
    return compare_pairs(*({r.seed: [value(r.result)] for r in records} for records in (first, second)))


def _pairs(
    bench: PhysicsResults, problem: str, setup: str = ALL_SOURCES, against: str = ALL_SOURCES
) -> Iterator[tuple[str, str, list[FitRecord], list[FitRecord]]]:
    """Binning, best peer, and the records of the profiled method and of that peer."""
    for binning in BINNINGS:
        mine = bench.select(problem, setup, contestant=OURS, binning=binning, bins=BINS)
        peer = find_best_peer(bench, problem, binning, BINS, against)
        if mine and peer:
            yield binning, peer, mine, bench.select(problem, against, contestant=peer, binning=binning, bins=BINS)


def _problem(
    bench: PhysicsResults, problem: str, *, delta_mu: float, z_full: float, z_stat: float
) -> Iterator[BenchmarkCriterion]:
    limits: tuple[tuple[str, float, Callable[[FittedSensitivity], float], bool], ...] = (
        ("Δμ_sys", delta_mu, attrgetter("delta_mu"), False),
        ("Z full", z_full, attrgetter("z_full"), True),
        ("Z stat", z_stat, attrgetter("z_stat"), True),
    )
    for binning, peer, mine, theirs in _pairs(bench, problem):
        for name, factor, value, at_least in limits:
            ratio = average(mine, value) / average(theirs, value)
            word = "at least" if at_least else "at most"
            claim = f"{name} {word} {factor:g} × that of {peer}, {BINS} {_format_binning(binning)} bins"
            yield BenchmarkCriterion(problem, claim, ratio, factor, ratio >= factor if at_least else ratio <= factor)


def _judge_pairs(bench: PhysicsResults, problem: str) -> Iterator[BenchmarkCriterion]:
    for binning, peer, mine, theirs in _pairs(bench, problem):
        found = compare_records(mine, theirs, attrgetter("z_full"))
        claim = f"Z full above that of {peer} by more than the paired error × 2, {BINS} {_format_binning(binning)} bins"
        error = found.error if math.isfinite(found.error) else 0.0
        yield BenchmarkCriterion(problem, claim, found.mean, 2 * error, found.mean > 2 * error)


def _without_sources(bench: PhysicsResults) -> Iterator[BenchmarkCriterion]:
    for problem in bench.titles:
        for setup in (NO_SOURCES, IDLE):
            for binning, peer, mine, theirs in _pairs(bench, problem, setup, NO_SOURCES):
                ratio = average(mine, lambda m: m.sigma_stat) / average(theirs, lambda m: m.sigma_stat)
                claim = f"{setup}: σ_μ at most 1.01 × that of {peer}, {BINS} {_format_binning(binning)} bins"
                yield BenchmarkCriterion(problem, claim, ratio, 1.01, ratio <= 1.01)


def _noise(bench: PhysicsResults) -> Iterator[BenchmarkCriterion]:
    for problem in bench.titles:
        for binning in BINNINGS:
            found = {
                training: bench.select(
                    problem,
                    f"trained with {training}, fitted with {REAL}",
                    contestant=OURS,
                    binning=binning,
                    bins=BINS,
                )
                for training in (REAL, NOISY)
            }
            if all(found.values()):
                noisy, real = (average(found[name], lambda m: m.sigma_full) for name in (NOISY, REAL))
                claim = (
                    f"25 noise sources beside 25 real ones: σ_μ at most 1.02 ×, {BINS} {_format_binning(binning)} bins"
                )
                yield BenchmarkCriterion(problem, claim, noisy / real, 1.02, noisy / real <= 1.02)


SYNTHETIC_LIMITS = (
    ("optimised", 10, {"B2": 16.0, "B3": 16.0, "B4": 17.3}),
    ("optimised", 20, {"B2": 15.85, "B4": 17.1}),
    ("equal_signal", 20, {"B2": 16.2, "B4": 17.6}),
)


def _synthetic(bench: PhysicsResults) -> Iterator[BenchmarkCriterion]:
    for binning, bins, limits in SYNTHETIC_LIMITS:
        for column, limit in limits.items():
            value = _sigma(bench, OURS, binning, bins, int(column[1]))
            if value is not None:
                claim = f"σ(s) in {column} at most {limit:g}, {bins} {_format_binning(binning)} bins"
                yield BenchmarkCriterion("P1", claim, value, limit, value <= limit)
    value = _sigma(bench, f"{OURS}, {NO_SOURCES}", "equal_signal", BINS, 0)
    if value is not None:
        yield BenchmarkCriterion(
            "P1", f"σ(s) in B0 at most 15, trained without sources, {BINS} bins", value, 15.0, value <= 15.0
        )


def _sigma(bench: PhysicsResults, contestant: str, binning: str, bins: int, column: int) -> float | None:
    values = [
        record.sigma[column]
        for record in bench.synthetic
        if (record.contestant, record.binning, record.bins) == (contestant, binning, bins)
    ]
    return float(np.mean(values)) if values else None


def _times(bench: PhysicsResults) -> Iterator[BenchmarkCriterion]:
    """Time of P1; largest distance of times from a straight line in the number of sources, relative to the longest."""
    for record in bench.times:
        if record.kind == SYNTHETIC:
            claim = f"training takes at most {SECONDS:g} CPU seconds on one thread"
            yield BenchmarkCriterion(SYNTHETIC, claim, record.seconds, SECONDS, record.seconds <= SECONDS)
    for kind in sorted({record.kind for record in bench.times} - {SYNTHETIC}):
        records = [record for record in bench.times if record.kind == kind]
        sources, seconds = (np.array([getattr(r, name) for r in records]) for name in ("sources", "seconds"))
        line = np.polyval(np.polyfit(sources, seconds, 1), sources)
        distance = float(np.abs(seconds - line).max() / seconds.max())
        claim = f"training time within {LINEAR:g} of a straight line in the number of {kind}-type sources"
        yield BenchmarkCriterion("times", claim, distance, LINEAR, distance <= LINEAR)


def _format_binning(binning: str) -> str:
    return binning.replace("_", "-")
