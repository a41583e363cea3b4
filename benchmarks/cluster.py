"""Training on Dask workers:  python -m benchmarks.cluster [--rows N] [--trees N] [--repeats N] [--json FILE].

Three tables. Fixed rows over 1 and 2 workers, next to the local store with as many threads; rows growing with workers;
and the cost model: its constants as found here, and what they give for 1 000 workers and 10 billion rows. Rows are made
on the workers, so nothing but calls and histograms travels. Wants an idle machine with as many cores as workers.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.data import Dataset
from qbdt.tables import Table
from qbdt.training.methods import train
from qbdt.training.monitor import Monitor
from qbdt.training.partitions.dask.cluster import connect
from qbdt.training.partitions.dask.partitions import OnCluster, Traffic
from qbdt.training.settings import Settings

N_FEATURES = 28
BLOCK = 250_000


@dataclass(frozen=True)
class MadePart:
    """Rows that are made where they are trained on: some blocks of a fixed sequence."""

    blocks: tuple[int, ...]

    def __call__(self) -> Dataset:
        x = np.empty((BLOCK * len(self.blocks), N_FEATURES), dtype=np.float32)
        y = np.empty(len(x), dtype=np.int8)
        for i, block in enumerate(self.blocks):
            rng = np.random.default_rng(block)
            own = slice(i * BLOCK, (i + 1) * BLOCK)
            y[own] = rng.integers(0, 2, BLOCK)
            x[own] = rng.standard_normal((BLOCK, N_FEATURES), dtype=np.float32)
            x[own] += y[own, None] / np.arange(2, N_FEATURES + 2, dtype=np.float32)
        return Dataset.from_arrays(x, y)


def parts(rows: int, count: int) -> list[MadePart]:
    shares = np.array_split(np.arange(max(count, rows // BLOCK)), count)
    return [MadePart(tuple(share.tolist())) for share in shares]


def seconds_per_tree(events: Any, n_trees: int, n_threads: int) -> tuple[float, Any]:
    marks: list[float] = []
    monitor = Monitor(callbacks=(lambda _: marks.append(time.perf_counter()),))
    trained = train(events, Settings(method="paper", n_trees=n_trees), n_threads=n_threads, monitor=monitor)
    return float(np.median(np.diff(marks))), trained


@dataclass
class Found:
    """One measurement."""

    rows: int
    workers: int
    seconds: float
    local: float | None
    traffic: dict[str, float]
    memory: list[float]


def on_cluster(rows: int, workers: int, n_trees: int, repeats: int, with_local: bool) -> Found:
    with connect("local", workers) as client:
        best: tuple[float, Traffic] | None = None
        for _ in range(repeats):
            traffic = Traffic()
            events = OnCluster(parts(rows, 2 * workers), client=client, traffic=traffic)
            seconds, trained = seconds_per_tree(events, n_trees, 1)
            best = min(best or (math.inf, traffic), (seconds, traffic), key=lambda one: one[0])
        memory = sorted(client.run(peak_memory).values())
    assert best is not None
    local = None
    if with_local:
        dataset = MadePart(tuple(range(max(2 * workers, rows // BLOCK))))()
        times = []
        for _ in range(repeats):
            local_seconds, same = seconds_per_tree(dataset, n_trees, workers)
            times.append(local_seconds)
        local = min(times)
        assert [t.weight for t in same.ensemble.trees] == [t.weight for t in trained.ensemble.trees]
    return Found(rows, workers, best[0], local, asdict(best[1]), memory)


def trip_cost(workers: int, n_trees: int) -> dict[str, float]:
    """Seconds, and CPU seconds of the driver and of one worker, of a round trip with hardly any rows."""
    with connect("local", workers) as client:
        traffic = Traffic()
        parts = [SmallPart(MadePart((block,))) for block in range(workers)]
        marks = []

        def mark(report: Any) -> None:
            if report.index in (1, n_trees - 1):
                cpu = (time.process_time(), *client.run(time.process_time).values())
                marks.append((traffic.trips, traffic.waiting, *cpu))

        events = OnCluster(parts, client=client, traffic=traffic)
        train(events, Settings(method="paper", n_trees=n_trees), n_threads=1, monitor=Monitor(callbacks=(mark,)))
        n, *spent = (late - early for early, late in zip(*marks, strict=True))
        seconds, driver, *others = (value / n for value in spent)
        return {"seconds": seconds, "CPU driver": driver, "CPU worker": max(others)}


@dataclass(frozen=True)
class SmallPart:
    """A thousandth of a part."""

    part: MadePart

    def __call__(self) -> Dataset:
        return self.part().select(lambda events: np.arange(0, events.n_rows, 1000))


def peak_memory() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def table(title: str, found: Sequence[Found]) -> Table:
    rows = []
    for one in found:
        t = one.traffic
        ratio = "" if one.local is None else f"{one.seconds / one.local:.2f}"
        local = "" if one.local is None else f"{one.local:.3f}"
        communication = f"{t['waiting'] / t['trees']:.3f}"
        per_split = f"{t['received'] / max(t['splits'], 1) / 1e3:.0f}"
        memory = f"{max(one.memory):.2f}"
        rows.append(
            (f"{one.rows:,}", str(one.workers), f"{one.seconds:.3f}", local, ratio, communication, per_split, memory)
        )
    header = ("rows", "workers", "s/tree", "local s/tree", "ratio", "waiting s/tree", "kB/split", "peak GiB/worker")
    return Table(title, header, tuple(rows))


@dataclass(frozen=True)
class CostModel:
    """Seconds of one tree on W workers, each with one thread.

    compute = row_seconds · rows / W
    a trip  = depth · (latency + fan_in · message / bandwidth),  depth = levels of the tree of workers
    message = 8 bytes · features · 256 bins · channels
    trips   = leaves + (questions about details)
    """

    row_seconds: float
    latency: float
    bandwidth: float = 1.25e9
    fan_in: int = 8

    def depth(self, workers: int) -> int:
        depth, reached = 1, self.fan_in
        while reached < workers:
            depth += 1
            reached += self.fan_in**depth
        return depth

    def message(self, features: int, channels: int) -> int:
        return 8 * features * 256 * channels

    def seconds(self, rows: float, workers: int, *, features: int, channels: int, trips: int) -> tuple[float, float]:
        """Seconds of computing and of communication."""
        hop = self.latency + self.fan_in * self.message(features, channels) / self.bandwidth
        return self.row_seconds * rows / workers, trips * self.depth(workers) * hop


def predictions(model: CostModel) -> Table:
    rows = []
    for n_rows, workers, channels, trips in (
        (1e10, 1000, 2, 8),
        (1e10, 1000, 2, 20),
        (1e10, 1000, 20, 20),
        (1e10, 10_000, 2, 8),
        (1e9, 1000, 2, 8),
    ):
        computing, talking = model.seconds(n_rows, workers, features=N_FEATURES, channels=channels, trips=trips)
        cells = (f"{n_rows:.0e}", f"{workers:,}", channels, trips, model.depth(workers))
        rows.append((*map(str, cells), f"{computing:.2f}", f"{talking:.2f}", f"{computing + talking:.2f}"))
    header = ("rows", "workers", "channels", "trips", "depth", "computing s/tree", "communication s/tree", "s/tree")
    return Table("What the cost model gives (28 features)", header, tuple(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    strong = [on_cluster(options.rows, n, options.trees, options.repeats, True) for n in options.workers]
    print(table("Fixed rows", strong), end="\n\n", flush=True)
    share = options.rows // max(options.workers)
    weak = [on_cluster(share * n, n, options.trees, options.repeats, False) for n in options.workers]
    print(table("Rows growing with workers", weak), end="\n\n", flush=True)
    trip = trip_cost(max(options.workers), 5 * options.trees)
    print("a round trip: " + ", ".join(f"{name} {value * 1e3:.2f} ms" for name, value in trip.items()), end="\n\n")
    one = strong[0]
    row_seconds = one.traffic["computing"] / one.traffic["trees"] / one.rows
    latency = min(found.traffic["waiting"] / found.traffic["trips"] for found in (*strong, *weak))
    model = CostModel(row_seconds, latency)
    print(f"constants: {row_seconds * 1e9:.2f} ns per row and tree; {latency * 1e3:.2f} ms per trip\n")
    print(predictions(model))
    if options.json:
        content = {
            "trip": trip,
            "fixed": [asdict(f) for f in strong],
            "growing": [asdict(f) for f in weak],
            "model": asdict(model),
        }
        options.json.write_text(json.dumps(content, indent=2))


if __name__ == "__main__":
    main()
