"""What measuring several strengths costs: CPU seconds of a training of the profiled method by their number.

Run:  python -m benchmarks.strengths [--events N] [--trees N]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from qbdt.data import Dataset, Events, Role, Sample, Systematic
from qbdt.tables import Table
from qbdt.training import Settings, train

FEATURES, MOST = 8, 5


def make_dataset(n: int, n_signals: int) -> Dataset:
    """Signals that each stand out in a feature of their own, over one background with two sources."""
    rng = np.random.default_rng(1)

    def sample(name: str, role: Role, at: int | None, total: float) -> Sample:
        X = rng.normal(size=(n, FEATURES))
        if at is not None:
            X[:, at] += 1.5
        columns = {f"x{i}": X[:, i] for i in range(FEATURES)}
        return Sample(name, role, Events(columns, np.full(n, total / n), {"event": np.arange(n)}))

    signals = [sample(f"s{i}", Role.SIGNAL, i, 100.0) for i in range(n_signals)]
    background = sample("b", Role.BACKGROUND, None, 10_000.0)
    sources = [
        Systematic.rescaling("tilt", {"b": 0.05 * np.tanh(background.events.column("x0"))}),
        Systematic.norm("xs", 0.1, processes=["b"]),
    ]
    return Dataset([*signals, background], sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=20_000, help="of each process")
    parser.add_argument("--trees", type=int, default=40)
    options = parser.parse_args()
    rows = []
    for number in (1, *range(1, MOST + 1)):  # the first compiles
        data = make_dataset(options.events, number)
        strengths = {f"mu_s{i}": [f"s{i}"] for i in range(number)}
        begin = time.process_time()
        train(data, Settings(strengths=strengths, n_trees=options.trees), n_threads=1)
        seconds = time.process_time() - begin
        rows.append((str(number), f"{seconds:.2f}", f"{seconds / number:.2f}"))
    header = ("strengths", "CPU s", "for each")
    print(Table(f"{options.events:,} events of each process, {options.trees} trees a sum", header, tuple(rows[1:])))


if __name__ == "__main__":
    main()
