"""Capacity of the first sum of trees:  python -m validation.capacity [--seeds N].

Trains F on a share of a sample and fits a histogram of it on all other events, so that the numbers are those of thin
samples with little noise of their own: 1/σ_μ without sources, for several ridges and least curvatures of a node, and
for several rules that choose the number of trees. Not a test: it takes a quarter of an hour.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from unittest.mock import patch

import numpy as np

from qbdt.data import Dataset, Events, HashFolds, Sample
from qbdt.data.samples import inferno, tautaugamma
from qbdt.studies.comparison.measurement import measure_scores
from qbdt.tables import Table, show
from qbdt.training import Settings, train
from qbdt.training.profile import method, ratio
from qbdt.training.profile.ratio import FittedRatio, choose_size, fade
from qbdt.trees import Ensemble, Tree

REGULARISATION = ((1.0, 5.0), (1.0, 1.0), (0.2, 0.2), (0.05, 0.05))
"""Ridge and least curvature; the first pair is that of earlier releases, the third the default."""

Problem = tuple[Dataset, Dataset, float]
"""Events to train on, events to fit, and how many are expected for each of the latter."""


def thin(share: int, seed: int) -> Problem:
    """Divide the bundled sample into one share to train on and the rest."""
    data = tautaugamma(k=2).with_systematics([])
    rule = HashFolds(share, ("event_number",), 1000 + seed)
    return data.select(lambda e: rule.assign(e) == 0), data.select(lambda e: rule.assign(e) != 0), share / (share - 1)


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
    seeds = range(1, parser.parse_args().seeds + 1)
    for name, make in PROBLEMS.items():
        found = [measure(make(seed)) for seed in seeds]
        rows: list[tuple[str, ...]] = []
        for ridge, least in REGULARISATION:
            values = [[one[ridge, least, rule] for one in found] for rule in RULES]
            rows.append((f"{ridge:g}", f"{least:g}", *(f"{np.mean(v):.4f} ± {_error(v):.4f}" for v in values)))
        show([Table(f"{name}: 1/σ_μ without sources, {len(seeds)} divisions", ("ridge", "least", *RULES), tuple(rows))])


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def measure(problem: Problem) -> dict[tuple[float, float, str], float]:
    """Train with every regularisation, and fit with every rule for the number of trees."""
    trained, rest, scale = problem
    found = {}
    for ridge, least in REGULARISATION:
        kept: list[Sequence[FittedRatio]] = []

        def keep(folds: Sequence[FittedRatio], kept: list[Sequence[FittedRatio]] = kept) -> int:
            kept.append(folds)
            return choose_size(folds)

        rules = {"RIDGE": ridge, "LEAST": least}
        with patch.multiple(ratio, **rules), patch.object(method, "choose_size", keep):
            train(trained, Settings(method="profile"))
        for rule, choose in RULES.items():
            score = _model(kept[-1], choose(kept[-1]), trained.features)
            found[ridge, least, rule] = 1.0 / _sigma(rest, score, scale)
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
