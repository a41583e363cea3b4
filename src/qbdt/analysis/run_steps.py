"""The steps of a run and what its folder has of them: models and scored events, the fit and its results.

`run.json` says what each was made of, and has the digests of its files: what is there as it was written is not made
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from qbdt.analysis.analysis_file import write_yaml
from qbdt.analysis.blinding import name_fit
from qbdt.analysis.fit_folder import write_fit_folder
from qbdt.analysis.input_files import list_files, name_in_errors, refuse_inputs
from qbdt.analysis.loader import describe_partner, require_settings, restrict_sources, training_settings
from qbdt.analysis.local_run import LocalRun
from qbdt.analysis.partitioned_run import DiskRun, PartitionedRun
from qbdt.analysis.region_events import list_models, name_training_regions
from qbdt.analysis.resources import ResourcePlan
from qbdt.analysis.run_folder import model_file
from qbdt.analysis.schema import Analysis
from qbdt.analysis.scored_files import ANALYSIS_FILE
from qbdt.errors import ConfigError, ModelFileError
from qbdt.files import FolderLock, StepFolder, digest, digest_file, provenance, write_text
from qbdt.models import train_into
from qbdt.progress import Progress
from qbdt.training import Model

RESULT = "result.json"
"""File of the results, in the folder of a run."""


class Notes:
    """Keeps the steps of a run as they are told."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.steps: list[str] = []
        self.say = say

    def __call__(self, text: str) -> None:
        """Keep a step, and tell it."""
        self.steps.append(text)
        self.say(text)

    def of_model(self, model: str) -> Callable[[str], None]:
        """Notes on the training of a model, which begin with its name where it has one."""
        return lambda text: self(f"{model}: {text}" if model else text)


def open_folder(root: Path, analysis: Analysis, data: Path, force: bool) -> StepFolder:
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
        "training": digest(describe_training(analysis, data)),
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


def describe_training(analysis: Analysis, data: Path) -> list[Any]:
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
class RunSteps:
    """The steps of a run, each of which is skipped where its folder has it."""

    analysis: Analysis
    data: Path
    results: StepFolder
    progress: Progress
    note: Notes
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

    def choose_place(self, memory: int | None, scored: bool) -> PartitionedRun | LocalRun:
        """Return where to look at events: in memory, or on disk where they do not fit or were scored so before.

        Templates are then the same, and no more memory is taken.
        """
        if not scored:
            plan = ResourcePlan(self.analysis, self.data, memory, self.n_threads, self.device)
            return plan.run_on_disk(self._root, self.note.say) or LocalRun(self.n_threads, self.device)
        known = self.results.find("run").get("partitions", 1)
        if isinstance(known, int) and known > 1:
            return DiskRun(known, self._root, self.n_threads)
        return LocalRun(self.n_threads, self.device)

    def train_and_score(self, place: PartitionedRun | LocalRun, lock: FolderLock) -> None:
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

    def fit(self, place: PartitionedRun | LocalRun, figures: bool, origin: Mapping[str, Any]) -> None:
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
