"""Timing that notices when the machine is not ours."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

__all__ = ["QUIET", "Times", "measure_apart", "race"]

QUIET = 0.15
"""Cores that other processes may use, on average over a run, before its time does not count."""


@dataclass
class Times:
    """Runs of one contestant: seconds, seconds of its own on all cores, and how many cores others used meanwhile."""

    seconds: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def best_own(self) -> float:
        return min(self.own)

    @property
    def quiet(self) -> bool:
        """Whether the best run had the machine to itself."""
        return self.others[self.seconds.index(self.best)] <= QUIET

    def to_dict(self) -> dict[str, list[float]]:
        return {"seconds": self.seconds, "CPU seconds": self.own, "cores used by others": self.others}


def _busy() -> tuple[float, float]:
    """CPU seconds used by everybody, and by this process."""
    times = psutil.cpu_times()
    own = psutil.Process().cpu_times()
    everybody = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal"))
    return everybody, own.user + own.system


def timed(work: Callable[[], object], times: Times) -> None:
    """Run once and take note."""
    before, start = _busy(), time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    after = _busy()
    others = (after[0] - before[0]) - (after[1] - before[1])
    times.seconds.append(seconds)
    times.own.append(after[1] - before[1])
    times.others.append(max(0.0, others / seconds))


def race(contestants: Mapping[str, Callable[[], object]], repeats: int, names: Sequence[str] = ()) -> dict[str, Times]:
    """Run all contestants in turn, several times over, so that a busy minute hits all of them."""
    found = {name: Times() for name in names or contestants}
    for _ in range(repeats):
        for name, times in found.items():
            timed(contestants[name], times)
    return found


def measure_apart(module: str, tasks: Iterable[str], folder: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Do each task in a new process, `python -m MODULE --measure TASK`, which prints JSON; keep the smallest numbers.

    In a process of its own, since the peak of the memory is that of a whole process.
    """
    found: dict[str, dict[str, float]] = {}
    for _ in range(repeats):
        for task in tasks:
            command = [sys.executable, "-m", module, "--measure", task, "--folder", str(folder)]
            result = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
            best = found.setdefault(task, result)
            best.update({key: min(best[key], result[key]) for key in result})
    return found
