"""Speed on a GPU, against XGBoost in the same run:  python -m benchmarks.gpu [--rows N …] [--repeats N] [--json FILE].

Trees are timed after the data are on the device. The memory floor is the time in which the fewest bytes that a tree
must move, codes and weights of all rows read once and weights written once, pass through memory at the measured rate.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.profiled import make_dataset
from qbdt.data import Dataset, Events, Systematic
from qbdt.errors import require
from qbdt.tables import Table
from qbdt.training import Monitor, Settings, train
from qbdt.trees import Ensemble
from qbdt.trees.device import open_device, score_on_device

N_FEATURES, N_TREES, N_LEAVES, N_SOURCES = 28, 100, 7, 7
PAPER_MARKS = {1_000_000: 0.12, 10_000_000: 0.40}
PROFILE_MARK, SCORE_MARK = 30.0, 0.3


def table_of_events(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    logit = x[:, 0] + 0.5 * x[:, 1] * x[:, 2] - 0.7 * x[:, 3] + 0.3 * x[:, 4] ** 2
    return x, (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(np.int64)


def train_paper(dataset: Dataset) -> tuple[float, Any]:
    """Seconds for N_TREES trees, from those between the end of the first and the end of the last, and the model."""
    ends: list[float] = []

    def note(report: object) -> bool:
        ends.append(time.perf_counter())
        return False

    settings = Settings(method="paper", n_trees=N_TREES + 1, n_leaves=N_LEAVES)
    trained = train(dataset, settings, monitor=Monitor(callbacks=(note,)), device="cuda")
    return ends[-1] - ends[0], trained


def train_xgboost(x: Any, y: Any) -> list[tuple[str, Callable[[], float]]]:
    """Contestants, whose data are on the device already."""
    try:
        import xgboost
    except ImportError:
        return []
    cupy = require("cupy", "benchmarks.gpu")
    data = xgboost.QuantileDMatrix(cupy.asarray(x), cupy.asarray(y), max_bin=256)
    common = {"device": "cuda", "tree_method": "hist", "objective": "binary:logistic", "max_bin": 256}
    shapes = {
        "XGBoost, 7 leaves": {"grow_policy": "lossguide", "max_leaves": N_LEAVES, "max_depth": 0},
        "XGBoost, depth 3": {"max_depth": 3},
    }

    def run(options: dict[str, Any]) -> float:
        begin = time.perf_counter()
        xgboost.train({**common, **options}, data, N_TREES)
        return time.perf_counter() - begin

    return [(name, lambda options=options: run(options)) for name, options in shapes.items()]  # type: ignore[misc]


def copy_rate() -> float:
    """Bytes read and written per second by a large copy on the device."""
    cupy = require("cupy", "benchmarks.gpu")
    source, target = cupy.zeros(1 << 30, cupy.uint8), cupy.zeros(1 << 30, cupy.uint8)
    seconds = []
    for _ in range(5):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        cupy.copyto(target, source)
        cupy.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - begin)
    return float(2 * source.nbytes / min(seconds))


def compare_training(n: int, repeats: int, rate: float) -> tuple[Table, dict[str, list[float]]]:
    x, y = table_of_events(n)
    dataset = Dataset.from_arrays(x, y)
    train_paper(dataset)  # compiles
    found: dict[str, list[float]] = {"qbdt": []}
    peers = train_xgboost(x, y)
    for _ in range(repeats):
        found["qbdt"].append(train_paper(dataset)[0])
        for name, run in peers:
            found.setdefault(name, []).append(run())
    floor = n * (N_FEATURES + 8 + 8) * N_TREES / rate
    mark = PAPER_MARKS.get(n)
    rows = []
    for name, seconds in found.items():
        holds = f"mark {mark}: {'yes' if min(seconds) <= mark else 'NO'}" if mark and name == "qbdt" else "–"
        times = f"{min(seconds):.3f}", f"{float(np.median(seconds)):.3f}"
        rows.append((name, *times, f"{min(seconds) / floor:.0f}", holds))
    title = f"Training, paper's method, {n:,} rows × {N_FEATURES} features, {N_TREES} trees × {N_LEAVES} leaves"
    return Table(
        title, ("contestant", "s (minimum)", "s (median)", "times the memory floor", "holds"), tuple(rows)
    ), found


class CountedTrees:
    """A `Progress` that counts trees; a callback would have folds trained one after the other."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def __call__(self, description: str, total: int | None) -> Iterator[Callable[[int], None]]:
        yield self.advance

    def advance(self, done: int) -> None:
        self.count += done == 1


def profiled(n: int) -> tuple[Table, dict[str, Any]]:
    x, y = table_of_events(n)
    weight = np.where(y == 1, 0.01, 1.0)
    shifted = [np.where(y == 0, 1 + 0.1 * np.tanh(x[:, i]), 1.0) * weight for i in range(N_SOURCES)]
    sources = [Systematic.weight(f"k{i}", one) for i, one in enumerate(shifted)]
    dataset = Dataset.from_arrays(x, y, weight, sources)
    begin, trees = time.perf_counter(), CountedTrees()
    train(dataset, Settings(), progress=trees, device="cuda")
    seconds = time.perf_counter() - begin
    what = f"{n:,} rows × {N_FEATURES} features, {N_SOURCES} weight-type sources"
    title = f"Training, profiled method, {what}, from events in ordinary memory to the model"
    mark = f"mark {PROFILE_MARK:.0f}: {'yes' if seconds <= PROFILE_MARK else 'NO'}" if n >= 10_000_000 else "–"
    row = (f"{seconds:.1f}", f"{trees.count}", f"{1e3 * seconds / trees.count:.1f}", mark)
    table = Table(title, ("s", "trees grown", "ms per tree", "holds"), (row,))
    return table, {"seconds": seconds, "trees": trees.count}


def compare_pieces(n: int, free: int) -> tuple[Table, dict[str, float]]:
    """Both methods with few trees, at once and with so many bytes of memory, where rows take turns in pieces."""
    dataset, _, _ = make_dataset(n)
    pool = require("cupy", "benchmarks.gpu").get_default_memory_pool()
    rows, found = [], {}
    for method in ("paper", "profile"):
        models = []
        for limit in (0, free):  # 0: none
            pool.free_all_blocks()
            pool.set_limit(size=limit)
            begin = time.perf_counter()
            models.append(train(dataset, Settings(method=method, n_trees=5), device="cuda"))
            found[f"{method}, {limit} bytes"] = time.perf_counter() - begin
        pool.set_limit(size=0)
        same = "yes" if models[0].ensemble.trees == models[1].ensemble.trees else "NO"
        rows.append((method, *(f"{found[f'{method}, {limit} bytes']:.1f}" for limit in (0, free)), same))
    title = f"Training with 5 trees a sum, {n:,} rows, at once and with {free / 1e6:.0f} MB of memory"
    return Table(title, ("method", "s, at once", "s, in pieces", "same trees"), tuple(rows)), found


def score(n: int, repeats: int) -> tuple[Table, list[float]]:
    x, y = table_of_events(n)
    _, trained = train_paper(Dataset.from_arrays(x[:1_000_000], y[:1_000_000]))
    trees = tuple(trained.ensemble.trees[:N_TREES]) * 5
    ensemble = Ensemble(trained.ensemble.features, trees)
    events = Events({name: x[:, i] for i, name in enumerate(ensemble.features)}, np.ones(n))
    device = open_device("cuda")
    assert device is not None
    seconds = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        scores = score_on_device(ensemble, events, device)
        seconds.append(time.perf_counter() - begin)
    assert np.array_equal(scores[:100_000], ensemble.score(events[:100_000]))
    best = min(seconds[1:])
    holds = f"mark {SCORE_MARK}: {'yes' if best <= SCORE_MARK else 'NO'}"
    title = f"Scoring, {n:,} rows by {len(trees)} trees, from values in ordinary memory to scores there"
    return Table(title, ("s (minimum)", "holds"), ((f"{best:.3f}", holds),)), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rate = copy_rate()
    print(f"a copy on the device moves {rate / 1e12:.2f} TB/s\n", flush=True)
    found: dict[str, Any] = {"copy": rate}
    for n in options.rows:
        table, found[f"paper {n}"] = compare_training(n, options.repeats, rate)
        print(table, end="\n\n", flush=True)
    table, found["score"] = score(max(options.rows), options.repeats)
    print(table, end="\n\n", flush=True)
    profiled(100_000)  # compiles
    for n in options.rows:
        table, found[f"profile {n}"] = profiled(n)
        print(table, end="\n\n", flush=True)
    table, found["pieces"] = compare_pieces(1_000_000, 300_000_000)
    print(table, end="\n\n", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
