"""One analysis from files to an answer: read, train by folds, score, template, fit, draw; resumable.

Each step leaves files that appear whole or not at all. A run that is started again in the same folder skips what is
there: trained models (an interrupted training goes on where it stopped), scored events, the fit.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qbdt.analysis.cluster_run import ClusterRun
from qbdt.analysis.loading import files_of, load
from qbdt.analysis.reading import read_analysis
from qbdt.analysis.schema import Analysis
from qbdt.analysis.scored_files import ANALYSIS_FILE, write_scored
from qbdt.data.checks import find_faults
from qbdt.errors import ConfigError
from qbdt.files import provenance, write_text
from qbdt.inference import run_fit, write_fit
from qbdt.models import train_into
from qbdt.progress import Progress, silent
from qbdt.report.figures import write_figures
from qbdt.tables import Table
from qbdt.training import Settings

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
    force: bool = False,
    origin: Mapping[str, Any] | None = None,
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
    force
        Start anew: drop what an earlier run left in the folder.
    origin
        What `result.json` is to say about where it comes from, beside versions, settings and the files that were read.
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
    if force:
        _clear(root)
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
        files = [{"path": path, "bytes": size} for path, size, _ in files_of(analysis, Path(folder))]
        source = {**provenance(data=folder), "files": files, **(origin or {})}
        _fit(analysis, root, figures, source, progress, note, cluster)
    content = json.loads((root / "result.json").read_text(encoding="utf-8"))
    tables = tuple(Table(t["title"], tuple(t["header"]), tuple(map(tuple, t["rows"]))) for t in content["tables"])
    return Run(root, tables, tuple(steps))


def training_settings(analysis: Analysis) -> Settings:
    """Settings of the training: its section, and which features are categorical."""
    values = analysis.training.model_dump(exclude={"systematics"})
    given = {name: value for name, value in values.items() if value is not None}
    return Settings(**given, categorical_features=analysis.categorical)


def _clear(root: Path) -> None:
    """Remove what a run writes, and nothing else."""
    for name in ("run.json", "result.json", MODEL_FILE):
        (root / name).unlink(missing_ok=True)
    for name in ("scored", "fit"):
        shutil.rmtree(root / name, ignore_errors=True)


def _claim(root: Path, analysis: Analysis, folder: Path | str) -> None:
    """Refuse a folder that holds another analysis; the settings of the fit may differ, which redoes only the fit."""
    plain = analysis.model_dump(mode="json", exclude={"fit"})
    training = _digest({"analysis": plain, "files": files_of(analysis, Path(folder))})
    fit = _digest(analysis.fit.model_dump(mode="json"))
    path = root / "run.json"
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        if known["training"] != training:
            raise ConfigError(
                f"{root} holds a run of another analysis, or of files that have changed; "
                "choose another --out, or --force to replace it"
            )
        if known["fit"] != fit:
            _keep_fit(root, known["fit"])
    write_text(path, json.dumps({"training": training, "fit": fit, "qbdt": version("qbdt")}, indent=1) + "\n")


def _keep_fit(root: Path, digest: str) -> None:
    """Set a finished fit with other settings aside, so that a new one does not cost it."""
    if (root / "result.json").exists() and (root / "fit").exists():
        aside = root / f"fit-{digest[:8]}"
        shutil.rmtree(aside, ignore_errors=True)
        (root / "fit").replace(aside)
        (root / "result.json").replace(aside / "result.json")


def _train_and_score(
    analysis: Analysis, folder: Path, root: Path, n_threads: int | None, progress: Progress, note: Callable[[str], None]
) -> None:
    note("read")
    dataset = load(analysis, folder, progress)
    for finding in find_faults(dataset):
        note(f"to be checked: {finding}")
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
    source: Mapping[str, Any],
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
    write_fit(result, part, source)
    if figures:
        write_figures(result, part / "figures")
    shutil.rmtree(root / "fit", ignore_errors=True)
    part.replace(root / "fit")
    content = {
        "name": analysis.name,
        "qbdt": version("qbdt"),
        "provenance": source,
        "analysis": analysis.model_dump(mode="json"),
        "fit": result.to_dict(),
        "tables": [table.to_dict() for table in (*result.tables(), *(cluster.tables() if cluster else ()))],
    }
    write_text(root / "result.json", json.dumps(content, indent=1) + "\n")


def _digest(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
