"""One analysis from files to an answer: read, train by folds, score, template, fit, draw; resumable.

Each step leaves files that appear whole or not at all. A run that is started again in the same folder skips what is
there: trained models (an interrupted training goes on where it stopped), scored events, the fit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qbdt.boosting import Settings
from qbdt.config import Analysis, ShapeSource, read_analysis
from qbdt.cross_training import train_into
from qbdt.errors import ConfigError, DataError
from qbdt.fit import run_fit, write_fit
from qbdt.io import expand
from qbdt.loading import load
from qbdt.plots import write_figures
from qbdt.progress import Progress, silent
from qbdt.results import Table
from qbdt.running.distributed import ClusterRun
from qbdt.running.scored import ANALYSIS_FILE, write_scored
from qbdt.writing import write_text

__all__ = ["Run", "run_analysis", "training_settings"]

MODEL_FILE = "model.qbdt"
"""The cross-trained model of a run."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    folder
        Where everything is.
    tables
        Results for people, as in `result.json`.
    steps
        What was done, and what was there already.
    """

    folder: Path
    tables: tuple[Table, ...]
    steps: tuple[str, ...]


def run_analysis(
    analysis: Analysis,
    folder: Path | str,
    out: Path | str,
    *,
    n_threads: int | None = None,
    figures: bool = True,
    progress: Progress = silent,
    say: Callable[[str], None] = lambda text: None,
    cluster: ClusterRun | None = None,
) -> Run:
    """Run an analysis into a folder.

    Parameters
    ----------
    analysis
        The analysis; it must have folds, so that no event is scored by a model that saw it.
    folder
        Where relative paths of its files start.
    out
        Folder for the model, scored events, templates, workspaces, figures and `result.json`; made if it is not there.
    n_threads
        Threads of the training.
    figures
        Whether to draw.
    progress
        Told how far each step has come.
    say
        Told which step begins, or was done before.
    cluster
        Where events are read, trained on, scored and histogrammed; in this process if not given.

    Returns
    -------
    Run
    """
    if analysis.folds is None and analysis.dataset is None:
        raise ConfigError("folds: needed to run an analysis, so that no event is scored by a model that saw it")
    root = Path(out)
    root.mkdir(parents=True, exist_ok=True)
    _claim(root, analysis, folder)
    steps: list[str] = []

    def note(text: str) -> None:
        steps.append(text)
        say(text)

    if (root / "scored" / ANALYSIS_FILE).exists():
        note("scores: there already")
    elif cluster is not None:
        settings = training_settings(analysis)
        cluster.train_and_score(analysis, Path(folder), root, root / MODEL_FILE, settings, progress, note)
    else:
        _train_and_score(analysis, Path(folder), root, n_threads, progress, note)
    if (root / "result.json").exists():
        note("fit: there already")
    else:
        _fit(analysis, root, figures, progress, note, cluster)
    content = json.loads((root / "result.json").read_text(encoding="utf-8"))
    tables = tuple(Table(t["title"], tuple(t["header"]), tuple(map(tuple, t["rows"]))) for t in content["tables"])
    return Run(root, tables, tuple(steps))


def training_settings(analysis: Analysis) -> Settings:
    """Settings of the training, from the `training` section."""
    values = analysis.training.model_dump(exclude={"systematics"})
    return Settings(**{name: value for name, value in values.items() if value is not None})


def _claim(root: Path, analysis: Analysis, folder: Path | str) -> None:
    """Refuse a folder that holds another analysis; the settings of the fit may differ, which redoes only the fit."""
    plain = analysis.model_dump(mode="json", exclude={"fit"})
    training = _digest({"analysis": plain, "files": _files(analysis, Path(folder))})
    fit = _digest(analysis.fit.model_dump(mode="json"))
    path = root / "run.json"
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["training"] != training:
            raise ConfigError(
                f"{root} holds a run of another analysis, or of files that have changed; "
                "give another folder, or remove this one"
            )
        if known["fit"] != fit:
            (root / "result.json").unlink(missing_ok=True)
    write_text(path, json.dumps({"training": training, "fit": fit, "qbdt": version("qbdt")}, indent=1) + "\n")


def _train_and_score(
    analysis: Analysis, folder: Path, root: Path, n_threads: int | None, progress: Progress, note: Callable[[str], None]
) -> None:
    note("read")
    dataset = load(analysis, folder, progress)
    if dataset.folds is None:
        raise ConfigError("folds: needed to run an analysis, so that no event is scored by a model that saw it")
    wanted = analysis.training.systematics
    trained_on = dataset if wanted is None else dataset.with_systematics(wanted)
    settings = training_settings(analysis)
    path = root / MODEL_FILE
    trained = train_into(path, trained_on, settings, resume=True, n_threads=n_threads, progress=progress, say=note)
    if not trained.complete:
        raise KeyboardInterrupt
    note("score")
    models = trained.ensemble
    scored = dataset.transform(lambda events: {"score": models.score(events, n_threads)})
    fit = analysis.fit.model_dump(mode="json", exclude_defaults=True)
    write_scored(scored, root / "scored", analysis.name, fit)


def _fit(
    analysis: Analysis,
    root: Path,
    figures: bool,
    progress: Progress,
    note: Callable[[str], None],
    cluster: ClusterRun | None,
) -> None:
    note("fit")
    where = root / "scored" / ANALYSIS_FILE
    if cluster is not None:
        result = cluster.run_fit(where, analysis.fit, progress)
    else:
        result = run_fit(load(read_analysis(where), where.parent, progress), analysis.fit, progress=progress)
    part = root / ".fit.part"
    shutil.rmtree(part, ignore_errors=True)
    write_fit(result, part)
    if figures:
        write_figures(result, part / "figures")
    shutil.rmtree(root / "fit", ignore_errors=True)
    part.replace(root / "fit")
    content = {
        "name": analysis.name,
        "qbdt": version("qbdt"),
        "analysis": analysis.model_dump(mode="json"),
        "fit": result.to_dict(),
        "tables": [table.to_dict() for table in (*result.tables(), *(cluster.tables() if cluster else ()))],
    }
    write_text(root / "result.json", json.dumps(content, indent=1) + "\n")


def _files(analysis: Analysis, folder: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of change of every file that the analysis reads."""
    shapes = [side for s in analysis.systematics.values() if isinstance(s, ShapeSource) for side in (s.up, s.down)]
    patterns = [path for sample in analysis.samples.values() for path in sample.files]
    for path in (path for side in shapes if side is not None for path in side.files or ()):
        patterns += [path.replace("{process}", process) for process in analysis.samples]
    found = set()
    for pattern in patterns:
        with suppress(DataError):  # what is missing is the reader's to report
            found |= {Path(file) for file in expand(pattern, folder) if "://" not in file}
    return sorted((str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in found)


def _digest(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
