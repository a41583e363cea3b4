"""From an `Analysis` to a `Dataset`: which files, which branches, which source acts on which process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from qbdt.analysis.event_reader import Bases, EventReader
from qbdt.analysis.input_files import list_files, name_in_errors, refuse_inputs, require_unchanged
from qbdt.analysis.normalisation import Normalisation
from qbdt.analysis.region_events import RegionEvents, add_region_columns, name_training_regions
from qbdt.analysis.schema import Analysis, FamilySource, Folds
from qbdt.data import Dataset, FoldRule
from qbdt.data.samples import BUILTIN
from qbdt.errors import ConfigError, DataError, FitError
from qbdt.inference.partners import read_partner
from qbdt.progress import Progress, silent
from qbdt.training import STRENGTH, Partner, Settings
from qbdt.training.partitions import PartitionedEvents

AnyEvents = TypeVar("AnyEvents", Dataset, PartitionedEvents)


def load(
    analysis: Analysis, folder: str | Path = ".", progress: Progress = silent, *, to_train: bool = True
) -> Dataset:
    """Read all events of an analysis and check that they can be used.

    Parameters
    ----------
    analysis
        The analysis, from `read_analysis`.
    folder
        Where relative paths of files start.
    progress
        Told how far reading has come.
    to_train
        Whether to keep the events of regions that train, and refuse what cannot be trained on or fitted, such as an
        analysis without signal; not needed to score.
    """
    found = load_regions(analysis, folder, progress)
    return require_trainable(found, analysis) if to_train else found.every_event()


def load_regions(analysis: Analysis, folder: str | Path = ".", progress: Progress = silent) -> RegionEvents:
    """Read all events of an analysis, region by region where it has them; arguments as for `load`."""
    files = list_files(analysis, Path(folder))
    found = FilePartition(analysis, Path(folder), 0, 1).read(progress).require_disjoint()
    require_unchanged(analysis, Path(folder), files)
    return found


def require_trainable(events: RegionEvents, analysis: Analysis, model: str | None = None) -> Dataset:
    """Events of the regions that train a model (the first by default); refuse what cannot be trained on or fitted."""
    with name_in_errors(name_training_regions(events.regions, model)):
        return require_usable(events.of_training_regions(model), analysis)


def require_usable(dataset: Dataset, analysis: Analysis) -> Dataset:
    """Refuse events that cannot be trained on or fitted."""
    dataset.require_categories([name for name in analysis.categorical if name in dataset.features])
    dataset.require_usable().require_fittable().require_full_folds()
    restrict_sources(dataset, analysis.training.systematics).require_trainable_folds()
    return dataset


def load_for_training(
    analysis: Analysis,
    folder: Path,
    folds: int | None = None,
    fold_columns: Sequence[str] = (),
    progress: Progress = silent,
    spread: Callable[[Analysis], PartitionedEvents | None] = lambda analysis: None,
    out: Path | None = None,
) -> Dataset | PartitionedEvents:
    """Read the events and sources that an analysis trains on.

    Parameters
    ----------
    folds, fold_columns
        Number of folds (1 for none) and identifier columns that divide them, instead of the analysis's.
    spread
        Called with the analysis and its folds: returns its events in partitions, where they do not fit into memory.
    out
        File that will be written: refused where it is one of those that are read.
    """
    refuse_inputs(analysis, folder, () if out is None else (out,))
    if analysis.training.by_era:
        raise ConfigError("training.by_era: one model for each era is trained by qbdt run; here there is one for all")
    analysis = _replace_folds(analysis, folds, list(fold_columns))
    partitioned = spread(analysis)
    if partitioned is not None:
        return restrict_sources(partitioned, analysis.training.systematics)
    dataset = load(analysis, folder, progress)
    if folds is not None and dataset.folds is not None and dataset.folds.k != folds:  # the rule came with the dataset
        dataset = dataset.with_folds(None if folds == 1 else replace(dataset.folds, k=folds)).require_full_folds()
    return restrict_sources(dataset, analysis.training.systematics)


def restrict_sources(events: AnyEvents, names: Sequence[str] | None) -> AnyEvents:
    """Keep some systematic sources, by name; all where none are named."""
    return events if names is None else events.with_systematics(list(names))


def training_settings(analysis: Analysis, partner: Partner | None = None) -> Settings:
    """Settings of the training: its section, which features are categorical, and what is fitted beside it.

    The control regions of the analysis itself are known only where its events are: their `partner` is given then.
    """
    _require_strength_name(analysis)
    return analysis.training.settings(analysis.categorical, _read_partner(analysis) if partner is None else partner)


def require_settings(analysis: Analysis) -> None:
    """Refuse settings, and a workspace, that cannot be used in training, as far as they are known without events."""
    if analysis.training.partner_file is None:
        _require_strength_name(analysis)
    else:
        training_settings(analysis)


def _require_strength_name(analysis: Analysis) -> None:
    training, source = analysis.training, analysis.systematics.get(STRENGTH)
    if source is not None and (isinstance(source, FamilySource) or not source.correlated):
        return  # its parts have names of their own
    if training.method == "profile" and not training.strengths and STRENGTH in _name_sources(analysis):
        raise ConfigError(
            f"systematics.{STRENGTH}: the signal strength of the training is called so: rename the source, or the "
            "strength (training.strengths: {another name: all signals})"
        )


def _name_sources(analysis: Analysis) -> Sequence[str]:
    """Sources that the training knows, as the file calls them."""
    chosen = analysis.training.systematics
    return [*analysis.systematics] if chosen is None else chosen


def _read_partner(analysis: Analysis) -> Partner | None:
    found = analysis.training.partner
    if found is None:
        return None
    if found.file is None:
        raise ConfigError("training.with: control regions: their events are read by qbdt run only, on one machine")
    poi = found.poi or analysis.fit.poi
    try:
        partner = read_partner(found.file, None if poi == "none" else poi)
        _require_common(partner, analysis)
    except (FitError, ConfigError) as error:
        raise ConfigError(f"training.with: {error}") from error
    return partner


def _require_common(partner: Partner, analysis: Analysis) -> None:
    """Refuse a partner without a parameter of the training, where the file names all of these."""
    if names := _name_parameters(analysis):
        partner.require_common(names)


def describe_partner(partner: Partner, analysis: Analysis) -> str:
    """Say which parameters of the training a partner measures, and which not: their names may be spelled otherwise."""
    names = _name_parameters(analysis) or partner.names
    known = [name for name in names if name in partner.names]
    missing = ", ".join(name for name in names if name not in known)
    return f"measured beside the trained region: {', '.join(known)}" + (f"; not there: {missing}" if missing else "")


def _name_parameters(analysis: Analysis) -> list[str]:
    """Parameters of the training; none where the file does not name them all, as those of a family of weights."""
    training = analysis.training
    if analysis.dataset is not None or any(isinstance(one, FamilySource) for one in analysis.systematics.values()):
        return []
    free = map(Partner.name_free, training.free)
    return [*(training.strengths or (STRENGTH,)), *_name_sources(analysis), *free]


@dataclass(frozen=True)
class FilePartition:
    """One partition of an analysis's events: called, it reads them, on whichever machine.

    A partition holds consecutive rows of every sample and every variation; all together are the events that `load`
    reads.
    """

    analysis: Analysis
    folder: Path
    number: int
    count: int
    model: str | None = None

    def __call__(self) -> Dataset:
        """Read the simulated events of the partition that train the model, the first by default."""
        return self.read().training(self.model)

    def read(self, progress: Progress = silent) -> RegionEvents:
        """Read the partition, region by region."""
        analysis, rule = self.analysis, fold_rule(self.analysis)
        if analysis.dataset is None:
            whole = EventReader(analysis, self.folder, rule, progress, (self.number, self.count)).dataset()
            return RegionEvents(whole, analysis.regions)
        dataset = _builtin(analysis)
        dataset = dataset if rule is None else dataset.with_folds(rule)
        if self.count > 1:
            dataset = dataset.select(
                lambda events: np.arange(*(events.n_rows * (self.number + i) // self.count for i in (0, 1)))
            )
        return RegionEvents(add_region_columns(dataset, analysis.regions), analysis.regions)


def load_partitions(analysis: Analysis, folder: str | Path, count: int) -> list[FilePartition]:
    """Divide the events of an analysis into `count` partitions that are read apart, on this machine or others.

    Where there are fewer files, files are divided. On a cluster, workers must find the files under the same paths.
    """
    if count < 1:
        raise DataError(f"{count} partitions: at least one is needed")
    return [FilePartition(analysis, Path(folder).resolve(), number, count) for number in range(count)]


def find_families(analysis: Analysis, folder: str | Path) -> Bases:
    """Principal components of the families of weights of an analysis; some events are read."""
    if analysis.dataset is not None:
        return {}
    return EventReader(analysis, Path(folder), fold_rule(analysis), silent).bases()


def load_eras(analysis: Analysis, folder: str | Path, progress: Progress = silent) -> dict[str, Dataset]:
    """Read each era by itself; one without a name where there are none."""
    return EventReader(analysis, Path(folder), fold_rule(analysis), progress).datasets()


def find_normalisations(analysis: Analysis, folder: str | Path) -> list[Normalisation]:
    """Factors on the weights of samples that have a cross section, era by era; generated events are counted."""
    if analysis.dataset is not None:
        return []
    return EventReader(analysis, Path(folder), fold_rule(analysis), silent).normalisations()


def fold_rule(analysis: Analysis) -> FoldRule | None:
    """Return the fold rule of an analysis, if it has one."""
    return None if analysis.folds is None else analysis.folds.rule()


def require_folds(rule: FoldRule | None) -> FoldRule:
    """Refuse a run without folds."""
    if rule is None:
        raise ConfigError("folds: needed to run an analysis, so that no event is scored by a model that saw it")
    return rule


def _builtin(analysis: Analysis) -> Dataset:
    assert analysis.dataset is not None
    name, options = analysis.dataset.name, analysis.dataset.options
    if name not in BUILTIN:
        raise ConfigError(f"dataset.name: no dataset {name!r} comes with qbdt; there are: {', '.join(BUILTIN)}")
    known = inspect.signature(BUILTIN[name]).parameters
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ConfigError(f"dataset.options: {name} has no option {', '.join(unknown)}; there are: {', '.join(known)}")
    try:
        return BUILTIN[name](**options)
    except (TypeError, ValueError, MemoryError, OverflowError) as error:
        raise ConfigError(f"dataset.options: {name}: {error}") from error


def _replace_folds(analysis: Analysis, folds: int | None, columns: list[str]) -> Analysis:
    """Return the analysis with the folds that were asked for."""
    if folds == 1:
        if columns:
            raise ConfigError("fold_columns: there is nothing to divide with folds=1")
        return analysis.model_copy(update={"folds": None})
    if columns:
        by = "hash" if len(columns) > 1 else "modulo"
        return analysis.model_copy(update={"folds": Folds(by=by, columns=columns, k=folds or 2)})
    if folds is None or analysis.dataset is not None:
        return analysis
    if analysis.folds is None:
        raise ConfigError(f"folds={folds}: the analysis does not say by what; give fold_columns=[NAME]")
    if analysis.folds.by == "split" and folds != analysis.folds.k:
        raise ConfigError(f"folds={folds}: the column {analysis.folds.columns[0]} holds {analysis.folds.k} folds")
    return analysis.model_copy(update={"folds": analysis.folds.model_copy(update={"k": folds})})
