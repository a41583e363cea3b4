"""Finished runs with a damaged file as fuzzed input: started again, a run ends with the same files, or is refused."""

import random
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from qbdt.analysis import run_analysis
from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.run_folder import read_run
from qbdt.errors import QBDTError
from tests.faults.cases import ANALYSIS, write_inputs

_kept = tempfile.TemporaryDirectory()
EVENTS = Path(_kept.name)
"""Folder of the events, which stays where it is: a run knows the paths of its files."""

NOT_RESULTS = ("run.json", ".lock")
"""Files that may differ afterwards: the record of the steps, where entries are not known, and nothing."""

Damage = tuple[str, bytes]
"""Name of a file in the folder of the run, and its content."""


@cache
def list_seeds() -> tuple[Damage, ...]:
    """All files of a finished run, as they were written."""
    write_inputs(EVENTS)
    _run(EVENTS / "run")
    return tuple((name, path.read_bytes()) for name, path in _files(EVENTS / "run").items())


def change_file(change: Callable[[bytes, random.Random], bytes]) -> Callable[[Damage, random.Random], Damage]:
    """Change the content and leave the name."""
    return lambda damage, rng: (damage[0], change(damage[1], rng))


def use_damaged_run(damage: Damage, folder: Path) -> None:
    """Read the folder with the damaged file for a report, and start the run again."""
    shutil.copytree(EVENTS / "run", folder / "run")
    (folder / "run" / damage[0]).write_bytes(damage[1])
    with suppress(QBDTError):
        read_run(folder / "run")
    _run(folder / "run")
    found = _files(folder / "run")
    for name, content in list_seeds():
        assert name in NOT_RESULTS or found[name].read_bytes() == content, f"{name} is another file"


def _run(out: Path) -> None:
    run_analysis(parse_analysis(ANALYSIS.replace("METHOD", "paper")), EVENTS, out, figures=False, n_threads=1)


def _files(folder: Path) -> dict[str, Path]:
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
