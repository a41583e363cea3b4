"""Memory and time of a training, and whether its events fit into memory; out of core by itself where they do not."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from qbdt.analysis.input_files import list_files
from qbdt.analysis.loader import fold_rule, load_partitions, load_regions, restrict_sources
from qbdt.analysis.partitioned_run import DiskRun
from qbdt.analysis.region_events import RegionEvents, list_models
from qbdt.analysis.resources.estimate import Contents, Estimate, count_events, estimate_training, format_time
from qbdt.analysis.resources.machine import find_memory, format_size, time_kernel
from qbdt.analysis.resources.probe import probe_events
from qbdt.analysis.schema import Analysis
from qbdt.data import Events
from qbdt.errors import ConfigError, OutputError
from qbdt.threads import count_cores
from qbdt.training import Settings
from qbdt.training.partitions import OutOfCore

LEAST = 50_000_000
"""Bytes of events below which partitions would be so many that reading them takes all the time."""

OUT_OF_CORE = 2.0
"""How many times longer a training out of core takes, about."""


@dataclass(frozen=True)
class ResourcePlan:
    """How a training gets along with the memory that there is."""

    # analysis, folder: the analysis, and where its files are
    analysis: Analysis
    folder: Path
    # Bytes that may be used; by default what this machine has free and its control group allows
    memory: int | None = None
    # n_threads, device: of the training
    n_threads: int | None = None
    device: str | None = None

    @cached_property
    def contents(self) -> tuple[Contents, tuple[Contents, ...]]:
        """All events, and those that each model is trained on: counted on a probe."""
        analysis = self.analysis
        if analysis.dataset is None:
            return self._count(probe_events(analysis, self.folder), lambda events: events.total)
        return self._count(load_regions(analysis, self.folder), _count_rows)

    def _count(self, found: RegionEvents, count: Callable[[Events], float]) -> tuple[Contents, tuple[Contents, ...]]:
        trained = [found.training(model) for model in list_models(self.analysis.regions)]
        chosen = [restrict_sources(one, self.analysis.training.systematics) for one in trained]
        return count_events(found.whole, count), tuple(count_events(one, count) for one in chosen)

    @cached_property
    def estimate(self) -> Estimate:
        """Estimate for the training of all models: the memory of the largest, the time of all."""
        training, (whole, models) = self.analysis.training, self.contents
        given = {name: getattr(training, name) for name in ("method", "n_trees", "n_leaves")}
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
        all_models = [estimate_training(whole, one, settings, self._cores) for one in models]
        units, seconds = sum(one.units for one in all_models), sum(one.seconds for one in all_models)
        return replace(max(all_models, key=lambda one: one.memory), units=units, seconds=seconds)

    @property
    def _cores(self) -> int:
        return self.n_threads or count_cores()

    @cached_property
    def limit(self) -> int:
        """Bytes that may be used."""
        return find_memory() if self.memory is None else self.memory

    @cached_property
    def seconds(self) -> float:
        """Time of the training in memory."""
        return self.estimate.time(time_kernel(), self._cores)

    def describe(self) -> str:
        """Memory and time of the training, in one line."""
        cores = "1 core" if self._cores == 1 else f"{self._cores} cores"
        return f"about {format_size(self.estimate.memory)} and {format_time(self.seconds)} on {cores}"

    def require_room(self) -> None:
        """Refuse to read events that do not fit into memory."""
        needed = self.estimate.memory
        if needed > self.limit:
            raise ConfigError(
                f"memory={format_size(self.limit)}: the events take about {format_size(needed)}; "
                "qbdt run and qbdt train go out of core by themselves, this command reads all"
            )

    def divide(self, scratch: Path, say: Callable[[str], None]) -> int:
        """Say what the training takes; return the number of partitions, 1 where all events are kept in memory."""
        found = self.estimate
        if found.memory <= self.limit:
            say(f"training takes {self.describe()}")
            return 1
        self._require_divisible()
        room = self.limit - found.fixed
        if room < LEAST:
            least = format_size(found.fixed + LEAST)
            raise ConfigError(f"memory={format_size(self.limit)}: too little; at least about {least} are needed")
        self._require_disk(scratch)
        n_partitions = max(2, math.ceil(found.per_partition / room))  # one would mean that all is kept in memory
        needed, allowed, rows = (format_size(size) for size in (found.memory, self.limit, found.disk))
        say(
            f"out of core, since training would take about {needed} and {allowed} are allowed: {n_partitions} "
            f"partitions, {rows} of binned rows in {scratch}, about {format_time(OUT_OF_CORE * self.seconds)}"
        )
        return n_partitions

    def _require_divisible(self) -> None:
        """Refuse what must be in memory as a whole."""
        needed, allowed = (format_size(size) for size in (self.estimate.memory, self.limit))
        missing = f"about {needed} are needed and {allowed} are allowed"
        if self.analysis.dataset is not None:
            raise ConfigError(f"dataset: {missing}, and only events in files are read in partitions")
        if self.device is not None:
            raise ConfigError(f"device={self.device!r}: {missing}, and a device trains on events in memory")
        undivided = [path for path, _, _ in list_files(self.analysis, self.folder) if ".csv" in Path(path).suffixes]
        if undivided:
            raise ConfigError(f"{undivided[0]}: {missing}, and CSV is not read in partitions: convert it to Parquet")

    def _require_disk(self, scratch: Path) -> None:
        existing = next(folder for folder in (scratch.resolve(), *scratch.resolve().parents) if folder.exists())
        free, needed = shutil.disk_usage(existing).free, self.estimate.disk
        if free < needed:
            raise OutputError(
                f"{scratch}: {format_size(needed)} of binned rows are to be kept there, {format_size(free)} are free"
            )

    def spread(self, scratch: Path, say: Callable[[str], None]) -> OutOfCore | None:
        """Events out of core, to train on; None where they fit into memory."""
        n_partitions = self.divide(scratch, say)
        if n_partitions == 1:
            return None
        return OutOfCore(load_partitions(self.analysis, self.folder, n_partitions), fold_rule(self.analysis), scratch)

    def run_on_disk(self, scratch: Path, say: Callable[[str], None]) -> DiskRun | None:
        """Steps of a run out of core; None where events fit into memory."""
        n_partitions = self.divide(scratch, say)
        return None if n_partitions == 1 else DiskRun(n_partitions, scratch, self.n_threads)


def _count_rows(events: Events) -> float:
    return events.n_rows
