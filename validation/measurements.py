"""Training for measurements with known densities, compared with the limits of unbinned fits (`known_densities`).

For each problem the scores that training finds are put into few cells, chosen on other events than those trained on.
The uncertainties of a fit in these cells come from the true densities too, integrated over the cells.

Run:  python -m validation.measurements [--n N] [--trees N] [--problem NAME] [--seeds N]     (make measurements)
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.data import Events
from qbdt.inference.templates import CellTarget, choose_cells
from qbdt.tables import Table
from qbdt.training import Settings, train
from validation.known_densities import PROBLEMS, Problem


@dataclass(frozen=True, eq=False)
class Outcome:
    """Uncertainties of a fit in few cells, beside the limits."""

    problem: Problem
    covariance: Floats
    limit: Floats
    n_cells: int
    expected: tuple[float, ...]

    @property
    def ratios(self) -> dict[str, float]:
        """σ over its limit for each parameter, and the area of the contour where there are two."""
        each = np.sqrt(np.diag(self.covariance) / np.diag(self.limit)).tolist()
        found = dict(zip(self.problem.of_interest, each, strict=True))
        if len(found) > 1:
            found["area"] = math.sqrt(np.linalg.det(self.covariance) / np.linalg.det(self.limit))
        return found

    @property
    def holds(self) -> bool:
        """Whether all are within the tolerance."""
        return max(self.ratios.values()) <= 1 + self.problem.tolerance


def average(outcomes: Sequence[Outcome]) -> Outcome:
    """Mean covariance of trainings of the same problem, with other events each time."""
    expected = np.mean([one.expected for one in outcomes], axis=0)
    covariance = np.mean([one.covariance for one in outcomes], axis=0)
    return replace(outcomes[0], covariance=covariance, expected=tuple(expected.tolist()))


def tabulate(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """Rows of a table: means over fits of one problem, and the spread of σ."""
    mean = average(outcomes)
    sizes = [*np.sqrt(np.diag(mean.limit)).tolist(), math.nan]
    rows: list[tuple[str, ...]] = []
    for (name, ratio), size in zip(mean.ratios.items(), sizes, strict=False):
        spread = np.std([one.ratios[name] for one in outcomes], ddof=1) if len(outcomes) > 1 else 0.0
        above = f"{100 * ratio - 100:+.1f} ± {100 * spread:.1f} %"
        numbers = [f"{one:.4f}" if math.isfinite(one) else "" for one in (size, size * ratio)]
        rows.append((mean.problem.name, name, str(mean.n_cells), *numbers, above))
    return rows


def evaluate(problem: Problem, n: int, seed: int, settings: Settings, n_threads: int | None = None) -> Outcome:
    """Train on n events of each process, and choose cells on as many others."""
    trained = train((problem.trained_on or problem.sample)(n, seed), settings, n_threads=n_threads)

    def compute(events: Events) -> dict[str, Floats]:
        scores = trained.ensemble.score(events, n_threads).reshape(events.n_rows, -1)
        return {f"score {i}": scores[:, i] for i in range(scores.shape[1])}

    choose = problem.sample(n, seed + 1).transform(compute)
    strengths = {name: tuple(names) for name, names in settings.strengths.items()} or {"mu": (choose.samples[0].name,)}
    cells = choose_cells(
        choose, problem.cells, CellTarget(strengths, problem.of_interest, tuple(settings.free), problem.known)
    )

    def find_cells(events: Events) -> NDArray[np.intp]:
        return cells.index(Events(compute(events), events.weight), "points")

    expected = tuple(one.sigma_full for one in trained.expectations)
    return Outcome(problem, problem.integrate(find_cells), problem.limit(), cells.n_bins, expected)


RIVALS = {"control": ("alone", "knowing of it"), "moved": ("nominal", "it")}
"""Problems, the same trained with less knowledge, and what that lacks."""


def run(names: Sequence[str], n: int, seed: int, n_threads: int | None = None, **options: Any) -> dict[str, Outcome]:
    """Evaluate some problems."""
    found = {}
    for name in names:
        problem = PROBLEMS[name]()
        found[name] = evaluate(problem, n, seed, Settings(**problem.settings, **options), n_threads)
    return found


def check(outcomes: Mapping[str, Outcome]) -> dict[str, bool]:
    """Criteria of the problems that were run."""
    held = {
        f"{one.problem.name}: within {100 * one.problem.tolerance:g} % of the limit": one.holds
        for name, one in outcomes.items()
        if name not in ("alone", "nominal")
    }
    for name, (rival, lacks) in RIVALS.items():
        if name in outcomes and rival in outcomes:
            better = outcomes[name].covariance[0, 0] < outcomes[rival].covariance[0, 0]
            held[f"{outcomes[name].problem.name}: better than the score trained without {lacks}"] = better
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="simulated events of each process")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3, help="how often, with other events each time")
    parser.add_argument("--problem", choices=list(PROBLEMS), action="append")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    started = time.perf_counter()
    names = options.problem or list(PROBLEMS)
    seeds = range(1, 10 * options.seeds + 1, 10)
    found = [run(names, options.n, seed, options.threads, n_trees=options.trees) for seed in seeds]
    each = {name: [one[name] for one in found] for name in names}
    header = ("problem", "parameter", "cells", "limit", "fit", "above")
    rows = tuple(row for outcomes in each.values() for row in tabulate(outcomes))
    print(Table(f"{options.n} simulated events of each process, {options.seeds} times; mean ± spread", header, rows))
    outcomes = {name: average(own) for name, own in each.items()}
    for one in outcomes.values():
        print(f"expected by training, {one.problem.name}: {', '.join(f'{sigma:.4f}' for sigma in one.expected)}")
    held = check(outcomes)
    for criterion, holds in held.items():
        print(f"{'holds ' if holds else 'MISSED'}  {criterion}")
    print(f"{time.perf_counter() - started:.0f} s")
    sys.exit(0 if all(held.values()) else 1)


if __name__ == "__main__":
    main()
