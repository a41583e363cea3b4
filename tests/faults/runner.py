"""Builds the shim and runs the trials of a case in a process that is started with it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("shim.c")


def find_compiler() -> str | None:
    """Return the C compiler of a Linux machine; None where there is none, or where libc is another."""
    return (shutil.which("gcc") or shutil.which("cc")) if sys.platform == "linux" else None


def build_shim(folder: Path) -> Path:
    """Compile the shim."""
    compiler = find_compiler()
    assert compiler is not None, "a C compiler is needed"
    shim = folder / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-o", shim, SOURCE, "-ldl"], check=True)
    return shim


def run_case(
    shim: Path, case: str, every: int = 1, record: Path | None = None
) -> tuple[list[str], list[dict[str, Any]]]:
    """Operations of a command, and the trials of faults at them; those that a record holds are not made again."""
    known = [] if record is None or not record.exists() else _read(record)
    operations = known[0]["operations"] if known else []
    trials = [one for one in known if "fault" in one]
    if known and known[-1].get("done"):
        return operations, trials
    first = max((one["number"] for one in trials), default=0)  # it may not have met all its faults
    done = _make_trials(shim, case, every, first, record)
    return done[0]["operations"], [*(one for one in trials if one["number"] < first), *done[1:-1]]


def _read(record: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.read_text().splitlines()]


def _make_trials(shim: Path, case: str, every: int, first: int, record: Path | None) -> list[dict[str, Any]]:
    """Run the process that makes the trials; what it prints goes to the record line by line."""
    words = [sys.executable, "-m", "tests.faults.trials", str(shim), case, str(every), str(first)]
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": path}
    found = []
    with (
        tempfile.TemporaryFile("w+") as errors,
        record.open("a") if record else nullcontext() as kept,
        subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            found.append(json.loads(line))
            if kept is not None:
                print(line, end="", file=kept, flush=True)
        process.wait()
        errors.seek(0)
        assert process.returncode == 0, errors.read()[-3000:]
    return found
