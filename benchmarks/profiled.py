"""S5: the profiled method with four sources against one XGBoost fit, and what its folds gain side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measuring import Times, race
from benchmarks.problems import FEATURES, events, weight_sources
from qbdt.data import Dataset
from qbdt.tables import Table
from qbdt.training import Settings, train

N_SOURCES, PEER_TREES, PEER_DEPTH = 4, 300, 4
MARK = 4.0
GAIN_MARKS = {2: 1.8, 16: 8.0}
"""Times that so many threads must be as fast as one."""


def make_dataset(rows: int) -> tuple[Dataset, Any, Any]:
    """Events with a hundredth of the weight in the signal, as they are where a fit is needed."""
    X, y = events(rows, dtype=np.float32)
    w = np.where(y == 1, 0.01, 1.0)
    return Dataset.from_arrays(X, y, w, weight_sources(X, w, N_SOURCES)), X, y


def train_xgboost(X: Any, y: Any, threads: int) -> None:
    import xgboost

    data = xgboost.QuantileDMatrix(X, y, max_bin=256, nthread=threads)
    options = {"max_depth": PEER_DEPTH, "nthread": threads, "objective": "binary:logistic", "max_bin": 256}
    xgboost.train({**options, "tree_method": "hist"}, data, PEER_TREES)


def judge(name: str, times: dict[str, Times], threads: int) -> str:
    """Whether a mark holds: of times on an idle machine, else of CPU seconds where one thread is compared."""
    ours, quiet = times["qbdt profile"], all(run.quiet for run in times.values())
    if not quiet and (threads > 1 or name != "qbdt profile"):
        return "not told: the machine was busy"
    if name == "qbdt profile":
        peer = times["XGBoost"]
        ratio = ours.best / peer.best if quiet else ours.best_own / peer.best_own
        unit = "" if quiet else " in CPU seconds"
        return f"{ratio:.1f} × XGBoost{unit} (mark {MARK:g}: {'yes' if ratio <= MARK else 'NO'})"
    gain, mark = times[name].best / ours.best, GAIN_MARKS.get(threads)
    told = "" if mark is None else f" (mark {mark:g}: {'yes' if gain >= mark else 'NO'})"
    return f"{threads} threads are {gain:.2f} × as fast{told}"


def profiled(rows: int, threads: int, repeats: int) -> tuple[Table, dict[str, Any]]:
    """Trainings with some threads, and with one; XGBoost with as many."""
    dataset, X, y = make_dataset(rows)
    train(dataset.select(lambda one: np.arange(0, one.n_rows, 50)), Settings(n_trees=2), n_threads=threads)  # compiles
    runs: dict[str, Callable[[], object]] = {
        "qbdt profile": lambda: train(dataset, Settings(), n_threads=threads),
        "XGBoost": lambda: train_xgboost(X, y, threads),
    }
    if threads > 1:
        runs["qbdt profile, one thread"] = lambda: train(dataset, Settings(), n_threads=1)
    times = race(runs, repeats)
    lines = tuple(
        (
            name,
            f"{run.best:.2f}",
            f"{run.best_own:.2f}",
            f"{max(run.others):.2f}",
            "–" if name == "XGBoost" else judge(name, times, threads),
        )
        for name, run in times.items()
    )
    what = f"{rows:,} rows × {FEATURES} features, {N_SOURCES} weight-type sources"
    title = f"S5: training at defaults, {what}; XGBoost: {PEER_TREES} trees of depth {PEER_DEPTH}; threads: {threads}"
    header = ("contestant", "s (minimum)", "CPU s (minimum)", "cores used by others", "holds")
    return Table(title, header, lines), {name: run.to_dict() for name, run in times.items()}
