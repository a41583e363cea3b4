"""Builds the shim and runs the trials of a case in a process that is started with it."""

import json
import os
import shutil
import subprocess
import sys
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


def run_case(shim: Path, case: str, every: int = 1, first: int = 0) -> tuple[list[str], list[dict[str, Any]]]:
    """Operations of a command, and the trials of faults at them."""
    words = [sys.executable, "-m", "tests.faults.trials", str(shim), case, str(every), str(first)]
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": path}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    known, *trials = map(json.loads, done.stdout.splitlines())
    return known["operations"], trials
