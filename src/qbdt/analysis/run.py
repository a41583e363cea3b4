"""One analysis from files to an answer: read, train by folds, score, template, fit, draw; resumable.

Each step leaves files that appear whole or not at all. A run that is started again in the same folder skips what is
there: trained models (an interrupted training goes on where it stopped), scored events, the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qbdt.analysis.blinding import open_data
from qbdt.analysis.eras import separate_models
from qbdt.analysis.loader import fold_rule, require_folds
from qbdt.analysis.measured_scores import require_measurable
from qbdt.analysis.partitioned_run import ClusterRun
from qbdt.analysis.run_folder import move_to_fit, read_tables
from qbdt.analysis.run_steps import Notes, RunSteps, open_folder
from qbdt.analysis.schema import Analysis
from qbdt.errors import ConfigError
from qbdt.files import FolderLock
from qbdt.progress import Progress, silent
from qbdt.tables import Table
from qbdt.trees.device import open_device


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    folder
        Where everything is.
    result
        Content of `result.json`.
    steps
        The steps that were done, or found done.
    """

    folder: Path
    result: Mapping[str, Any]
    steps: tuple[str, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """Results for people."""
        return read_tables(self.result)


def run_analysis(
    analysis: Analysis,
    folder: Path | str,
    out: Path | str,
    *,
    n_threads: int | None = None,
    memory: int | None = None,
    figures: bool = True,
    unblind: bool = False,
    force: bool = False,
    origin: Mapping[str, Any] | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = lambda text: None,
    cluster: ClusterRun | None = None,
    device: str | None = None,
    at: Path | str | None = None,
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
    n_threads, device
        Threads of the training, and "cuda" to train and score on a GPU; results are the same.
    memory
        Bytes that may be used, by default what is free; where events do not fit, the run goes out of core. On a
        cluster Dask looks after that.
    figures
        Whether to draw.
    unblind
        Whether to show results on recorded data; blind ones otherwise, unless the analysis says `blind: false`.
    force
        Start anew: drop what an earlier run left in the folder.
    origin
        Entries of the provenance in `result.json`, beside versions, settings and the files that were read.
    progress, say
        Told how far each step has come, and which step begins or was done before.
    cluster
        Where events are read, trained on, scored and histogrammed; in this process if not given.
    at
        Folder of an earlier run or fit, whose fit to recorded data says at which values of the sources to train.
    """
    _require_device(device, cluster)
    analysis, data, root = _prepare(analysis, at, unblind), Path(folder), Path(out)
    note = Notes(say)
    with FolderLock(root) as lock:
        steps = RunSteps(analysis, data, open_folder(root, analysis, data, force), progress, note, n_threads, device)
        scored = steps.has_scores()
        place = cluster or steps.choose_place(memory, scored)
        if not scored:
            steps.train_and_score(place, lock)
        steps.fit(place, figures, origin or {})
        lock.require()
        return Run(root, steps.results.find("result"), tuple(note.steps))


def _require_device(device: str | None, cluster: ClusterRun | None) -> None:
    """Refuse a device that is not there before anything is read."""
    if device is not None and cluster is not None:
        raise ConfigError(f"device={device!r}: for a run on a cluster, give ClusterRun(client, device={device!r})")
    open_device(device)


def _prepare(analysis: Analysis, at: Path | str | None, unblind: bool) -> Analysis:
    """Return the analysis as it is run: moved to a fit, opened, each region with its model; refused without folds."""
    moved = analysis if at is None else move_to_fit(analysis, at)
    prepared = separate_models(open_data(moved) if unblind else moved)
    if prepared.dataset is None:
        require_folds(fold_rule(prepared))
    require_measurable(prepared)
    return prepared
