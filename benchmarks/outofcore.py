"""Training on more rows than fit in memory:  python -m benchmarks.outofcore --folder SCRATCH [--rows N] [--limit GIB].

Writes Parquet files with 28 features, then trains in a child process whose memory a control group limits (page cache
included), through the out-of-core store: so many background rows, a thirtieth of it signal, and two shape sources, each
with all background rows once more. Prints the time per tree and the disk rate next to the disk's own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

N_FEATURES = 28
ROWS_PER_FILE = 1_000_000
CGROUP = Path("/sys/fs/cgroup/memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, required=True, help="for input files and binned rows; 8 GB for 30 million"
    )
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--trees", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=4.0, help="GiB of memory, page cache included")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        print(json.dumps(train(options)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    write_files(options.folder, options.rows)
    with memory_limit(options.limit) as (how, group):
        command = [sys.executable, "-m", "benchmarks.outofcore", "--train", "--folder", str(options.folder)]
        for name in ("rows", "trees", "threads", "limit"):
            command += [f"--{name}", str(getattr(options, name))]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, env={**os.environ, "CGROUP": group})
    if done.returncode:
        raise SystemExit(f"training ended with {done.returncode}")
    found = {"limit": how, **json.loads(done.stdout), "disk": disk_rate(options.folder)}
    for name, value in found.items():
        print(f"{name:40} {value}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


def write_files(folder: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for sample, n_rows, centre in (("signal", max(rows // 30, 100), 0.4), ("background", rows, 0.0)):
        for i, low in enumerate(range(0, n_rows, ROWS_PER_FILE)):
            path = folder / f"{sample}{i:04}.parquet"
            n = min(ROWS_PER_FILE, n_rows - low)
            if path.exists() and pq.ParquetFile(path).metadata.num_rows == n:
                continue
            rng = np.random.default_rng([i, len(sample)])
            columns = {
                f"f{j}": rng.standard_normal(n, dtype=np.float32) + np.float32(centre / (1 + j))
                for j in range(N_FEATURES)
            }
            weight = rng.uniform(0.5, 1.5, n).astype(np.float32)
            table = pa.table({**columns, "w": weight})
            pq.write_table(table, path, compression="none", use_dictionary=False, row_group_size=250_000)


def analysis(folder: Path) -> Any:
    from qbdt.analysis.analysis_file import parse_analysis

    scaled = {"scale": "{f0: f0 * 1.03, f1: f1 * 1.03}", "shift": "{f2: f2 + 0.05, f3: f3 - 0.05}"}
    sources = "\n".join(
        f"  {name}: {{kind: shape, processes: background, up: {{columns: {columns}}}}}"
        for name, columns in scaled.items()
    )
    text = f"""
name: out of core
features: [{", ".join(f"f{j}" for j in range(N_FEATURES))}]
weight: w
samples:
  signal: {{role: signal, files: "signal*.parquet"}}
  background: {{role: background, files: "background*.parquet"}}
systematics:
{sources}
"""
    return parse_analysis(text, str(folder))


@contextmanager
def memory_limit(gib: float) -> Any:
    """A control group with this much memory, or RLIMIT_DATA where there is none; yields what limits and where."""
    group = CGROUP / f"qbdt{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(int(gib * 2**30)))
    except OSError:
        yield f"RLIMIT_DATA {gib:g} GiB (no control groups here)", ""
        return
    try:
        yield f"control group {gib:g} GiB, page cache included", str(group)
    finally:
        with suppress(OSError):
            group.rmdir()


def train(options: argparse.Namespace) -> dict[str, Any]:
    if group := os.environ.get("CGROUP"):
        (Path(group) / "cgroup.procs").write_text(str(os.getpid()))
    else:
        limit = int(options.limit * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    from qbdt.analysis.loader import load_partitions
    from qbdt.training.methods import train as run
    from qbdt.training.monitor import Monitor
    from qbdt.training.partitions.disk import OutOfCore
    from qbdt.training.settings import Settings

    begin = time.perf_counter()
    marks: list[tuple[float, int, int, float]] = []

    def mark(_: Any) -> None:
        read, written = io_bytes()
        used = resource.getrusage(resource.RUSAGE_SELF)
        marks.append((time.perf_counter(), read, written, used.ru_utime + used.ru_stime))
        print(f"{len(marks)} trees after {marks[-1][0] - begin:.1f} s", file=sys.stderr, flush=True)

    count = max(2, options.rows // ROWS_PER_FILE)
    rows = OutOfCore(load_partitions(analysis(options.folder), options.folder, count), folder=options.folder)
    done = run(
        rows,
        Settings(method="paper", n_trees=options.trees),
        n_threads=options.threads,
        monitor=Monitor(callbacks=(mark,)),
    )
    n_nominal = sum(sample["rows"] for sample in done.data["samples"])
    first, last = marks[0], marks[-1]
    n = max(len(marks) - 1, 1)
    seconds = (last[0] - first[0]) / n
    return {
        "rows in all": n_nominal + 2 * options.rows,
        "seconds until the first tree": marks[0][0] - begin,
        "seconds per tree": seconds,
        "CPU seconds per tree": (last[3] - first[3]) / n,
        "GB read per tree": (last[1] - first[1]) / n / 1e9,
        "GB written per tree": (last[2] - first[2]) / n / 1e9,
        "GB/s from and to disk": (last[1] - first[1] + last[2] - first[2]) / n / seconds / 1e9,
        "peak GiB, page cache included": group_peak(),
        "peak GiB resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "trees": len(done.ensemble.trees),
    }


def group_peak() -> float | None:
    group = os.environ.get("CGROUP")
    return int((Path(group) / "memory.max_usage_in_bytes").read_text()) / 2**30 if group else None


def io_bytes() -> tuple[int, int]:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["read_bytes"]), int(fields["write_bytes"])


def disk_rate(folder: Path) -> dict[str, float]:
    """Sequential GB/s of the disk itself, past the page cache: one GB of the input files."""
    files = sorted(folder.glob("background*.parquet"))[:8]
    buffer, total, begin = bytearray(8 * 2**20), 0, time.perf_counter()
    for path in files:
        with path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while n := file.readinto(buffer):
                total += n
    reading = total / (time.perf_counter() - begin) / 1e9
    return {"GB/s reading": round(reading, 3)}


if __name__ == "__main__":
    main()
