"""The diagnosis of a finished run: its models and its events, opened again."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qbdt.analysis.diagnosis import DIAGNOSIS_FILE, Diagnosis, diagnose, diagnosis_figures
from qbdt.analysis.loader import restrict_sources
from qbdt.analysis.run_folder import read_run
from qbdt.data import Dataset
from qbdt.errors import ConfigError, OutputError
from qbdt.files import replace_folder
from qbdt.files.records import write_record
from qbdt.progress import Progress, silent
from qbdt.report.style import save
from qbdt.training import SingleModel, train


def diagnose_run(
    folder: Path | str,
    data: Path | str | None = None,
    *,
    sizes: bool = True,
    each_sample: bool = False,
    repeats: int = 3,
    seed: int = 0,
    force: bool = False,
    n_threads: int | None = None,
    progress: Progress = silent,
) -> Diagnosis:
    """Diagnose the models of a run and leave numbers and figures in its folder, where a report finds them.

    Parameters
    ----------
    folder, data
        Folder of the run, and the one that paths of its analysis start from, where it reads files.
    sizes
        Whether to train on shares of the events as well, for the curve against their number.
    each_sample
        Whether to train on a quarter of one sample at a time, too: which is worth generating next.
    force
        Whether an earlier diagnosis may be replaced.
    repeats, seed, n_threads, progress
        As in `diagnose`.
    """
    target = Path(folder) / DIAGNOSIS_FILE
    if target.exists() and not force:
        raise OutputError(f"{target} exists; force=True overwrites it")
    if each_sample and not sizes:
        raise ConfigError("each_sample needs the learning curve over all samples: sizes=True")
    run = read_run(Path(folder), None if data is None else Path(data), progress)
    if run.analysis is None or run.model is None:
        raise ConfigError(f"{folder}: no models of a finished qbdt run")
    run.analysis.require_one_strength("a diagnosis")
    if run.data is None:
        raise ConfigError(f"{folder}: the events are needed: give their folder as data")
    sources, settings = run.analysis.training.systematics, run.model.trainings[0].settings

    def trainer(events: Dataset) -> SingleModel:
        return train(restrict_sources(events, sources), settings, n_threads=n_threads).ensemble

    found = diagnose(
        run.data,
        run.model.ensemble,
        run.analysis.fit,
        trainer=trainer if sizes else None,
        each_sample=each_sample,
        repeats=repeats,
        seed=seed,
        n_threads=n_threads,
        progress=progress,
    )
    found = replace(found, left_out=run.analysis.beside_the_score)
    _write(found, target, {"qbdt": version("qbdt"), "seed": seed, "repeats": repeats})
    return found


def _write(found: Diagnosis, target: Path, origin: dict[str, Any]) -> None:
    content = {**origin, "diagnosis": found.to_dict()}
    with replace_folder(target.parent) as scratch:
        for name, drawn in diagnosis_figures(found).items():
            save(drawn, scratch / f"{name}.png")
        write_record(scratch / target.name, content, indent=1)
