"""All speed benchmarks:  python -m benchmarks [--rows N] [--threads N …] [--repeats N] [--only S1 …] [--json FILE].

Wants an idle machine: a ratio is not printed where other processes used more than a little of it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import profiled, scaling, speed
from qbdt.threads import count_cores

STAGES = ("start", "S1", "S2", "S4", "S5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, count_cores()}, reverse=True))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=STAGES, nargs="+", default=list(STAGES), help="S1 includes S3")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    most = max(options.threads)
    if "start" in options.only:
        table, found["start"] = scaling.start_up()
        print(table, end="\n\n", flush=True)
    for threads in options.threads if "S1" in options.only else ():
        tables, found[f"{threads} threads"] = speed.peers(options.rows, threads, options.repeats)
        print(*tables, sep="\n\n", end="\n\n", flush=True)
    if "S2" in options.only:
        tables, found["S2"] = speed.sources(options.rows, most, options.repeats)
        print(*tables, sep="\n\n", end="\n\n", flush=True)
    if "S4" in options.only:
        table, found["rows"] = scaling.by_rows(most, 3)
        print(table, end="\n\n", flush=True)
        for kind in ("weight", "shape"):
            table, found[f"{kind} sources"] = scaling.by_sources(kind, most, 3)
            print(table, end="\n\n", flush=True)
    for threads in options.threads if "S5" in options.only else ():
        table, found[f"S5, {threads} threads"] = profiled.profiled(options.rows // 5, threads, min(options.repeats, 2))
        print(table, end="\n\n", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
