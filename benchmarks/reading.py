"""Reading against the libraries underneath: time, and peak memory over the arrays that are kept.

Writes its own files (10 million rows × 30 float32 columns by default) into a folder, reads each in a process of its own
and prints a table. Run:  python -m benchmarks.reading [--rows N] [--folder DIR] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import measure_apart
from qbdt.tables import Table

COLUMNS = [f"x{i}" for i in range(30)]
MARK_TIME, MARK_MEMORY = 1.5, 1.3


def write(folder: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import uproot

    random = np.random.default_rng(0)
    step = 1_000_000
    schema = pa.schema([(name, pa.float32()) for name in COLUMNS])
    with (
        pq.ParquetWriter(folder / "events.parquet", schema) as parquet,
        uproot.recreate(folder / "events.root") as root,
    ):
        root.mktree("Events", dict.fromkeys(COLUMNS, np.float32))
        for start in range(0, rows, step):
            n = min(step, rows - start)
            chunk = {name: random.standard_normal(n, dtype=np.float32) for name in COLUMNS}
            parquet.write_table(pa.table(chunk, schema=schema), row_group_size=250_000)
            root["Events"].extend(chunk)


def peer_parquet(folder: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(folder / "events.parquet", columns=COLUMNS)


def peer_root(folder: Path) -> Any:
    import uproot

    return uproot.open(folder / "events.root")["Events"].arrays(COLUMNS, library="np")


def ours(path: Path) -> Any:
    from qbdt.data.readers.request import read_events

    return read_events(str(path), COLUMNS)


READERS = {
    "pyarrow": peer_parquet,
    "qbdt Parquet": lambda folder: ours(folder / "events.parquet"),
    "uproot": peer_root,
    "qbdt ROOT": lambda folder: ours(folder / "events.root"),
}


def measure(reader: str, folder: Path) -> dict[str, float]:
    """Time and growth of memory of one reading in this process."""
    import pyarrow.parquet
    import uproot

    import qbdt.data.readers.arrow
    import qbdt.data.readers.root

    assert pyarrow.parquet
    assert uproot
    assert qbdt.data.readers.root
    assert qbdt.data.readers.arrow
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    kept = READERS[reader](folder)
    seconds = time.perf_counter() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert kept is not None
    return {"seconds": seconds, "peak_bytes": float(peak)}


def table(found: dict[str, dict[str, float]], rows: int) -> Table:
    kept = rows * (len(COLUMNS) * 4 + 8)
    lines = []
    for reader, peer in (("qbdt Parquet", "pyarrow"), ("qbdt ROOT", "uproot")):
        mine, theirs = found[reader], found[peer]
        ratio, memory = mine["seconds"] / theirs["seconds"], mine["peak_bytes"] / kept
        holds = ratio <= MARK_TIME and memory <= MARK_MEMORY
        cells = (f"{mine['seconds']:.2f}", peer, f"{theirs['seconds']:.2f}", f"{ratio:.2f}", f"{memory:.2f}")
        lines.append((reader, *cells, "yes" if holds else "NO"))
    header = ("reader", "s", "peer", "peer s", f"ratio (≤ {MARK_TIME})", f"peak / kept (≤ {MARK_MEMORY})", "holds")
    return Table(
        f"Reading {rows:,} rows × {len(COLUMNS)} float32 columns (minimum of the repeats)", header, tuple(lines)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measure", choices=READERS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.folder)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        write(Path(scratch), options.rows)
        found = measure_apart("benchmarks.reading", READERS, Path(scratch), options.repeats)
    print(table(found, options.rows))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
