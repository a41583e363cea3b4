"""Reading array branches against uproot and awkward by hand, and the memory of a family of replicas.

Writes its own ROOT files (10 million events with 24 flat and 6 jagged branches; a million events with 30 branches and
103 replicas) into a folder, reads each in a process of its own and prints two tables.
Run:  python -m benchmarks.lists [--rows N] [--replica-rows N] [--folder DIR] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import measure_apart
from qbdt.tables import Table

FLAT = [f"x{i}" for i in range(24)]
JETS = ["Jet_pt", "Jet_eta", "Jet_phi", "Jet_mass", "Jet_tag", "Jet_id"]
REDUCTIONS = {
    "n_hard": "len(Jet_pt[Jet_pt > 30])",
    "ht": "sum(Jet_pt[Jet_pt > 30 and abs(Jet_eta) < 2.4])",
    "lead": "Jet_pt[0]",
    "largest_mass": "max(Jet_mass)",
    "best": "descending(Jet_pt, Jet_tag)[0]",
    "any_tight": "any(Jet_id > 0.9)",
}
N_REPLICAS = 103
MARK_TIME, MARK_MEMORY = 1.5, 2.0
STEP = 250_000
CLUSTER = 20_000
"""Events that are written together; those with replicas as NanoAOD has them, some megabytes of a branch."""


def write_jets(path: Path, rows: int) -> None:
    import awkward as ak
    import uproot

    random = np.random.default_rng(0)
    with uproot.recreate(path, compression=None) as root:
        root.mktree("Events", {**dict.fromkeys(FLAT, "f4"), "Jet": _jet_type()})
        for start in range(0, rows, STEP):
            n = min(STEP, rows - start)
            counts = random.poisson(4, n)
            jets = {
                name.removeprefix("Jet_"): ak.unflatten(random.exponential(1, counts.sum()).astype("f4"), counts)
                for name in JETS
            }
            jets["pt"] = 40 * jets["pt"]
            flat = {name: random.standard_normal(n, dtype=np.float32) for name in FLAT}
            root["Events"].extend({**flat, "Jet": ak.zip(jets)})


def _jet_type() -> str:
    return "var * {" + ", ".join(f"{name.removeprefix('Jet_')}: float32" for name in JETS) + "}"


def by_hand(folder: Path) -> Any:
    """Read the same columns and compute the same reductions with uproot and awkward."""
    import awkward as ak
    import uproot

    pieces = []
    for a in uproot.iterate({folder / "jets.root": "Events"}, [*FLAT, *JETS], step_size="64 MB", library="ak"):
        hard = a.Jet_pt[a.Jet_pt > 30]
        best = ak.argsort(a.Jet_tag, axis=1, ascending=False)
        columns = {name: ak.to_numpy(a[name]) for name in FLAT}
        columns["n_hard"] = ak.to_numpy(ak.num(hard))
        columns["ht"] = ak.to_numpy(ak.sum(a.Jet_pt[(a.Jet_pt > 30) & (np.abs(a.Jet_eta) < 2.4)], axis=1))
        columns["lead"] = _fill(ak.firsts(a.Jet_pt))
        columns["largest_mass"] = _fill(ak.max(a.Jet_mass, axis=1))
        columns["best"] = _fill(ak.firsts(a.Jet_pt[best]))
        columns["any_tight"] = ak.to_numpy(ak.any(a.Jet_id > 0.9, axis=1))
        pieces.append(columns)
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _fill(values: Any) -> Any:
    import awkward as ak

    return ak.to_numpy(ak.fill_none(values, np.nan))


def ours(folder: Path) -> Any:
    from qbdt.data.readers import read_events

    return read_events(str(folder / "jets.root"), [*FLAT, *REDUCTIONS], derived=REDUCTIONS)


def write_replicas(path: Path, rows: int) -> None:
    import uproot

    random = np.random.default_rng(0)
    names = [f"x{i}" for i in range(30)]
    size = random.normal(0, [0.05, 0.03, 0.02, 0.01], (N_REPLICAS, 4)).astype(np.float32)
    with uproot.recreate(path, compression=None) as root:
        root.mktree("Events", {**dict.fromkeys(names, "f4"), "pdf": ("f4", (N_REPLICAS,)), "event": "i8"})
        for start in range(0, rows, CLUSTER):
            n = min(CLUSTER, rows - start)
            flat = {name: random.standard_normal(n, dtype=np.float32) for name in names}
            shapes = np.stack([np.ones_like(flat["x0"]), flat["x0"], flat["x1"], np.cos(flat["x2"])], axis=1)
            root["Events"].extend({**flat, "pdf": 1 + shapes @ size.T, "event": np.arange(start, start + n)})


ANALYSIS = """\
features: [{features}]
samples:
  higgs: {{role: signal, files: replicas.root, selection: event % 2 == 0}}
  ttbar: {{role: background, files: replicas.root, selection: event % 2 == 1}}
folds: {{by: hash, columns: event, k: 2}}
{systematics}
"""


def load_analysis(folder: Path, replicas: bool) -> Any:
    from qbdt.analysis import load, parse_analysis

    names = ", ".join(f"x{i}" for i in range(30))
    systematics = "systematics: {pdf: {kind: replicas, weights: pdf}}" if replicas else ""
    return load(parse_analysis(ANALYSIS.format(features=names, systematics=systematics)), folder)


TASKS: dict[str, Callable[[Path], Any]] = {
    "by hand": by_hand,
    "qbdt": ours,
    "events": lambda folder: load_analysis(folder, replicas=False),
    "events and replicas": lambda folder: load_analysis(folder, replicas=True),
}


WRITERS: dict[str, Callable[[Path, int], None]] = {"jets": write_jets, "replicas": write_replicas}


def write_apart(what: str, folder: Path, rows: int) -> None:
    """Write in a process of its own: those that are started later begin with the peak of this one."""
    command = [sys.executable, "-m", "benchmarks.lists", "--write", what, "--folder", str(folder), "--rows", str(rows)]
    subprocess.run(command, check=True)


def measure(task: str, folder: Path) -> dict[str, float]:
    """Time and growth of memory of one reading in this process."""
    import awkward
    import uproot

    import qbdt.analysis
    import qbdt.data.readers.root

    assert awkward
    assert uproot
    assert qbdt.data.readers.root
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, computed = time.perf_counter(), time.process_time()
    kept = TASKS[task](folder)
    seconds, computed = time.perf_counter() - start, time.process_time() - computed
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    sources = len(kept.systematics) if task.startswith("events") else 0
    return {"seconds": seconds, "cpu_seconds": computed, "peak_bytes": float(peak), "sources": float(sources)}


def time_table(found: dict[str, dict[str, float]], rows: int) -> Table:
    rows_of = []
    for what, key in (("wall clock", "seconds"), ("CPU", "cpu_seconds")):
        mine, theirs = found["qbdt"][key], found["by hand"][key]
        ratio = mine / theirs
        rows_of.append((what, f"{mine:.2f}", f"{theirs:.2f}", f"{ratio:.2f}", "yes" if ratio <= MARK_TIME else "NO"))
    title = f"Reading {rows:,} events, {len(FLAT)} flat and {len(JETS)} jagged branches, {len(REDUCTIONS)} reductions"
    return Table(title, ("", "qbdt (s)", "uproot and awkward (s)", f"ratio (≤ {MARK_TIME})", "holds"), tuple(rows_of))


def memory_table(found: dict[str, dict[str, float]], rows: int) -> Table:
    plain, full = (found[task]["peak_bytes"] for task in ("events", "events and replicas"))
    ratio = full / plain
    sources = f"{found['events and replicas']['sources']:.0f}"
    row = (
        f"{plain / 2**20:.0f}",
        f"{full / 2**20:.0f}",
        sources,
        f"{ratio:.2f}",
        "yes" if ratio <= MARK_MEMORY else "NO",
    )
    title = f"Peak memory of {rows:,} events × 30 columns, without and with {N_REPLICAS} replicas"
    header = ("events (MiB)", "with replicas (MiB)", "sources", f"ratio (≤ {MARK_MEMORY})", "holds")
    return Table(title, header, (row,))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--replica-rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measure", choices=TASKS)
    parser.add_argument("--write", choices=WRITERS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.folder)))
        return
    if options.write:
        WRITERS[options.write](options.folder / f"{options.write}.root", options.rows)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch)
        write_apart("jets", folder, options.rows)
        found = measure_apart("benchmarks.lists", ["by hand", "qbdt"], folder, options.repeats)
        print(time_table(found, options.rows))
        (folder / "jets.root").unlink()
        write_apart("replicas", folder, options.replica_rows)
        found |= measure_apart("benchmarks.lists", ["events", "events and replicas"], folder, options.repeats)
        print(memory_table(found, options.replica_rows))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
