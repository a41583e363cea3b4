"""One analysis from files to an answer: read, train by folds, score, template, fit, draw; resumable.

Each step leaves files that appear whole or not at all. A run that is started again in the same folder skips what is
there: trained models (an interrupted training goes on where it stopped), scored events, the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qbdt.analysis.analysis_file import read_analysis, write_yaml
from qbdt.analysis.blinding import name_fit, open_data
from qbdt.analysis.eras import separate_models
from qbdt.analysis.fit_folder import write_fit_folder
from qbdt.analysis.input_files import list_files, name_in_errors, refuse_inputs
from qbdt.analysis.inputs import require_drawable
from qbdt.analysis.loader import (
    describe_partner,
    find_families,
    fold_rule,
    load_regions,
    require_folds,
    require_settings,
    require_trainable,
    restrict_sources,
    training_settings,
)
from qbdt.analysis.measured_scores import name_scores, require_measurable
from qbdt.analysis.partitioned_run import ClusterRun, DiskRun, PartitionedRun
from qbdt.analysis.region_events import RegionEvents, list_models, name_training_regions, require_filled
from qbdt.analysis.region_fit import fit_regions, read_control_regions, require_parameters
from qbdt.analysis.resources import ResourcePlan
from qbdt.analysis.run_folder import model_file, move_to_fit, read_tables
from qbdt.analysis.schema import Analysis
from qbdt.analysis.scored_files import ANALYSIS_FILE, choose_score_name, write_scored
from qbdt.data import Dataset
from qbdt.data.checks import find_faults
from qbdt.errors import ConfigError, ModelFileError
from qbdt.files import FolderLock, StepFolder, digest, digest_file, provenance, write_text
from qbdt.inference import FitResult
from qbdt.models import train_into
from qbdt.progress import Progress, silent
from qbdt.tables import Table
from qbdt.training import Model, Partner
from qbdt.trees.device import open_device

RESULT = "result.json"
"""File of the results, in the folder of a run."""


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
    note = _Notes(say)
    with FolderLock(root) as lock:
        job = _Job(analysis, data, _open_folder(root, analysis, data, force), progress, note, n_threads, device)
        scored = job.has_scores()
        place = cluster or job.choose_place(memory, scored)
        if not scored:
            job.train_and_score(place, lock)
        job.fit(place, figures, origin or {})
        lock.require()
        return Run(root, job.results.find("result"), tuple(note.steps))


class _Notes:
    """Keeps the steps of a run as they are told."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.steps: list[str] = []
        self.say = say

    def __call__(self, text: str) -> None:
        self.steps.append(text)
        self.say(text)

    def of_model(self, model: str) -> Callable[[str], None]:
        """Notes on the training of a model, which begin with its name where it has one."""
        return lambda text: self(f"{model}: {text}" if model else text)


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


class _LocalRun:
    """The steps of a run that look at events, in this process; a `PartitionedRun` does the same elsewhere."""

    def __init__(self, n_threads: int | None, device: str | None) -> None:
        self._n_threads, self._device = n_threads, device
        self._events: RegionEvents | None = None
        self._scored: RegionEvents | None = None

    def read(
        self, analysis: Analysis, folder: Path, progress: Progress, note: Callable[[str], None]
    ) -> dict[str, Dataset]:
        note("read")
        require_drawable(analysis, folder)
        self._events = load_regions(analysis, folder, progress)
        require_filled(self._events.count_backgrounds(), analysis.regions)
        require_folds(self._events.whole.folds)
        require_parameters(self._events.whole, analysis)
        models = list_models(analysis.regions)
        for model in models:
            require_trainable(self._events, analysis, model)
        for basis in find_families(analysis, folder).values():
            note(basis.describe())
        for finding in find_faults(self._events.simulated() if analysis.fit.blind else self._events.every_event()):
            note(f"to be checked: {finding}")
        return {model: self._events.training(model) for model in models}

    def find_partner(self, analysis: Analysis, note: Callable[[str], None]) -> Partner | None:
        if not analysis.needs_control_regions:
            return None
        note("control regions")
        assert self._events is not None
        return read_control_regions(self._events, analysis)

    def score(self, models: Mapping[str, Model], target: Path, analysis: Analysis, note: Callable[[str], None]) -> None:
        note("score")
        assert self._events is not None
        name = choose_score_name(self._events.whole.samples[0].events)
        where = (self._n_threads, self._device)
        self._scored = self._events.score(lambda model, each: name_scores(models[model], each, name, *where))
        self._events = None  # features are needed no more
        write_scored(self._scored, target, analysis)

    def run_fit(self, scored: Path, analysis: Analysis, progress: Progress) -> FitResult:
        known = self._scored
        events = load_regions(read_analysis(scored), scored.parent, progress) if known is None else known
        return fit_regions(events, analysis, progress)

    def tables(self) -> tuple[Table, ...]:
        return ()

    def count(self) -> int:
        return 1


def _open_folder(root: Path, analysis: Analysis, data: Path, force: bool) -> StepFolder:
    """Open the folder of a run; refuse one of another training. Anything else that is new redoes only what it changes.

    `run.json` says what the model, the scores and the fit in the folder were made of. Scores and fits that it knows
    nothing of, because it is not there or damaged, are made anew.
    """
    models = [model_file(model) for model in list_models(analysis.regions)]
    owned = (RESULT, *models, "scored", "fit")
    refuse_inputs(analysis, data, [root / name for name in owned])
    folder = StepFolder(root, None, force=force, owned=owned, record="run.json")
    folder.require_own("scored", "fit", RESULT)
    wanted = {
        "training": digest(_describe_training(analysis, data)),
        "scores": digest([analysis.describe_training(), list_files(analysis, data)]),
        "fit": digest(analysis.describe_results()),
        "qbdt": version("qbdt"),
    }
    known = folder.find("run")
    differs = known.get("training", wanted["training"]) != wanted["training"]
    if differs and any((root / name).exists() for name in owned):  # what was refused before training leaves nothing
        raise ConfigError(
            f"{root} holds a run of another analysis, or of files that have changed; "
            "choose another folder, or force=True to replace it"
        )
    if known.get("scores") != wanted["scores"]:
        folder.clear("scored")
    if any(known.get(key) != wanted[key] for key in ("scores", "fit")):
        _set_fit_aside(folder, digest([known.get("scores"), known.get("fit")]))
        known.pop("fitted", None)
    folder.put("run", {**known, **wanted})
    return folder


def _describe_training(analysis: Analysis, data: Path) -> list[Any]:
    """Content that the training depends on, without recorded data, sources that are only fitted, and names."""
    chosen = None if analysis.needs_control_regions else analysis.training.systematics  # those know all of the fit
    used = {one for s in analysis.samples.values() if s.from_data is not None for one in s.from_data.samples}
    samples = {name: s for name, s in analysis.samples.items() if s.role != "data" or name in used}
    sources = {name: s for name, s in analysis.systematics.items() if chosen is None or name in chosen}
    seen = analysis.model_copy(update={"samples": samples, "systematics": sources})
    return [seen.describe_training(), list_files(seen, data)]


def _set_fit_aside(folder: StepFolder, settings: str) -> None:
    """Keep a finished fit with other settings under the digest of these, so that a new one does not cost it."""
    fit, result = folder.path / "fit", folder.path / RESULT
    if result.exists() and fit.exists():
        aside = f"fit-{settings[:8]}"
        folder.clear(aside)
        write_text(fit / result.name, result.read_text(encoding="utf-8"))  # first, so that both move at once
        fit.replace(folder.path / aside)
    folder.clear(RESULT)


def _list_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _digest_files(folder: Path) -> dict[str, str]:
    return {name: digest_file(folder / name) for name in _list_files(folder)}


@dataclass(frozen=True)
class _Job:
    """A run under way: scores and a fit that its folder has, or gets."""

    analysis: Analysis
    data: Path
    results: StepFolder
    progress: Progress
    note: _Notes
    n_threads: int | None
    device: str | None

    @property
    def _root(self) -> Path:
        return self.results.path

    def has_scores(self) -> bool:
        """Whether models and scored events are there as they were written."""
        known, models = self.results.find("run"), self._digest_models()
        written = known["models"] if isinstance(known.get("models"), dict) else {}
        if strange := [name for name, value in models.items() if written.get(name, value) != value]:
            raise ModelFileError(f"{self._root / strange[0]}: not as this run wrote it; remove it to train again")
        if gone := written.keys() - models.keys():  # they are trained anew, and that may be interrupted
            self.results.update("run", models={name: value for name, value in written.items() if name not in gone})
        if not (self._root / "scored" / ANALYSIS_FILE).exists():
            return False
        if written != models:
            self.note("model: missing, or not as it was written")
            return False
        whole = bool(known.get("scored") == _digest_files(self._root / "scored"))
        self.note("scores: there already" if whole else "scores: damaged, they are made anew")
        return whole

    def _digest_models(self) -> dict[str, str]:
        files = [self._root / model_file(model) for model in list_models(self.analysis.regions)]
        return {path.name: digest_file(path) for path in files if path.is_file()}

    def _has_fit(self) -> bool:
        """Whether the fit and its results are there as they were written; other files beside them do not matter."""
        written = self.results.find("run").get("fitted")
        if not isinstance(written, dict) or not (self._root / RESULT).is_file():
            return False
        whole = bool(written) and written.items() <= self._digest_fit().items()
        self.note("fit: there already" if whole else "fit: damaged, it is made anew")
        return whole

    def _digest_fit(self) -> dict[str, str]:
        return {RESULT: digest_file(self._root / RESULT), **_digest_files(self._root / "fit")}

    def choose_place(self, memory: int | None, scored: bool) -> PartitionedRun | _LocalRun:
        """Return where to look at events: in memory, or on disk where they do not fit or were scored so before.

        Templates are then the same, and no more memory is taken.
        """
        if not scored:
            plan = ResourcePlan(self.analysis, self.data, memory, self.n_threads, self.device)
            return plan.run_on_disk(self._root, self.note.say) or _LocalRun(self.n_threads, self.device)
        known = self.results.find("run").get("partitions", 1)
        if isinstance(known, int) and known > 1:
            return DiskRun(known, self._root, self.n_threads)
        return _LocalRun(self.n_threads, self.device)

    def train_and_score(self, place: PartitionedRun | _LocalRun, lock: FolderLock) -> None:
        """Train each model by folds into its file, and write the scored events."""
        require_settings(self.analysis)  # before events are read
        events: Mapping[str, Any] = place.read(self.analysis, self.data, self.progress, self.note)
        settings = training_settings(self.analysis, place.find_partner(self.analysis, self.note))
        if settings.partner is not None:
            self.note(describe_partner(settings.partner, self.analysis))
        models: dict[str, Model] = {}
        for model, own in events.items():
            with name_in_errors(name_training_regions(self.analysis.regions, model)):
                trained = train_into(
                    self._root / model_file(model),
                    restrict_sources(own, self.analysis.training.systematics),
                    settings,
                    resume=True,
                    progress=self.progress,
                    say=self.note.of_model(model),
                    n_threads=self.n_threads,
                    device=self.device,
                )
            if not trained.complete:
                raise KeyboardInterrupt
            models[model] = trained.ensemble
        place.score(models, self._root / "scored", self.analysis, self.note)
        lock.require()
        written = {"models": self._digest_models(), "scored": _digest_files(self._root / "scored")}
        self.results.update("run", **written, partitions=place.count())

    def fit(self, place: PartitionedRun | _LocalRun, figures: bool, origin: Mapping[str, Any]) -> None:
        """Fit the scored events, and write the folder `fit` and `result.json`, where they are not there already."""
        if self._has_fit():
            return
        self.note(name_fit(self.analysis))
        files = [{"path": path, "bytes": size} for path, size, _ in list_files(self.analysis, self.data)]
        source = {**provenance(data=self.data), "files": files, **origin}
        result = place.run_fit(self._root / "scored" / ANALYSIS_FILE, self.analysis, self.progress)
        target, labels = self._root / "fit", self.analysis.figure_labels()
        write_fit_folder(result, target, source, figures=figures, labels=labels, progress=self.progress)
        content = {
            "name": self.analysis.name,
            "qbdt": version("qbdt"),
            "provenance": source,
            "analysis": self.analysis.model_dump(mode="json"),
            "yaml": write_yaml(self.analysis),
            "fit": result.to_dict(),
            "tables": [table.to_dict() for table in (*result.tables(), *place.tables())],
            "files": _list_files(self._root / "fit"),
        }
        self.results.put("result", content)
        self.results.update("run", fitted=self._digest_fit())
