"""The diagnosis of a finished run: its models and its events, opened again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from qbdt.analysis.diagnosis.diagnose import Diagnosis, diagnose
from qbdt.analysis.diagnosis.figures import diagnosis_figures
from qbdt.analysis.diagnosis.page import DIAGNOSIS_FILE
from qbdt.analysis.page import read_run
from qbdt.data import Dataset
from qbdt.errors import ConfigError, OutputError
from qbdt.files import write_text
from qbdt.progress import Progress, silent
from qbdt.report.figures import save
from qbdt.training import FoldedEnsemble, SingleModel, train

__all__ = ["Diagnosed", "diagnose_run"]


@dataclass(frozen=True)
class Diagnosed:
    """A diagnosis and the folder that it is in."""

    folder: Path
    diagnosis: Diagnosis


def diagnose_run(
    folder: Path | str,
    data: Path | str | None = None,
    *,
    sizes: bool = True,
    repeats: int = 3,
    seed: int = 0,
    force: bool = False,
    n_threads: int | None = None,
    progress: Progress = silent,
) -> Diagnosed:
    """Diagnose the models of `qbdt run` and leave numbers and figures in its folder, where a report finds them.

    Parameters
    ----------
    folder
        Folder of the run.
    data
        Folder that the paths of the analysis start from; not needed for datasets that come with qbdt.
    sizes
        Whether to train on parts of the events as well, for the curve against their number.
    repeats, seed
        As in `diagnose`.
    force
        Whether an earlier diagnosis may be replaced.
    n_threads, progress
        Threads; told how far it is.
    """
    target = Path(folder) / DIAGNOSIS_FILE
    if target.exists() and not force:
        raise OutputError(f"{target} exists; force=True overwrites it")
    run = read_run(Path(folder), None if data is None else Path(data), progress)
    if run.analysis is None or not run.trainings:
        raise ConfigError(f"{folder}: no models of a finished qbdt run")
    if run.data is None:
        raise ConfigError(f"{folder}: the events are needed: give their folder with --data")
    if run.data.folds is None or len(run.trainings) != run.data.folds.k:
        raise ConfigError(f"{folder}: {len(run.trainings)} models, the analysis has {run.data.folds}")
    wanted, settings = run.analysis.training.systematics, run.trainings[0].settings

    def trainer(part: Dataset) -> SingleModel:
        events = part if wanted is None else part.with_systematics(wanted)
        return train(events, settings, n_threads=n_threads).ensemble

    found = diagnose(
        run.data,
        FoldedEnsemble(tuple(training.ensemble for training in run.trainings), run.data.folds),
        run.analysis.fit,
        trainer=trainer if sizes else None,
        repeats=repeats,
        seed=seed,
        n_threads=n_threads,
        progress=progress,
    )
    target.parent.mkdir(exist_ok=True)
    for name, drawn in diagnosis_figures(found).items():
        save(drawn, target.parent / f"{name}.png")
    content = {"qbdt": version("qbdt"), "seed": seed, "repeats": repeats, "diagnosis": found.to_dict()}
    write_text(target, json.dumps(content, indent=1) + "\n")
    return Diagnosed(target.parent, found)
