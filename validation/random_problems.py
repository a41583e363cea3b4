"""Problems drawn at random, which no choice of this package has looked at:  python -m validation.random_problems.

Each has one signal and three backgrounds in 6 to 25 features, weights that scatter, scales that move the features of
some processes, weights and normalisations that are uncertain: densities, yields and sources all drawn from its number.
Methods are trained on few events, and all are judged by the fit of the same many others. LightGBM is tuned in
hindsight: of several settings the one that is best on the fitted events counts, with and without sources.

Options: [--problems N] [--first N] [--events N …]. Half an hour for ten problems.     (make random-problems)
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt import Systematic
from qbdt.arrays import Floats
from qbdt.data import Dataset
from qbdt.statistics import Sensitivity
from qbdt.studies.comparison.score_sensitivity import measure_scores
from qbdt.studies.trainers import Scorer, fit_lightgbm, fit_qbdt, make_event_table
from qbdt.tables import Table, show

PROCESSES = ("s", "b1", "b2", "b3")
JUDGED = 50_000
"""Events of each class that are fitted; their weights do not scatter."""

PEERS = tuple(
    {"n_trees": trees, "learning_rate": 0.05, "num_leaves": leaves, "min_data_in_leaf": least}
    for trees, leaves, least in ((300, 4, 100), (300, 8, 20), (500, 16, 50))
)


class Scale(NamedTuple):
    """A source that moves hidden coordinates z to z + shift + stretch · z, of some processes."""

    shift: Floats
    stretch: Floats
    moves: NDArray[np.bool_]


class Tilt(NamedTuple):
    """A source that multiplies weights by 1 ± size · tanh of a direction."""

    direction: Floats
    size: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Densities: coordinates z that are Gaussian or have long tails, and features that are functions of them."""

    number: int
    means: Floats  # (process, coordinate)
    mixing: Sequence[Floats]  # of each process
    tails: Floats  # of each process: spread of the logarithm of a common factor
    kinds: Sequence[int]  # of each feature: which function it is
    pairs: Sequence[tuple[int, int]]  # of each feature: the coordinates that it takes
    smear: Floats  # of each feature: noise that is added
    signal: float
    backgrounds: Floats
    shares: Floats  # of each background among the simulated ones
    scatter: float  # spread of the logarithm of the weights
    scales: Sequence[Scale]
    tilts: Sequence[Tilt]
    norms: Sequence[tuple[str, float]]

    def make_dataset(self, n: int, seed: int, scatter: float) -> Dataset:
        """Simulate n events of signal, and n of all backgrounds, with all sources."""
        rng = np.random.default_rng([self.number, 2, seed])
        counts = [n, *(max(round(n * share), 50) for share in self.shares)]
        process = np.repeat(np.arange(len(PROCESSES)), counts)
        z = np.concatenate([self._draw(rng, number, count) for number, count in enumerate(counts)])
        noise = rng.normal(size=(len(z), len(self.kinds)))
        weight = np.exp(scatter * rng.normal(size=len(z)))
        for number, total in enumerate((self.signal, *self.backgrounds)):
            own = process == number
            weight[own] *= total / weight[own].sum()
        names, y = np.array(PROCESSES)[process], (process == 0).astype(int)

        def table(moved: Floats) -> dict[str, Any]:
            columns = {f"x{j}": column for j, column in enumerate(self._features(moved, noise).T)}
            return {**columns, "process": names}

        sources: list[Any] = []
        for i, (shift, stretch, moves) in enumerate(self.scales):
            step = moves[process][:, None] * (shift + stretch * z)
            up, down = ((table(z + sign * step), y, weight) for sign in (1, -1))
            sources.append(Systematic.shape(f"scale{i}", up=up, down=down))
        for i, (direction, size) in enumerate(self.tilts):
            tilt = size * np.tanh(z @ direction / np.linalg.norm(direction))
            sources.append(Systematic.weight(f"tilt{i}", up=weight * (1 + tilt), down=weight * (1 - tilt)))
        sources += [Systematic.norm(f"xs_{name}", size, processes=[name]) for name, size in self.norms]
        return Dataset.from_arrays(table(z), y, weight, sources, process="process")

    def _draw(self, rng: np.random.Generator, process: int, n: int) -> Floats:
        z = rng.normal(size=(n, self.means.shape[1]))
        if self.tails[process] > 0:
            z *= np.exp(self.tails[process] * rng.normal(size=(n, 1)))
        return np.asarray(self.means[process] + z @ self.mixing[process])

    def _features(self, z: Floats, noise: Floats) -> Floats:
        columns = [_function(kind, z[:, a], z[:, b]) for kind, (a, b) in zip(self.kinds, self.pairs, strict=True)]
        return np.column_stack(columns) + self.smear * noise


def _function(kind: int, one: Floats, two: Floats) -> Floats:
    functions = (
        lambda: one,
        lambda: np.exp(0.5 * one),
        lambda: np.hypot(one, two),
        lambda: one * two,
        lambda: np.arctan2(one, two),
        lambda: one + 0.5 * two**2,
    )
    return functions[kind]()


def draw_problem(number: int) -> Problem:
    """Draw the problem with this number."""
    rng = np.random.default_rng([number, 1])
    n_hidden = int(rng.integers(3, 9))
    n_features = int(rng.integers(max(6, n_hidden), 26))
    means = rng.normal(size=(4, n_hidden)) * rng.uniform(0.4, 1.0)
    mixing = [np.eye(n_hidden) + 0.35 * rng.normal(size=(n_hidden, n_hidden)) for _ in PROCESSES]
    tails = rng.choice([0.0, 0.3], size=4)
    kinds, pairs = rng.integers(0, 6, size=n_features), rng.integers(0, n_hidden, size=(n_features, 2))
    smear, parts = rng.choice([0.0, 0.1, 0.5], size=n_features), rng.dirichlet([2.0, 2.0, 2.0])
    background = float(10 ** rng.uniform(3, 5))
    signal = float(rng.uniform(1.0, 4.0)) * math.sqrt(background)
    scatter = float(rng.choice([0.0, 0.5, 1.0]))
    n_scales, n_tilts, size = int(rng.integers(1, 4)), int(rng.integers(0, 4)), rng.uniform(0.02, 0.2)
    scales = [
        Scale(rng.normal(size=n_hidden) * size, rng.normal(size=n_hidden) * size * 0.5, rng.random(4) < 0.7)
        for _ in range(n_scales)
    ]
    tilts = [Tilt(rng.normal(size=n_hidden), rng.uniform(0.02, 0.15)) for _ in range(n_tilts)]
    norms = [(name, float(rng.uniform(0.03, 0.2))) for name in PROCESSES[1:] if rng.random() < 0.7]
    shares = 0.5 * parts + 0.5 / 3
    densities = (means, mixing, tails, kinds.tolist(), pairs.tolist(), smear)
    return Problem(number, *densities, signal, background * parts, shares, scatter, scales, tilts, norms)


class Outcome(NamedTuple):
    """Fits with scores of qbdt, trained with the sources and without, and of LightGBM with each of its settings."""

    with_sources: Sensitivity
    without: Sensitivity
    peers: Sequence[Sensitivity]

    @property
    def ratios(self) -> tuple[float, float]:
        """σ_μ over that of the peer: with all sources, and without any."""
        full = self.with_sources.sigma_full / min(one.sigma_full for one in self.peers)
        return full, self.without.sigma_stat / min(one.sigma_stat for one in self.peers)


def try_problem(problem: Problem, n: int, fitted: Dataset, seed: int = 1) -> Outcome:
    """Train all on n events of each class, and fit others."""
    data = problem.make_dataset(n, seed, problem.scatter)
    plain, table = data.with_systematics([]), make_event_table(data)

    def judge(score: Scorer) -> Sensitivity:
        return measure_scores(fitted.transform(lambda events: {"score": score(events)}), "equal_signal", 20)

    peers = [judge(fit_lightgbm(table, settings, 1).score) for settings in PEERS]
    return Outcome(judge(fit_qbdt(data, {}, 0).score), judge(fit_qbdt(plain, {}, 0).score), peers)


def make_tables(found: dict[tuple[int, int], Outcome], problems: dict[int, Problem]) -> list[Table]:
    """One line for each problem, and what they are together."""
    lines, together = [], []
    for (number, n), one in found.items():
        problem = problems[number]
        sources = " + ".join(str(len(kind)) for kind in (problem.scales, problem.tilts, problem.norms))
        best = min(peer.sigma_full for peer in one.peers), min(peer.sigma_stat for peer in one.peers)
        ours = one.with_sources.sigma_full, one.without.sigma_stat
        cells = [f"{value:.4f}" for pair in zip(ours, best, strict=True) for value in pair]
        cells += [f"{ratio:.3f}" for ratio in one.ratios]
        lines.append((str(number), f"{n:,}", str(len(problem.kinds)), sources, *cells))
    for n in sorted({size for _, size in found}):
        both = np.array([one.ratios for (_, size), one in found.items() if size == n])
        for what, ratios in zip(("all", "none"), both.T, strict=True):
            error = float(ratios.std(ddof=1)) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
            figures = (f"{ratios.mean():.3f} ± {error:.3f}", f"{np.median(ratios):.3f}", f"{ratios.max():.3f}")
            together.append((f"{n:,}", what, *figures, f"{np.sum(ratios > 1)} of {len(ratios)}"))
    kinds = ("σ_μ full, qbdt", "LightGBM", "σ_μ without sources, qbdt", "LightGBM", "ratio full", "ratio without")
    title = "Random problems: scales + weights + normalisations as sources, 20 equal-signal bins"
    columns = ("simulated events of each class", "sources", "ratio of σ_μ", "median", "worst", "above 1")
    return [
        Table(title, ("problem", "events", "features", "sources", *kinds), tuple(lines)),
        Table("Random problems: σ_μ of qbdt over that of LightGBM", columns, tuple(together)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--events", type=int, nargs="+", default=[3000, 12000])
    given = parser.parse_args()
    problems = {number: draw_problem(number) for number in range(given.first, given.first + given.problems)}
    found: dict[tuple[int, int], Outcome] = {}
    for number, problem in problems.items():
        fitted = problem.make_dataset(JUDGED, 99, 0.0)
        for n in given.events:
            found[number, n] = try_problem(problem, n, fitted)
            print(f"problem {number}, {n} events: {found[number, n].ratios}", flush=True)
    show(make_tables(found, problems))


if __name__ == "__main__":
    main()
