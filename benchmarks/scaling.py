"""S4: how time and memory grow with rows and with sources; and how long it takes to start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import FEATURES, events, shape_sources, weight_sources
from qbdt import QBDTClassifier
from qbdt.tables import Table

TREES = 20
ROWS = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
SOURCES = (0, 1, 3, 7, 20, 50)
SOURCE_ROWS = 200_000
WARM_ROWS = 80_000
"""Rows of two features fitted first, enough for every kernel to be loaded: machine code is not memory of a fit."""
MEMORY_MARK = FEATURES + 48
START_MARKS = {"import qbdt": 1.0, "first fit ever (compiling)": 10.0, "tiny fit, new process": 1.5}


def memory(field: str) -> int:
    """Resident memory of this process in bytes: VmRSS now, VmHWM at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def sources(X: Any, y: Any, w: Any, kind: str, n_sources: int) -> list[Any]:
    return weight_sources(X, w, n_sources) if kind == "weight" else shape_sources(X, y, n_sources)


def measure(rows: int, kind: str, n_sources: int, threads: int) -> dict[str, float]:
    """Time, and peak memory beyond the caller's arrays, of one fit in this process."""
    X, y = events(rows, dtype=np.float32)
    w = np.ones(rows)
    given = sources(X, y, w, kind, n_sources)
    narrow = np.ascontiguousarray(X[:WARM_ROWS, :2])
    warm = sources(narrow, y[:WARM_ROWS], w[:WARM_ROWS], kind, min(n_sources, 8))
    QBDTClassifier(method="paper", n_trees=2, n_threads=threads).fit(narrow, y[:WARM_ROWS], w[:WARM_ROWS], warm)
    Path("/proc/self/clear_refs").write_text("5")
    before, start = memory("VmRSS"), time.perf_counter()
    QBDTClassifier(method="paper", n_trees=TREES, n_threads=threads).fit(X, y, w, given)
    seconds = time.perf_counter() - start
    used = rows + (n_sources * int((y == 0).sum()) if kind == "shape" else 0)
    return {"seconds": seconds, "bytes_per_row": (memory("VmHWM") - before) / used, "rows": float(used)}


def in_process(*arguments: object) -> dict[str, float]:
    """Measure in a process whose allocator gives freed arrays back at once, so that what is resident is in use."""
    command = [sys.executable, "-m", "benchmarks.scaling", *map(str, arguments)]
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def best(repeats: int, *arguments: object) -> dict[str, float]:
    runs = [in_process(*arguments) for _ in range(repeats)]
    return {key: min(run[key] for run in runs) for key in runs[0]}


def by_rows(threads: int, repeats: int, rows: tuple[int, ...] = ROWS) -> tuple[Table, dict[str, Any]]:
    found = {str(n): best(repeats if n <= 1_000_000 else 1, n, "weight", 0, threads) for n in rows}
    lines = []
    for n, run in found.items():
        per_row = run["seconds"] / float(n) * 1e9 / TREES
        holds = "yes" if run["bytes_per_row"] <= MEMORY_MARK else "NO"
        lines.append((f"{int(n):,}", f"{run['seconds']:.2f}", f"{per_row:.1f}", f"{run['bytes_per_row']:.0f}", holds))
    slope = np.polyfit(list(map(float, found)), [run["seconds"] for run in found.values()], 1)
    title = f"S4: rows, {TREES} trees, {threads} threads; slope {slope[0] / TREES * 1e9:.1f} ns per row and tree"
    header = ("rows", "s", "ns per row and tree", "bytes per row", f"memory ≤ {MEMORY_MARK}")
    return Table(title, header, tuple(lines)), found


def by_sources(kind: str, threads: int, repeats: int) -> tuple[Table, dict[str, Any]]:
    found = {str(n): best(repeats, SOURCE_ROWS, kind, n, threads) for n in SOURCES}
    slope = np.polyfit(list(map(float, found)), [run["seconds"] for run in found.values()], 1)
    lines = tuple(
        (n, f"{int(run['rows']):,}", f"{run['seconds']:.2f}", f"{run['bytes_per_row']:.0f}") for n, run in found.items()
    )
    title = f"S4: {kind} sources, {SOURCE_ROWS:,} rows, {TREES} trees; {slope[0]:.3f} s per source"
    return Table(title, ("sources", "rows with variations", "s", "bytes per row"), lines), found


TINY = (
    "import time; t = time.perf_counter(); import numpy as np; from qbdt import QBDTClassifier; "
    "x = np.random.default_rng(0).normal(size=(1000, 4)); y = (x[:, 0] > 0) * 1; "
    "QBDTClassifier(n_trees=5).fit(x, y).predict_proba(x); print(time.perf_counter() - t)"
)


def start_up() -> tuple[Table, dict[str, Any]]:
    """Import, compile, and start with a warm cache, each in a new process."""

    def seconds(code: str, cache: str) -> float:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
        return float(done.stdout)

    load = "import time; t = time.perf_counter(); import qbdt; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as cache:
        found = {
            "import qbdt": min(seconds(load, cache) for _ in range(3)),
            "first fit ever (compiling)": seconds(TINY, cache),
            "tiny fit, new process": min(seconds(TINY, cache) for _ in range(3)),
        }
    lines = tuple(
        (what, f"{t:.2f}", f"{START_MARKS[what]:g}", "yes" if t <= START_MARKS[what] else "NO")
        for what, t in found.items()
    )
    return Table("Start-up", ("what", "s", "mark", "holds"), lines), found


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
