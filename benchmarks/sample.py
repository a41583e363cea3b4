"""The h → γττ sample: events per core-hour, memory against size, and the time to reconstruct and to load.

Each generation runs in a process of its own with one worker, without the library of tau decays, which is made once
before and reused. Wants an idle machine. Run:  python -m benchmarks.sample [--events N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from qbdt.data.samples.bundled import tautaugamma
from qbdt.data.samples.objects import Objects, read_folder
from qbdt.data.samples.objects.reconstruction import build_dataset
from qbdt.studies.generator.driver import LIBRARY_FILE, GenerateSettings, generate_tautaugamma
from qbdt.tables import Table

SETTINGS = GenerateSettings(seed=1, tau_decays=2_000)
LIMITS = {
    "background per core-hour": 300_000,
    "reconstruction of 1M events [s]": 5.0,
    "loading the bundled sample [s]": 1.0,
}


def generate(folder: Path, signal: int, background: int) -> dict[str, float]:
    """Time and peak memory of one run in this process."""
    start = time.perf_counter()
    generate_tautaugamma(folder, signal, background, SETTINGS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.perf_counter() - start, "cpu": time.process_time(), "peak_mb": peak}


def generate_apart(folder: Path, library: Path, signal: int, background: int) -> dict[str, float]:
    folder.mkdir()
    shutil.copy(library, folder / LIBRARY_FILE)
    command = [sys.executable, "-m", "benchmarks.sample", "--one", str(folder), str(signal), str(background)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def generation(events: int) -> list[tuple[str, str]]:
    """Rates from differences of runs, so that starting up does not count, and growth of memory."""
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        generate_tautaugamma(base / "warm", 1, 1, SETTINGS)
        library = base / "warm" / LIBRARY_FILE
        small = generate_apart(base / "small", library, 1, 1)
        for name, sizes in (("background", (1, events)), ("signal", (events, 1))):
            big = generate_apart(base / name, library, *sizes)
            first = 1_000 if name == "background" else 1_600
            rate = (events - first) / (big["cpu"] - small["cpu"]) * 3600
            rows.append((f"{name} per core-hour", f"{rate:,.0f}"))
            rows.append(
                (f"peak memory, 1 and {events:,} {name} events [MB]", f"{small['peak_mb']:.0f}, {big['peak_mb']:.0f}")
            )
    return rows


def reconstruction(n: int) -> list[tuple[str, str]]:
    """Best of three: nominal, four sources that move events up and down, three that move weights."""
    folder = Path(str(files("qbdt.data.samples"))) / "data" / "tautaugamma"
    processes = {name: (objects, weight) for name, objects, weight in read_folder(folder)}
    copies = -(-n // sum(len(objects) for objects, _ in processes.values()))
    large = {name: (Objects.concatenate([o] * copies), w) for name, (o, w) in processes.items()}
    total = sum(len(objects) for objects, _ in large.values())
    seconds = min(timed(lambda: build_dataset(large)) for _ in range(3)) * n / total
    loading = min(timed(tautaugamma) for _ in range(3))
    return [("reconstruction of 1M events [s]", f"{seconds:.2f}"), ("loading the bundled sample [s]", f"{loading:.2f}")]


def timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=3, metavar=("FOLDER", "SIGNAL", "BACKGROUND"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        folder, signal, background = options.one
        print(json.dumps(generate(Path(folder), int(signal), int(background))))
        return
    rows = [*reconstruction(1_000_000), *generation(options.events)]
    table = Table(
        "h → γττ sample", ("what", "measured", "limit"), tuple((*row, str(LIMITS.get(row[0], ""))) for row in rows)
    )
    print(table)
    if options.json:
        options.json.write_text(json.dumps(table.to_dict(), indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
