"""ggH and VBF of the CMS files: both strengths measured in as many cells, by qbdt and by a multi-class XGBoost.

Each division cuts the events into two folds by a hash of their rows. Every event is scored by the model of the other
fold, cells (or the bins of a category for each signal) for the events of one fold are chosen on the other, and a fit
with all seven sources and MC statistics gives σ of both strengths and the area of their contour. XGBoost has three
classes of equal total weight, the number of trees by early stopping on a fifth of the events, and as scores the
log-odds of each signal over the background. Of its six settings the one with the smallest contour is taken, on the
events that are fitted, which is in its favour. With `--scores` trainings are kept in a folder, and taken from there.

Run:  python -m validation.two_strengths FOLDER [--events N] [--trees N] [--divisions N] [--first N] [--scores FOLDER]
      (make two-strengths)
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, HashFolds, Role
from qbdt.data.samples import cms_htautau
from qbdt.inference import FitSettings
from qbdt.inference.strengths import fit_strengths
from qbdt.tables import Table
from qbdt.training import Settings, train

STRENGTHS = {"mu_ggH": ["ggh"], "mu_VBF": ["vbf"]}
CELLS = 40

TRIED = [{"max_depth": depth, "min_child_weight": least} for depth in (3, 5, 7) for least in (5.0, 50.0)]
"""Settings of XGBoost that are tried."""
PATIENCE, MOST = 30, 1000
"""Trees without a better loss after which XGBoost stops, and the most it may have."""

Scorer: TypeAlias = Callable[[Events], Floats]
Measured: TypeAlias = tuple[float, ...]
"""σ of each strength, and the square root of the determinant of their covariance."""


def fit_qbdt(dataset: Dataset, trees: int, n_threads: int | None) -> Scorer:
    """Train a score for each strength, with all sources."""
    model = train(dataset, Settings(strengths=STRENGTHS, n_trees=trees), n_threads=n_threads).ensemble
    return lambda events: model.score(events, n_threads)


def fit_xgboost(dataset: Dataset, settings: Mapping[str, float], n_threads: int | None) -> Scorer:
    """Train three classes on nominal events; scores are the log-odds of both signals over the background."""
    import xgboost

    groups = [dataset.of_role(Role.BACKGROUND), *([dataset.sample(name) for name in own] for own in STRENGTHS.values())]
    X, y, weight = [], [], []
    for label, samples in enumerate(groups):
        total = sum(sample.events.total for sample in samples)
        X += [sample.events.matrix() for sample in samples]
        y += [np.full(sample.events.n_rows, label) for sample in samples]
        weight += [sample.events.weight / total for sample in samples]
    table, labels, weights = np.concatenate(X), np.concatenate(y), np.maximum(np.concatenate(weight), 0.0)
    weights *= len(weights) / weights.sum()
    held = np.random.default_rng(1).random(len(labels)) < 0.2
    parts = [xgboost.DMatrix(table[own], labels[own], weight=weights[own]) for own in (~held, held)]
    common = {"objective": "multi:softprob", "num_class": len(groups), "eta": 0.1, "nthread": n_threads or 0}
    model = xgboost.train(
        {**common, **settings, "eval_metric": "mlogloss"},
        parts[0],
        MOST,
        evals=[(parts[1], "held")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )

    def score(events: Events) -> Floats:
        trees = (0, model.best_iteration + 1)
        margins = model.predict(xgboost.DMatrix(events.matrix()), iteration_range=trees, output_margin=True)
        return np.asarray(margins[:, 1:] - margins[:, :1], dtype=np.float64)

    return score


def score_by_folds(dataset: Dataset, fit: Callable[[Dataset], Scorer], kept: Path | None = None) -> Dataset:
    """Replace the features by scores of models that have not seen the events; those in a file, where it is there."""
    assert dataset.folds is not None
    if kept is not None and kept.exists():
        with np.load(kept) as file:
            known = iter([file[name] for name in file.files])
        return dataset.transform(lambda events: dict(zip(STRENGTHS, next(known).T, strict=True)))
    rule = dataset.folds
    scorers = [fit(dataset.without_fold(fold)) for fold in range(rule.k)]

    found: list[Floats] = []

    def compute(events: Events) -> dict[str, Floats]:
        fold, scores = rule.assign(events), np.empty((events.n_rows, len(STRENGTHS)))
        for number, scorer in enumerate(scorers):
            if np.any(fold == number):
                scores[fold == number] = scorer(events[fold == number])
        found.append(scores)
        return dict(zip(STRENGTHS, scores.T, strict=True))

    scored = dataset.transform(compute)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, *found)
    return scored


def measure(scored: Dataset, binning: str, scale: float) -> Measured:
    """Fit both strengths."""
    bins: Any = {"binning": binning, "bins": CELLS, "scale": scale}
    found = fit_strengths(scored, STRENGTHS, FitSettings(**bins, scan=False, noise=False)).expected
    sigmas = [one.sigma_mu for one in found.strengths]
    names = [parameter.name for parameter in found.parameters]
    rho = float(found.correlation[names.index("mu_ggH"), names.index("mu_VBF")])
    return (*sigmas, math.prod(sigmas) * math.sqrt(1 - rho**2))


def divide(dataset: Dataset, events: int, seed: int) -> tuple[Dataset, float]:
    """Take some events of each process, in two folds; also returns the factor to all of them."""
    largest = max(sample.events.n_rows for sample in dataset.samples)
    chosen = dataset if events >= largest else dataset.select(lambda one: _draw(one, events / largest))
    return chosen.with_folds(HashFolds(2, ("row",), seed)), dataset.total("background") / chosen.total("background")


def _draw(events: Events, share: float) -> Any:
    """Rows that are kept: the same of nominal and varied events."""
    return HashFolds(1000, ("row",), 99).assign(events) < 1000 * share


def run(
    dataset: Dataset, events: int, trees: int, seed: int, n_threads: int | None = None, kept: Path | None = None
) -> dict[str, Measured]:
    """Measure one division in every way; scores are kept in a folder, where there is one."""
    divided, scale = divide(dataset, events, seed)
    ways: Mapping[str, Sequence[Callable[[Dataset], Scorer]]] = {
        "qbdt": [lambda own: fit_qbdt(own, trees, n_threads)],
        "XGBoost": [partial(fit_xgboost, settings=settings, n_threads=n_threads) for settings in TRIED],
    }
    found = {}
    for name, fits in ways.items():
        files = [None if kept is None else kept / f"{name}-{number}-{seed}.npz" for number in range(len(fits))]
        scored = [score_by_folds(divided, fit, file) for fit, file in zip(fits, files, strict=True)]
        for binning, what in (("cells", "cells of both scores"), ("categories", "argmax, binned in its score")):
            tried = [measure(one, binning, scale) for one in scored]
            found[f"{name}, {what}"] = min(tried, key=lambda measured: measured[-1])
    return found


def summarise(found: Sequence[Mapping[str, Measured]]) -> Table:
    """Mean and spread over divisions, and the mean ratio to the first row."""
    first = np.array([next(iter(one.values())) for one in found])
    rows = []
    for name in found[0]:
        own = np.array([one[name] for one in found])
        spread = own.std(axis=0, ddof=1) if len(own) > 1 else np.zeros(own.shape[1])
        ratio = 100 * ((own / first).mean(axis=0) - 1)
        cells = zip(own.mean(axis=0), spread, ratio, strict=True)
        rows.append((name, *(f"{mean:.3f} ± {by:.3f} ({more:+.1f} %)" for mean, by, more in cells)))
    header = ("method", "σ of μ(ggH)", "σ of μ(VBF)", "√det of both")
    return Table(
        f"{len(found)} divisions, {CELLS} cells; in brackets the mean ratio to the first row", header, tuple(rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="with the seven files of CMS Open Data record 12350")
    parser.add_argument("--events", type=int, default=10**9, help="events of the largest process; all by default")
    parser.add_argument("--trees", type=int, default=1000, help="most trees of a sum of qbdt")
    parser.add_argument("--divisions", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="number of the first division; others have other folds")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--scores", type=Path, help="folder in which scores are kept, so that cells can be tried")
    options = parser.parse_args()
    started, dataset, found = time.perf_counter(), cms_htautau(options.folder), []
    for seed in range(options.first, options.first + options.divisions):
        found.append(run(dataset, options.events, options.trees, seed, options.threads, options.scores))
        print(summarise(found), f"{time.perf_counter() - started:.0f} s", sep="\n", flush=True)


if __name__ == "__main__":
    main()
