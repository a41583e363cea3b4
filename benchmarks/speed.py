"""S1–S3: training and scoring against all peers that are installed, in one run on the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from benchmarks.measuring import Times, race
from benchmarks.peers import LEAVES, TREES, installed_peers
from benchmarks.problems import events, scattered_sources, shape_sources, weight_sources
from qbdt import QBDTClassifier
from qbdt.tables import Table

MARK_S1, MARK_S3 = 0.5, 1.0
MARKS_S2 = {"7 weight": 2.0, "7 weight, scattered": 2.0, "7 shape": 1.2}


def limited(name: str, threads: int) -> Any:
    """scikit-learn takes its threads from the surroundings."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(threads) if name == "scikit-learn" else nullcontext()


def _ours(threads: int) -> Any:
    return QBDTClassifier(method="paper", n_trees=TREES, n_threads=threads)


def contestants(X: Any, y: Any, w: Any, threads: int) -> tuple[dict[str, Callable[[], Any]], dict[str, Any]]:
    """Training runs by name; the trained models are left in the second result."""
    models: dict[str, Any] = {}
    known = {"qbdt": _ours, **installed_peers()}

    def run(name: str) -> Callable[[], Any]:
        def work() -> None:
            model = known[name](threads)
            with limited(name, threads):
                model.fit(X, y, sample_weight=w)
            models[name] = model

        return work

    return {name: run(name) for name in known}, models


def scoring(models: dict[str, Any], X: Any, threads: int) -> dict[str, Callable[[], Any]]:
    def run(name: str) -> Callable[[], Any]:
        def work() -> None:
            with limited(name, threads), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # LightGBM names the columns of arrays and then misses the names
                models[name].predict_proba(X)

        return work

    return {name: run(name) for name in models}


def verdict(times: dict[str, Times], mark: float, threads: int) -> str:
    """Ratio to the fastest peer and whether the mark holds.

    Where others used the machine there is no ratio of times; with one thread there is one of CPU seconds, which others
    disturb little (with several, peers spin while they wait, and CPU seconds say nothing).
    """
    others = [run for name, run in times.items() if name != "qbdt"]
    if all(run.quiet for run in times.values()):
        ratio, unit = times["qbdt"].best / min(run.best for run in others), ""
    elif threads == 1:
        ratio, unit = times["qbdt"].best_own / min(run.best_own for run in others), " in CPU seconds"
    else:
        return "not told: the machine was busy"
    return f"{ratio:.2f}{unit} (mark {mark}: {'yes' if ratio <= mark else 'NO'})"


def compared(title: str, times: dict[str, Times], mark: float, threads: int) -> Table:
    told = {"qbdt": verdict(times, mark, threads)}
    rows = tuple(
        (name, f"{run.best:.3f}", f"{run.best_own:.3f}", f"{max(run.others):.2f}", told.get(name, "–"))
        for name, run in times.items()
    )
    header = ("contestant", "s (minimum)", "CPU s (minimum)", "cores used by others", "to the fastest peer")
    return Table(f"{title}, threads: {threads}", header, rows)


def peers(rows: int, threads: int, repeats: int) -> tuple[list[Table], dict[str, Any]]:
    """S1 and S3."""
    X, y = events(rows)
    w = np.ones(rows)
    QBDTClassifier(method="paper", n_trees=2, n_threads=threads).fit(X[:5000], y[:5000], w[:5000]).predict_proba(
        X[:5000]
    )
    runs, models = contestants(X, y, w, threads)
    trained = race(runs, repeats)
    scored = race(scoring(models, X, threads), repeats)
    shape = f"{rows:,} rows × {X.shape[1]} features"
    tables = [
        compared(f"S1: training, {shape}, 256 bins, {TREES} trees × {LEAVES} leaves", trained, MARK_S1, threads),
        compared(f"S3: scoring, {shape}, {TREES} trees", scored, MARK_S3, threads),
    ]
    found = {
        stage: {name: run.to_dict() for name, run in runs.items()} for stage, runs in (("S1", trained), ("S3", scored))
    }
    return tables, found


def sources(rows: int, threads: int, repeats: int) -> tuple[list[Table], dict[str, Any]]:
    """S2: the same with seven sources of weight type, smooth and scattered from row to row, and of shape type."""
    X, y = events(rows)
    w = np.ones(rows)
    problems = {
        "none": [],
        "7 weight": weight_sources(X, w, 7),
        "7 weight, scattered": scattered_sources(w, 7),
        "7 shape": shape_sources(X, y, 7),
    }

    def run(name: str) -> Callable[[], Any]:
        return lambda: QBDTClassifier(method="paper", n_trees=TREES, n_threads=threads).fit(X, y, w, problems[name])

    for given in problems.values():
        QBDTClassifier(method="paper", n_trees=2, n_threads=threads).fit(X, y, w, given)
    times = race({name: run(name) for name in problems}, repeats)
    used = {name: rows + 7 * int((y == 0).sum()) * (name == "7 shape") for name in problems}
    lines = []
    for name, runs in times.items():
        quiet = runs.quiet and times["none"].quiet
        cost = {key: (run.best if quiet else run.best_own) / used[key] for key, run in times.items()}
        ratio, mark = cost[name] / cost["none"], MARKS_S2.get(name)
        told = "–" if mark is None else f"mark {mark}: {'yes' if ratio <= mark else 'NO'}{'' if quiet else ' (CPU s)'}"
        cells = (
            f"{runs.best:.3f}",
            f"{runs.best_own:.3f}",
            f"{max(runs.others):.2f}",
            f"{cost[name] * 1e9 / TREES:.2f}",
        )
        lines.append((name, f"{used[name]:,}", *cells, f"{ratio:.2f}", told))
    header = ("sources", "rows", "s", "CPU s", "others' cores", "ns per row and tree", "per row, to none", "holds")
    table = Table(f"S2: S1 with sources, threads: {threads}", header, tuple(lines))
    return [table], {"S2": {name: run.to_dict() for name, run in times.items()}}
