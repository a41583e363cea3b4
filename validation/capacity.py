"""Capacity of the first sum of trees:  python -m validation.capacity [--seeds N] [--sample FOLDER].

Trains F on a share of a sample and fits a histogram of it on all other events, so that the numbers are those of thin
samples with little noise of their own: 1/σ_μ without sources, for several numbers and sizes of trees, several ridges
and least curvatures of a node, and several rules that choose the number of trees. With a sample of `qbdt generate
tautaugamma`, two thirds of it are a large sample too. Not a test: it takes half an hour.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from qbdt.data import Dataset, Events, HashFolds, Sample
from qbdt.data.samples import inferno, tautaugamma
from qbdt.studies.comparison.score_sensitivity import measure_scores
from qbdt.tables import Table, show
from qbdt.training import Settings, train
from qbdt.training.profile import method, ratio
from qbdt.training.profile.ratio import FittedRatio, choose_size, fade
from qbdt.trees import Ensemble, Tree

VARIANTS = (
    (1000, 15, 0.2, 0.2),
    (500, 15, 0.2, 0.2),
    (500, 63, 0.2, 0.2),
    (1000, 15, 1.0, 5.0),
    (1000, 15, 1.0, 1.0),
    (1000, 15, 0.05, 0.05),
)
"""Trees, leaves, ridge and least curvature: the default, fewer and larger trees, and other regularisations; the
first of these is that of earlier releases."""

Variant = tuple[int, int, float, float]
Problem = tuple[Dataset, Dataset, float]
"""Events to train on, events to fit, and how many are expected for each of the latter."""


def thin(share: int, seed: int, folder: Path | None = None) -> Problem:
    """Divide the bundled sample, or one in a folder, into one share to train on and the rest."""
    data = tautaugamma(folder, k=2).with_systematics([])
    rule = HashFolds(share, ("event_number",), 1000 + seed)
    return data.select(lambda e: rule.assign(e) == 0), data.select(lambda e: rule.assign(e) != 0), share / (share - 1)


def large(folder: Path, seed: int) -> Problem:
    """Divide a sample of `qbdt generate tautaugamma` into two thirds to train on and the rest."""
    rest, trained, _ = thin(3, seed, folder)
    return trained, rest, 3.0


def scattered(share: int, seed: int) -> Problem:
    """Add eleven features of noise to `thin`, and scatter the weights that are trained on by a factor of ten."""
    rng = np.random.default_rng(seed)

    def widen(data: Dataset, scatter: bool) -> Dataset:
        return Dataset([Sample(s.name, s.role, _widen(s.events, rng, scatter)) for s in data.samples])

    trained, rest, scale = thin(share, seed)
    return widen(trained, True), widen(rest, False), scale


def _widen(events: Events, rng: np.random.Generator, scatter: bool) -> Events:
    n = events.n_rows
    columns = {name: events.column(name) for name in events.features}
    columns |= {f"noise{i}": rng.normal(size=n) for i in range(11)}
    factor = np.exp(rng.uniform(0.0, np.log(10.0), n)) if scatter else np.ones(n)
    ids = {"event_number": events.identifier("event_number")}
    return Events(columns, events.weight * factor / factor.mean(), ids)


def smooth(n: int, seed: int) -> Problem:
    """Make the synthetic problem of INFERNO, whose densities are smooth: few trees are best."""
    return inferno(n, seed).with_systematics([]), inferno(100_000, 100 + seed).with_systematics([]), 1.0


PROBLEMS: Mapping[str, Callable[[int], Problem]] = {
    "bundled, 1/8": lambda seed: thin(8, seed),
    "bundled, 1/2": lambda seed: thin(2, seed),
    "bundled, 1/4, noise, scattered weights": lambda seed: scattered(4, seed),
    "INFERNO, 5 000 of each": lambda seed: smooth(5_000, seed),
}


def last(folds: Sequence[FittedRatio]) -> int:
    """All trees."""
    return max(number for fold in folds for number in fold.looks)


def best(folds: Sequence[FittedRatio]) -> int:
    """The number with the smallest σ_μ of all folds."""
    numbers = sorted({number for fold in folds for number in fold.looks})
    return max(numbers, key=lambda number: sum(fold.at(number) ** -2 for fold in folds))


RULES = {"one error": choose_size, "best": best, "all": last}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sample", type=Path, help="folder that qbdt generate tautaugamma wrote")
    given = parser.parse_args()
    seeds, folder = range(1, given.seeds + 1), given.sample
    problems = dict(PROBLEMS) | ({"large, two thirds": partial(large, folder)} if folder else {})
    for name, make in problems.items():
        found = [measure(make(seed)) for seed in seeds]
        rows: list[tuple[str, ...]] = []
        for variant in VARIANTS:
            values = [[one[variant, rule] for one in found] for rule in RULES]
            rows.append((*(f"{x:g}" for x in variant), *(f"{np.mean(v):.4f} ± {_error(v):.4f}" for v in values)))
        columns = ("trees", "leaves", "ridge", "least", *RULES)
        show([Table(f"{name}: 1/σ_μ without sources, {len(seeds)} divisions", columns, tuple(rows))])


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def measure(problem: Problem) -> dict[tuple[Variant, str], float]:
    """Train every variant, and fit with every rule for the number of trees."""
    trained, rest, scale = problem
    found = {}
    for variant in VARIANTS:
        kept: list[Sequence[FittedRatio]] = []

        def keep(folds: Sequence[FittedRatio], kept: list[Sequence[FittedRatio]] = kept) -> int:
            kept.append(folds)
            return choose_size(folds)

        n_trees, n_leaves, ridge, least = variant
        with patch.multiple(ratio, RIDGE=ridge, LEAST=least), patch.object(method, "choose_size", keep):
            train(trained, Settings(n_trees=n_trees, n_leaves=n_leaves))
        for rule, choose in RULES.items():
            score = _model(kept[-1], choose(kept[-1]), trained.features)
            found[variant, rule] = 1.0 / _sigma(rest, score, scale)
    return found


def _model(folds: Sequence[FittedRatio], size: int, features: tuple[str, ...]) -> Ensemble:
    chosen = [fold.trees[:size] for fold in folds]
    trees = [Tree(nodes, w / len(folds)) for own in chosen for nodes, w in zip(own, fade(len(own)), strict=True)]
    return Ensemble(features, tuple(trees))


def _sigma(rest: Dataset, model: Ensemble, scale: float) -> float:
    scored = rest.transform(lambda events: {"score": model.score(events)})
    return measure_scores(scored, "equal_signal", 20, scale).sigma_stat


if __name__ == "__main__":
    main()
