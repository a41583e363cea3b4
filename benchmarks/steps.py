"""Where the time of S1 goes: steps of a training by the paper's method, and the histogram kernel alone.

Run:  python -m benchmarks.steps [--rows N] [--threads N …]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.peers import TREES
from benchmarks.problems import events
from qbdt import QBDTClassifier
from qbdt.arrays import BINS, FEATURES_PER_WORD
from qbdt.tables import Table
from qbdt.training.paper.criterion import PaperCriterion
from qbdt.training.paper.weighted_rows import WeightedRows
from qbdt.trees.kernels import add_rows

STEPS: dict[tuple[type, str], str] = {
    (WeightedRows, "quantise"): "weights to fixed point",
    (WeightedRows, "split"): "rows of nodes divided",
    (WeightedRows, "multiply"): "weights boosted",
    (PaperCriterion, "best_split"): "cuts judged",
}


@contextmanager
def timed() -> Iterator[Counter[str]]:
    """Seconds of each step of the trainings inside."""
    seconds: Counter[str] = Counter()

    def watch(work: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            begin = time.perf_counter()
            found = work(*arguments, **options)
            seconds[name(*arguments)] += time.perf_counter() - begin
            return found

        return run

    def name_node(_: WeightedRows, node: int) -> str:
        return "histograms of roots" if node == 0 else "histograms of smaller children"

    old = {(owner, name): getattr(owner, name) for owner, name in (*STEPS, (WeightedRows, "histogram"))}
    for (owner, name), work in old.items():
        told = STEPS.get((owner, name))
        setattr(owner, name, watch(work, name_node if told is None else lambda *_, told=told: told))
    try:
        yield seconds
    finally:
        for (owner, name), work in old.items():
            setattr(owner, name, work)


def measure_steps(rows: int, threads: int) -> Table:
    """Train S1 once, step by step."""
    X, y = events(rows)
    model = QBDTClassifier(method="paper", n_trees=TREES, n_threads=threads)
    QBDTClassifier(method="paper", n_trees=2, n_threads=threads).fit(X[:5000], y[:5000])  # compiles
    with timed() as seconds:
        begin = time.perf_counter()
        model.fit(X, y, np.ones(rows))
        total = time.perf_counter() - begin
    seconds["all else: binning, Python"] = total - sum(seconds.values())
    lines = [(name, f"{value:.2f}", f"{100 * value / total:.0f}") for name, value in seconds.most_common()]
    return Table(f"S1, {rows:,} rows, threads: {threads}: {total:.2f} s", ("step", "s", "%"), tuple(lines))


def measure_kernel(rows: int = 1_000_000, repeats: int = 20) -> float:
    """Nanoseconds of CPU for each row and feature of the histogram of a root, eight features."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**63, (1, rows)).astype(np.uint64)
    weights, sums = rng.integers(0, 2**40, rows), np.zeros(FEATURES_PER_WORD * BINS, np.int64)
    share, order = np.array([[0, 0, rows]]), np.empty(0, np.int32)
    best = np.inf
    for _ in range(repeats):
        begin = time.thread_time()
        add_rows(words, weights, FEATURES_PER_WORD, order, True, share, sums)
        best = min(best, time.thread_time() - begin)
    return best / (rows * FEATURES_PER_WORD) * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    for threads in options.threads:
        print(measure_steps(options.rows, threads), end="\n\n")
    print(f"histogram of a root: {measure_kernel():.2f} ns for each row and feature, one thread")


if __name__ == "__main__":
    main()
