"""The folder of a run or of a fit, opened again: results, templates, models and events."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.analysis_file import parse_analysis, read_analysis
from qbdt.analysis.diagnosis import Diagnosis, read_diagnosis
from qbdt.analysis.inputs import add_variables, list_drawn
from qbdt.analysis.loader import load, load_regions, require_trainable
from qbdt.analysis.region_events import RegionEvents, list_models
from qbdt.analysis.schema import Analysis
from qbdt.analysis.scored_files import ANALYSIS_FILE
from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.errors import MALFORMED, ConfigError, FitError, QBDTError
from qbdt.files import digest_file
from qbdt.files.records import read_record
from qbdt.inference import FitSummary, Measurement, Scan
from qbdt.inference.answers import Answers
from qbdt.inference.templates import TemplateSet
from qbdt.models import read_cross_trained
from qbdt.progress import Progress, silent
from qbdt.tables import Table
from qbdt.training import CrossTrainedModel, Settings

WITH_DATASET = ("name", "dataset", "folds", "regions", "variables", "figures", "training", "fit")
"""Keys of an analysis of a bundled dataset, which has samples and sources of its own."""


def model_file(model: str = "") -> str:
    """Name of the file of a cross-trained model of a run; that of regions without a model of their own by default."""
    return f"model-{model}.qbdt" if model else "model.qbdt"


@dataclass(frozen=True, eq=False)
class RunFolder:
    """Content of the folder of a run, or of a fit: results and templates, and where they are there, models and events.

    Attributes
    ----------
    name, analysis, version
        The analysis, its name, and the version of qbdt that ran it; no analysis for a fit by itself.
    summary, scan, measurement, answers, tables
        The fit to the recorded data, or to Asimov data where there are none or results are blind.
    shown
        Recorded events per bin of each region, NaN where they are hidden; None where results are not blind.
    settings
        Settings of analysis and fit by dotted names.
    text
        The analysis as YAML, as far as it was given; empty for a fit by itself.
    models
        The models of all folds by name, the first is that of `scored` and `data`; none for a fit by itself.
    scored, drawn
        Events with their scores, and, where they could be read again, all events with their features and what else is
        drawn of them.
    files
        SHA-256 of the files that the numbers come from.
    diagnosis
        The diagnosis of the run, if there is one.
    """

    name: str
    analysis: Analysis | None
    summary: FitSummary
    scan: Scan | None
    measurement: Measurement
    answers: Answers | None
    shown: Mapping[str, Floats] | None
    tables: tuple[Table, ...]
    settings: Mapping[str, Any]
    text: str
    version: str
    models: Mapping[str, CrossTrainedModel]
    scored: Dataset | None
    drawn: RegionEvents | None
    files: Mapping[str, str]
    diagnosis: Diagnosis | None

    @property
    def model(self) -> CrossTrainedModel | None:
        """The first model; None for a fit by itself."""
        return next(iter(self.models.values()), None)

    @cached_property
    def events(self) -> RegionEvents | None:
        """All events with their features."""
        if self.drawn is None or self.analysis is None or not self.analysis.features:
            return self.drawn
        return self.drawn.with_features(self.analysis.features)

    @cached_property
    def data(self) -> Dataset | None:
        """Events of the regions that train the first model, without recorded data where results are blind."""
        if self.events is None or self.analysis is None:
            return None
        return self.events.training() if self.analysis.fit.blind else self.events.of_training_regions()

    @property
    def with_data(self) -> bool:
        """Whether there are recorded data, hidden or not."""
        return self.shown is not None or any(r.data is not None for r in self.measurement.regions.values())


def read_run(folder: Path, data: Path | None = None, progress: Progress = silent) -> RunFolder:
    """Read the folder of a run or of a fit; arguments as in `run_document`."""
    if (folder / "study.json").exists():
        raise ConfigError(f"{folder} was made by qbdt reproduce: run that again, it redoes nothing but the report")
    fits = folder / "fit" if (folder / "fit").is_dir() else folder
    plain = _read_json(fits / "fit.json", folder)
    result = _read_json(folder / "result.json", folder) if (folder / "result.json").exists() else {}
    with _damage_named(folder / "result.json"):
        analysis, tables = _parse(result), read_tables(result)
        settings, known = _flatten(result.get("analysis", {})), result.get("provenance", {}).get("data")
    with _damage_named(fits / "fit.json"):
        summary = FitSummary.from_dict(plain["observed"] or plain["expected"])
        scan = None if plain["scan"] is None else Scan.from_dict(plain["scan"])
        answers = None if plain.get("answers") is None else Answers.from_dict(plain["answers"])
        shown = None if plain.get("shown") is None else _read_shown(plain["shown"])
        settings = {**plain["settings"], **settings}
    measurement = _read_measurement(fits, folder, settings)
    _require_one_fit(summary, measurement, fits)
    scored = folder / "scored" / ANALYSIS_FILE
    names = list_models({} if analysis is None else analysis.regions)
    models = {name: folder / model_file(name) for name in names if (folder / model_file(name)).exists()}
    return RunFolder(
        str(result.get("name", folder.resolve().name)),
        analysis,
        summary,
        scan,
        measurement,
        answers,
        shown,
        tables,
        settings,
        str(result.get("yaml", "")),
        str(result.get("qbdt", "")),
        {name: read_cross_trained(path)[0] for name, path in models.items()},
        load(read_analysis(scored), scored.parent) if scored.exists() else None,
        None if analysis is None else _load_events(analysis, data, known, progress),
        {str(path.relative_to(folder)): digest_file(path) for path in (*models.values(), fits / "fit.json")},
        read_diagnosis(folder),
    )


def _read_shown(plain: Mapping[str, Any]) -> dict[str, Floats]:
    """Recorded events per bin; hidden ones are null in the file."""
    return {name: np.array(counts, dtype=np.float64) for name, counts in plain.items()}


def _read_measurement(fits: Path, folder: Path, settings: Mapping[str, Any]) -> Measurement:
    """Read the regions of a fit; one region without further parameters is a file of templates."""
    if (fits / "measurement.json").exists():
        with _damage_named(fits / "measurement.json"):
            return Measurement.from_dict(_read_json(fits / "measurement.json", folder))
    with _damage_named(fits / "templates.json"):
        templates = TemplateSet.from_dict(_read_json(fits / "templates.json", folder))
        signals = [process.name for process in templates.of_role(Role.SIGNAL)]
        return Measurement({str(settings["channel"]): templates}, {str(settings["poi"]): signals})


def _require_one_fit(summary: FitSummary, measurement: Measurement, fits: Path) -> None:
    """Refuse results whose templates are those of another fit."""
    bins = {name: len(region.edges) - 1 for name, region in measurement.regions.items()}
    fitted = (
        dict(summary.regions) if len(summary.regions) > 1 else dict(zip(bins, summary.regions.values(), strict=False))
    )
    if bins != fitted or set(measurement.processes) != set(summary.postfit):
        raise ConfigError(f"{fits}: fit.json and the templates beside it are not of one fit: fit again")


def move_to_fit(analysis: Analysis, folder: Path | str) -> Analysis:
    """Return the analysis with the working point of its training where the fit of an earlier run to data has its best.

    Parameters
    ----------
    analysis
        The analysis.
    folder
        Folder of a run, or of a fit, with observed results. Its sources count as far as the training has them.
    """
    place = Path(folder)
    fits = place / "fit" if (place / "fit").is_dir() else place
    plain = _read_json(fits / "fit.json", place)
    with _damage_named(fits / "fit.json"):
        summary = None if plain["observed"] is None else FitSummary.from_dict(plain["observed"])
    if summary is None:
        raise ConfigError(f"at: {place} has a fit to Asimov data, whose best point is the nominal one; data are needed")
    training = analysis.training
    known = list(analysis.systematics) if training.systematics is None else training.systematics
    found = {_name_in_files(p.name, known, summary): p.value for p in summary.sources}
    at = {name: value for name, value in found.items() if analysis.dataset or name.partition("#")[0] in known}
    if not at:
        raise ConfigError(f"at: the fit of {place} has none of the sources of the training: {', '.join(known)}")
    try:
        Settings(at=at)
    except ConfigError as error:  # it is no working point
        raise ConfigError(f"{fits / 'fit.json'}: {error}") from error
    return analysis.model_copy(update={"training": training.model_copy(update={"at": at})})


def _name_in_files(source: str, known: Collection[str], summary: FitSummary) -> str:
    """Name of a source in the analysis file: of "lumi_2" it is "lumi", where a fit must not call it so."""
    name = re.sub(r"_\d+$", "", source)
    taken = source in known or any(one.name == name for one in summary.sources)
    return name if name in known and not taken else source


def _read_json(path: Path, folder: Path) -> dict[str, Any]:
    try:
        return read_record(path)
    except FileNotFoundError:
        raise ConfigError(f"{folder}: no {path.name}: not the folder of a finished qbdt run or qbdt fit") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: damaged: {error}") from error


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    """Turn whatever the contents of a damaged file lead to into a message that names it."""
    try:
        yield
    except FitError as error:
        raise ConfigError(f"{path}: damaged: {error}") from error
    except QBDTError:
        raise
    except MALFORMED as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{path}: damaged: {reason}") from error


def _parse(result: Mapping[str, Any]) -> Analysis | None:
    """Return the analysis that was run, as far as it was given: of some settings it matters that they were not.

    One on a bundled dataset has no samples of its own. Settings with all defaults are read where there is no text.
    """
    plain = result.get("analysis")
    if plain is None:
        return None
    if plain.get("dataset") is not None:
        plain = {key: plain[key] for key in WITH_DATASET}
    elif text := result.get("yaml"):
        return parse_analysis(str(text), "the analysis in result.json")
    return Analysis.model_validate({key: value for key, value in plain.items() if value is not None})


def _load_events(analysis: Analysis, data: Path | None, known: str | None, progress: Progress) -> RegionEvents | None:
    """Read the events again; where no folder is given, from that of the run, if they are still there."""
    if data is not None or analysis.dataset is not None:
        return _load_checked(analysis, data or Path(), progress)
    try:
        return None if known is None else _load_checked(analysis, Path(known), progress)
    except QBDTError:  # files that have moved: the report says what it leaves out
        return None


def _load_checked(analysis: Analysis, folder: Path, progress: Progress) -> RegionEvents:
    events = load_regions(add_variables(analysis, list_drawn(analysis)), folder, progress)
    require_trainable(events, analysis)
    return events


def read_tables(result: Mapping[str, Any]) -> tuple[Table, ...]:
    """Tables in the content of `result.json`."""
    tables = result.get("tables", ())
    return tuple(Table(str(t["title"]), _read_cells(t["header"]), tuple(map(_read_cells, t["rows"]))) for t in tables)


def _read_cells(cells: Iterable[Any]) -> tuple[str, ...]:
    return tuple(map(str, cells))


def _flatten(plain: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted names; what is not set is left out."""
    found: dict[str, Any] = {}
    for key, value in plain.items():
        if isinstance(value, Mapping):
            found |= _flatten(value, f"{prefix}{key}.")
        elif value not in (None, [], ""):
            found[f"{prefix}{key}"] = value
    return found
