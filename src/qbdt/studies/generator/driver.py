"""The run: a tau library, batches by any number of workers, and one folder at the end.

A batch is a fixed piece of work that becomes one file in `batches/`; the sample is the shortest run of consecutive
batches, from the first, that holds the requested events. So the result depends on the seed and the requested numbers
only, an interrupted run continues where it stopped, and memory does not grow with the number of events.
"""

from __future__ import annotations

import itertools
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from qbdt.data.samples import write_ntuples
from qbdt.data.samples.objects import METADATA, PROCESSES, read_metadata
from qbdt.errors import DataError, require
from qbdt.files import StepFolder, replace_file
from qbdt.progress import Progress, silent
from qbdt.studies.generator.batch_files import finish_process, read_batch, write_batch, write_metadata
from qbdt.studies.generator.constants import CUTS, HIGGS_CUTS, GeneratorCuts, HiggsCuts
from qbdt.studies.generator.simulation import (
    LIBRARY_KEY,
    PILOT_POINTS,
    BatchCounts,
    Inputs,
    Simulator,
    prepare,
    pythia_seed,
    sequence,
)
from qbdt.studies.generator.tau_decays import TauLibrary, decay_chunk, library_chunks
from qbdt.studies.worker_pool import WorkerPool

T = TypeVar("T")

SETTINGS_FILE, LIBRARY_FILE, BATCHES = "settings.json", "tau-decays.npz", "batches"


@dataclass(frozen=True)
class GenerateSettings:
    """Settings of a sample besides its size; a folder is resumed only by a run with the same settings."""

    seed: int = 1  # Of everything random
    tau_decays: int = 100_000  # Size of the library per helicity and decay mode
    # Phase-space points per batch
    points: dict[str, int] = field(default_factory=lambda: {"signal": 100_000, "background": 500_000})
    pilot_points: int = PILOT_POINTS  # Points of the pilot run that fixes the largest weight
    # cuts, higgs_cuts: generator cuts of the background and of the signal
    cuts: GeneratorCuts = CUTS
    higgs_cuts: HiggsCuts = HIGGS_CUTS

    def __post_init__(self) -> None:
        for name, value, least in (("seed", self.seed, 0), ("tau_decays", self.tau_decays, 1)):
            if value < least:
                raise DataError(f"{name}={value}: must be at least {least}")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self)


def generate_tautaugamma(
    out: Path,
    signal: int,
    background: int,
    settings: GenerateSettings | None = None,
    *,
    workers: int = 1,
    root: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Simulate h → γττ and its background into a folder that `qbdt.data.samples.tautaugamma` reads.

    An interrupted run with the same settings is continued. The metadata that are also in `metadata.json` are returned.

    Parameters
    ----------
    signal, background
        Nominally selected events of each.
    workers
        Processes to use; the result does not depend on it. With more than one, scripts need the usual
        ``if __name__ == "__main__"`` of Python's multiprocessing.
    root
        Also write the variables of all variations to ROOT files.
    """
    settings = settings or GenerateSettings()
    wanted = {"signal": signal, "background": background}
    for name, value in (*wanted.items(), ("workers", workers)):
        if value < 1:
            raise DataError(f"{name}={value}: must be at least 1")
    require("pythia8mc", "qbdt generate")
    if not _is_complete(out, wanted, settings):
        StepFolder(out, settings.to_dict(), "an unfinished sample", force=None, record=SETTINGS_FILE)
        (out / BATCHES).mkdir(exist_ok=True)
        with _pool(workers) as pool:
            _generate(out, wanted, settings, pool, workers, progress)
        shutil.rmtree(out / BATCHES)
    if root:
        write_ntuples(out, out, progress=progress)
    return read_metadata(out)


def _generate(
    out: Path, wanted: dict[str, int], settings: GenerateSettings, pool: Executor, workers: int, progress: Progress
) -> None:
    _ensure_library(out / LIBRARY_FILE, settings, pool, workers, progress)
    inputs = prepare(settings.seed, settings.cuts, settings.higgs_cuts, settings.pilot_points)
    entries = {}
    for name in PROCESSES:
        with progress(f"simulating {name}", wanted[name]) as advance:
            records = _run_batches(out, name, wanted[name], inputs, settings, pool, workers, advance)
        paths = [_batch_path(out, name, number) for number in range(len(records))]
        entries[name] = finish_process(out, name, wanted[name], records, paths, inputs.pilots[name])
    write_metadata(out, entries, settings.to_dict())


def _is_complete(out: Path, wanted: dict[str, int], settings: GenerateSettings) -> bool:
    """Whether the folder already holds this very sample; one that holds another is refused."""
    if not (out / METADATA).exists():
        return False
    metadata = read_metadata(out)
    there = {name: entry["selected"] for name, entry in metadata["processes"].items()}
    if there != wanted or metadata["settings"] != settings.to_dict():
        raise DataError(f"{out}: holds a finished sample with other numbers or settings; choose another folder")
    return True


class _SameProcess(Executor):
    """Run tasks at once in this process."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """Open workers; on an error or interruption the batches that wait are dropped."""
    pool = _SameProcess() if workers == 1 else WorkerPool(workers)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(tasks: Iterator[Future[T]], ahead: int) -> Iterator[T]:
    """Yield results in the order of their tasks, keeping up to `ahead` tasks under way."""
    waiting: deque[Future[T]] = deque()
    try:
        for task in tasks:
            waiting.append(task)
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for task in waiting:
            task.cancel()


def _ensure_library(path: Path, settings: GenerateSettings, pool: Executor, workers: int, progress: Progress) -> None:
    """Make the library of tau decays unless the folder has it."""
    if path.exists():
        return
    chunks = library_chunks(settings.tau_decays)
    seeds = [pythia_seed(sequence(settings.seed, LIBRARY_KEY, offset)) for *_, offset in chunks]
    tasks = (
        pool.submit(decay_chunk, mode, helicity, n, seed)
        for (mode, helicity, n, _), seed in zip(chunks, seeds, strict=True)
    )
    made = []
    with progress("decaying taus", 4 * settings.tau_decays) as advance:
        for chunk in _in_order(tasks, 2 * workers if workers > 1 else 0):
            made.append(chunk)
            advance(len(chunk[0]))
    with replace_file(path) as scratch:
        TauLibrary.join(settings.tau_decays, made).save(scratch)


def _batch_path(out: Path, name: str, number: int) -> Path:
    return out / BATCHES / f"{name}-{number:06d}.parquet"


def _run_batches(
    out: Path,
    name: str,
    wanted: int,
    inputs: Inputs,
    settings: GenerateSettings,
    pool: Executor,
    workers: int,
    advance: Callable[[int], None],
) -> list[BatchCounts]:
    """Make, or find, the first batches of a process until they hold the requested events."""
    tasks = (
        pool.submit(_make_batch, name, i, settings.points[name], inputs, out / LIBRARY_FILE, _batch_path(out, name, i))
        for i in itertools.count()
    )
    records: list[BatchCounts] = []
    selected = 0
    for record in _in_order(tasks, 2 * workers if workers > 1 else 0):
        records.append(record)
        advance(min(record.n_selected, wanted - selected))
        selected += record.n_selected
        if selected >= wanted:
            break
        if len(records) >= 20 and selected == 0:
            raise DataError(f"{name}: no event is selected in {len(records)} batches: the generator cuts leave nothing")
    return records


def _make_batch(name: str, number: int, points: int, inputs: Inputs, library: Path, path: Path) -> BatchCounts:
    """Make one batch in a worker, unless an earlier run has."""
    if path.exists():
        return read_batch(path)[1]
    objects, counts = _get_simulator(name, inputs, library).simulate(number, points)
    write_batch(path, objects, counts)
    return counts


_SIMULATORS: dict[tuple[str, Path], Simulator] = {}


def _get_simulator(name: str, inputs: Inputs, library: Path) -> Simulator:
    """Return this worker's simulator of a process, made on first use: Pythia starts once per worker, not per batch.

    A folder has one set of inputs, so its library's path stands for them; only the last simulator is kept.
    """
    key = (name, library)
    if key not in _SIMULATORS:
        _SIMULATORS.clear()
        _SIMULATORS[key] = Simulator(name, inputs, TauLibrary.load(library))
    return _SIMULATORS[key]
