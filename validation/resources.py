"""Estimates of memory and time beside what came:  python -m validation.resources [--rows N …] [--memory SIZE].

Writes events as Parquet, with twelve features, a shape source with both sides, a weight source and a norm source, then
trains by two folds in processes of their own, both methods, on several numbers of background events. Beside the peak of
memory of each stands the estimate, and beside its time too: CPU time of all threads against the estimate for one, which
a busy machine changes least. Trainings whose estimate is above --memory are repeated within that limit, out of core;
pages of mapped files do not count there, which the system takes back when it likes. The model must be the same file.
Ends with 1 where an estimate of a training in memory is off by more than a factor of 1.5, or a model is another.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qbdt.analysis import read_analysis
from qbdt.analysis.resources import ResourcePlan, format_size, read_size
from qbdt.tables import Table, show

N_FEATURES = 12

MOST = 1.5
"""Factor within which estimates are to hold."""

ANALYSIS = """\
name: sizes
features: [FEATURES]
weight: w
samples:
  signal: {role: signal, files: signal.parquet}
  background: {role: background, files: background.parquet}
systematics:
  scale: {kind: shape, processes: background, up: {columns: {f0: f0 * 1.03}}, down: {columns: {f0: f0 * 0.97}}}
  tilt: {kind: weight, processes: background, up: nominal * (1 + 0.05 * f1), down: nominal * (1 - 0.05 * f1)}
  xs: {kind: norm, processes: background, size: 0.1}
folds: {columns: event, k: 2}
training: {method: METHOD, n_trees: TREES}
"""


def write_inputs(folder: Path, n_rows: int, n_trees: int) -> None:
    """Write the events, and an analysis for each method."""
    rng = np.random.default_rng(1)
    for name, centre, n in (("signal", 0.4, n_rows // 10), ("background", 0.0, n_rows)):
        columns: dict[str, Any] = {f"f{j}": rng.normal(centre / (1 + j), 1, n).astype("f4") for j in range(N_FEATURES)}
        columns["w"] = rng.uniform(0.5, 1.5, n) * (1e2 if name == "signal" else 1e4) / n
        table = pa.table({**columns, "event": np.arange(n)})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=50_000)
    features = ", ".join(f"f{j}" for j in range(N_FEATURES))
    text = ANALYSIS.replace("FEATURES", features).replace("TREES", str(n_trees))
    for method in ("paper", "profile"):
        (folder / f"{method}.yaml").write_text(text.replace("METHOD", method))


class Used(NamedTuple):
    """What a process used: peak of memory, of it without pages of mapped files, CPU seconds and seconds."""

    peak: int
    anonymous: int
    cpu: float
    seconds: float


def train(analysis: Path, model: Path, *options: str) -> Used:
    """Run `qbdt train` in a process of its own."""
    words = [sys.executable, "-m", "qbdt", "train", str(analysis), "-o", str(model), "--force", "-q", *options]
    begin, before, peak = time.monotonic(), os.times(), {"RssAnon": 0, "VmHWM": 0}
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        peak = {name: max(size, _read_status(process.pid, name)) for name, size in peak.items()}
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    after = os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    return Used(peak["VmHWM"], peak["RssAnon"], cpu, time.monotonic() - begin)


def _read_status(process: int, name: str) -> int:
    """Bytes that a line of a process's status says."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(name):
                return 1024 * int(line.split()[1])
    return 0


def compare(folder: Path, n_rows: int, method: str, n_threads: int) -> tuple[str, ...]:
    """Train in memory; return the row of the table."""
    path = folder / f"{method}.yaml"
    memory = ResourcePlan(read_analysis(path), folder, None, n_threads).estimate.memory
    seconds = ResourcePlan(read_analysis(path), folder, None, 1).seconds
    used = train(path, folder / "whole.qbdt", "-j", str(n_threads))
    sizes = (format_size(memory), format_size(used.peak), f"{memory / used.peak:.2f}")
    times = (f"{seconds:.0f}", f"{used.cpu:.0f}", f"{seconds / used.cpu:.2f}", f"{used.seconds:.0f}")
    return (f"{n_rows:,}", method, *sizes, *times)


def limit(folder: Path, n_rows: int, method: str, n_threads: int, memory: str) -> tuple[str, ...]:
    """Train within a limit; return the row of the table."""
    used = train(folder / f"{method}.yaml", folder / "parts.qbdt", "-j", str(n_threads), "--memory", memory)
    same = (folder / "parts.qbdt").read_bytes() == (folder / "whole.qbdt").read_bytes()
    sizes = (memory, format_size(used.anonymous), format_size(used.peak))
    return (f"{n_rows:,}", method, *sizes, f"{used.seconds:.0f}", "the same" if same else "ANOTHER")


def find_wrong(whole: Sequence[tuple[str, ...]], parts: Sequence[tuple[str, ...]]) -> list[str]:
    """Trainings whose estimate of memory or time is off by more than it may be, or whose model is another."""
    off = [row for row in whole if any(not 1 / MOST <= float(row[i]) <= MOST for i in (4, 7))]
    return [" ".join(row[:2]) for row in (*off, *(row for row in parts if row[-1] != "the same"))]


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000, 400_000, 1_500_000])
    parser.add_argument("--trees", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="600MB", help="limit within which large trainings are repeated")
    options = parser.parse_args()
    whole, parts = [], []
    for n_rows in options.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_inputs(folder, n_rows, options.trees)
            for method in ("paper", "profile"):
                if n_rows == options.rows[0]:  # kernels are compiled once, and not counted
                    train(folder / f"{method}.yaml", folder / "first.qbdt", "-j", str(options.threads))
                whole.append(compare(folder, n_rows, method, options.threads))
                print(*whole[-1], file=sys.stderr, flush=True)
                if ResourcePlan(read_analysis(folder / f"{method}.yaml"), folder).estimate.memory > read_size(
                    options.memory
                ):
                    parts.append(limit(folder, n_rows, method, options.threads, options.memory))
                    print(*parts[-1], file=sys.stderr, flush=True)
    first, memory, cpu = ("background events", "method"), "memory, estimated", "CPU s, estimated"
    show([Table("In memory", (*first, memory, "peak", "ratio", cpu, "used", "ratio", "s"), tuple(whole))])
    heads = (*first, "limit", "peak", "with mapped files", "s", "model")
    show([Table("Out of core", heads, tuple(parts))])
    if wrong := find_wrong(whole, parts):
        print(f"off by more than {MOST}, or another model: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
