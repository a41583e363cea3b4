"""From an `Analysis` to a `Dataset`: which files, which branches, which source acts on which process."""

from __future__ import annotations

import fnmatch
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path, PurePath
from typing import TypeVar

import numpy as np

from qbdt.analysis.eras import split_eras
from qbdt.analysis.normalisation import Normalisation, count_generated
from qbdt.analysis.region_events import RegionEvents, add_region_columns, read_conditions, read_observables
from qbdt.analysis.schema import (
    Analysis,
    FamilySource,
    Folds,
    Generated,
    NormSource,
    SampleFiles,
    ShapeSource,
    ShapeVariation,
    WeightSource,
)
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Expression, FoldRule, Role, Sample, Systematic
from qbdt.data.families import BASIS_ROWS, FamilyBasis, FamilyRows, FamilySampler, find_bases, make_sources
from qbdt.data.readers import (
    NOMINAL,
    ColumnPlan,
    Request,
    Share,
    expand,
    family_column,
    open_table,
    read_family_rows,
    read_request,
    require_same_rows,
)
from qbdt.data.samples import BUILTIN
from qbdt.errors import ConfigError, DataError, ExpressionError, FitError, find_repeated
from qbdt.files import digest
from qbdt.inference.partners import read_partner
from qbdt.progress import Progress, silent
from qbdt.training import Partner, Settings
from qbdt.training.partitions import PartitionedEvents

__all__ = [
    "FilePartition",
    "find_families",
    "find_normalisations",
    "fold_rule",
    "list_files",
    "load",
    "load_for_training",
    "load_partitions",
    "load_regions",
    "require_folds",
    "restrict_sources",
    "training_settings",
]

AnySource = WeightSource | ShapeSource | NormSource | FamilySource
VariedColumns = dict[str, Floats]
Bases = Mapping[str, FamilyBasis]
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
    return require_trainable(found.of_training_regions(), analysis) if to_train else found.every_event()


def load_regions(analysis: Analysis, folder: str | Path = ".", progress: Progress = silent) -> RegionEvents:
    """Read all events of an analysis, region by region where it has them; arguments as for `load`."""
    return FilePartition(analysis, Path(folder), 0, 1).read(progress).require_disjoint()


def require_trainable(dataset: Dataset, analysis: Analysis) -> Dataset:
    """Refuse events that cannot be trained on or fitted."""
    dataset.require_categories([name for name in analysis.categorical if name in dataset.features])
    return dataset.require_usable().require_full_folds()


def load_for_training(
    analysis: Analysis,
    folder: Path,
    folds: int | None = None,
    fold_columns: Sequence[str] = (),
    progress: Progress = silent,
) -> Dataset:
    """Read the events and sources that an analysis trains on.

    Parameters
    ----------
    analysis, folder, progress
        As for `load`.
    folds
        Number of folds instead of the analysis's; 1 for none.
    fold_columns
        Identifier columns that divide the folds, instead of the analysis's.
    """
    dataset = load(_replace_folds(analysis, folds, list(fold_columns)), folder, progress)
    if folds is not None and dataset.folds is not None and dataset.folds.k != folds:  # the rule came with the dataset
        dataset = dataset.with_folds(None if folds == 1 else replace(dataset.folds, k=folds)).require_full_folds()
    return restrict_sources(dataset, analysis.training.systematics)


def restrict_sources(events: AnyEvents, names: Sequence[str] | None) -> AnyEvents:
    """Keep some systematic sources, by name; all where none are named."""
    return events if names is None else events.with_systematics(list(names))


def training_settings(analysis: Analysis) -> Settings:
    """Settings of the training: its section, which features are categorical, and what the workspace of `with` knows."""
    values = analysis.training.model_dump(exclude={"systematics", "with"})
    given = {name: value for name, value in values.items() if value is not None}
    return Settings(**given, categorical_features=analysis.categorical, partner=_read_partner(analysis))


def _read_partner(analysis: Analysis) -> Partner | None:
    found = analysis.training.partner_file
    if found is None:
        return None
    poi = found.poi or analysis.fit.poi
    try:
        return read_partner(found.file, None if poi == "none" else poi)
    except FitError as error:
        raise ConfigError(f"training.with: {error}") from error


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

    def __call__(self) -> Dataset:
        """Read the simulated events of the partition that train."""
        return self.read().training()

    def read(self, progress: Progress = silent) -> RegionEvents:
        """Read the partition, region by region."""
        analysis, rule = self.analysis, fold_rule(self.analysis)
        if analysis.dataset is None:
            whole = _Loader(analysis, self.folder, rule, progress, (self.number, self.count)).dataset()
            return RegionEvents(whole, analysis.regions)
        dataset = _builtin(analysis)
        dataset = dataset if rule is None else dataset.with_folds(rule)
        if self.count > 1:
            dataset = dataset.select(
                lambda events: np.arange(*(events.n_rows * (self.number + i) // self.count for i in (0, 1)))
            )
        return RegionEvents(add_region_columns(dataset, analysis.regions), analysis.regions)


def load_partitions(analysis: Analysis, folder: str | Path, count: int) -> list[FilePartition]:
    """Divide the events of an analysis into partitions that are read apart, on this machine or others.

    Parameters
    ----------
    analysis, folder
        As for `load`. On a cluster, workers must find the files under the same paths.
    count
        How many partitions. Where there are fewer files, files are divided.
    """
    if count < 1:
        raise DataError(f"{count} partitions: at least one is needed")
    return [FilePartition(analysis, Path(folder).resolve(), number, count) for number in range(count)]


def find_families(analysis: Analysis, folder: str | Path) -> Bases:
    """Principal components of the families of weights of an analysis; some events are read."""
    if analysis.dataset is not None:
        return {}
    return _Loader(analysis, Path(folder), fold_rule(analysis), silent).bases()


def find_normalisations(analysis: Analysis, folder: str | Path) -> list[Normalisation]:
    """Factors on the weights of samples that have a cross section, era by era; generated events are counted."""
    if analysis.dataset is not None:
        return []
    return _Loader(analysis, Path(folder), fold_rule(analysis), silent).normalisations()


def fold_rule(analysis: Analysis) -> FoldRule | None:
    """Return the fold rule of an analysis, if it has one."""
    return None if analysis.folds is None else analysis.folds.rule()


def require_folds(rule: FoldRule | None) -> FoldRule:
    """Refuse a run without folds."""
    if rule is None:
        raise ConfigError("folds: needed to run an analysis, so that no event is scored by a model that saw it")
    return rule


def divide_files(files: Sequence[str], number: int, count: int) -> list[tuple[str, Share]]:
    """Files, or shares of files, that make up one of `count` equal partitions of a list of files.

    Examples
    --------
    >>> [[(file, str(share.begin), str(share.end)) for file, share in divide_files("ab", i, 4)] for i in (0, 1)]
    [[('a', '0', '1/2')], [('a', '1/2', '1')]]
    """
    low, high = (Fraction(len(files) * (number + i), count) for i in (0, 1))
    cut = [(file, max(low - i, Fraction(0)), min(high - i, Fraction(1))) for i, file in enumerate(files)]
    return [(file, Share(begin, end)) for file, begin, end in cut if begin < end]


def list_files(analysis: Analysis, folder: Path) -> list[tuple[str, int, int]]:
    """Path, size and time of change of every file that an analysis reads; what is missing is the reader's to report."""
    with suppress(DataError):
        acts_on = _match_sources(analysis)
        eras = split_eras(analysis, acts_on).values()
        found = {path for one in eras for path in _find_files(one, folder)}
        return sorted((str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in found)
    return []


def _find_files(analysis: Analysis, folder: Path) -> set[Path]:
    """Files of an analysis without eras that are there."""
    shapes = [side for s in analysis.systematics.values() if isinstance(s, ShapeSource) for side in (s.up, s.down)]
    patterns = [path for sample in analysis.samples.values() for path in sample.files]
    for path in (path for side in shapes if side is not None for path in side.files or ()):
        for process, sample in analysis.samples.items():
            patterns += _name_files(path, process, sample.files)
    found = set()
    if analysis.training.partner_file is not None and Path(analysis.training.partner_file.file).exists():
        found.add(Path(analysis.training.partner_file.file))
    for pattern in patterns:
        with suppress(DataError):
            found |= {Path(file) for file in expand(pattern, folder) if "://" not in file}
    return found


def _match_sources(analysis: Analysis) -> dict[str, list[str]]:
    """Processes that each source acts on."""
    return {name: match_processes(name, source, analysis.samples) for name, source in analysis.systematics.items()}


def match_processes(name: str, source: AnySource, samples: Mapping[str, SampleFiles]) -> list[str]:
    """Processes that a source acts on; every pattern must match one, and none of them recorded data."""
    simulated = [process for process, sample in samples.items() if Role(sample.role) is not Role.DATA]
    found: list[str] = []
    for pattern in source.processes:
        matched = [pattern] if pattern in simulated else fnmatch.filter(simulated, pattern)
        if not matched:
            role = " (it is recorded data)" if pattern in samples else ""
            raise DataError(
                f"systematics.{name}: {pattern!r} matches no simulated process{role}; there are: {', '.join(simulated)}"
            )
        found += matched
    return list(dict.fromkeys(found))


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


_BASES: dict[str, Bases] = {}
"""Components of the families of weights that were found last."""

MOST_FILES = 8
"""Files of a sample that principal components are found on, at most."""


class _Loader:
    """Reads the samples of one analysis, nominal and varied."""

    def __init__(
        self,
        analysis: Analysis,
        folder: Path,
        rule: FoldRule | None,
        progress: Progress,
        partition: tuple[int, int] = (0, 1),
    ) -> None:
        self._partition = partition
        self._era = ""
        self._bases: Bases = {}
        self._analysis, self._folder, self._rule, self._progress = analysis, folder, rule, progress
        self._acts_on = _match_sources(analysis)

    def dataset(self) -> Dataset:
        """Return everything as one dataset: the eras joined, where there are some."""
        self._bases = self.bases()
        return Dataset.concatenate([one._read_era() for one in self._eras()])

    def bases(self) -> Bases:
        """Return the principal components of each family of weights, found on some events of all eras.

        They are kept while files and analysis do not change: partitions of one analysis ask for them again.
        """
        sources = self._analysis.systematics
        samplers = {n: FamilySampler(s.family(n)) for n, s in sources.items() if isinstance(s, FamilySource)}
        if not samplers:
            return {}
        key = digest([self._analysis.what_is_trained(), list_files(self._analysis, self._folder)])
        if key not in _BASES:
            _BASES.clear()
            _BASES[key] = find_bases(samplers, [one._sample_families(samplers) for one in self._eras()])
        return _BASES[key]

    def _sample_families(self, samplers: Mapping[str, FamilySampler]) -> dict[str, dict[str, FamilyRows]]:
        """Weights and shifts of some events of each process, for the families that act on it."""
        found = {}
        for process, files in self._analysis.samples.items():
            acting = {_source_of(name) for name, processes in self._acts_on.items() if process in processes}
            chosen = {name: sampler for name, sampler in samplers.items() if name in acting}
            if chosen:
                request = replace(self._request(files, self._scale(process, files)), features=(), ids=())
                request = replace(request, families=chosen, missing={})
                found[process] = self._sample(process, files, request)
        return found

    def _sample(self, process: str, files: SampleFiles, request: Request) -> dict[str, FamilyRows]:
        with _said_of(process):
            paths = [file for path in files.files for file in expand(path, self._folder)]
            some = paths[:: -(-len(paths) // MOST_FILES)]
            tables = (open_table(path, files.tree or self._analysis.tree) for path in some)
            return read_family_rows(tables, request, -(-BASIS_ROWS // len(some)))

    def _eras(self) -> list[_Loader]:
        """Return a loader for each era, or this one where there are none."""
        eras = split_eras(self._analysis, self._acts_on)
        return [self._in_era(era, one) for era, one in eras.items()]

    def normalisations(self) -> list[Normalisation]:
        """Return what the weights of each sample are multiplied with, era by era."""
        found = [
            one._normalise(p, s, s.files, s.tree) for one in self._eras() for p, s in one._analysis.samples.items()
        ]
        return [one for one in found if one is not None]

    def _in_era(self, era: str, analysis: Analysis) -> _Loader:
        if not era:
            return self
        loader = _Loader(analysis, self._folder, self._rule, self._progress, self._partition)
        loader._era, loader._bases = era, self._bases
        return loader

    def _read_era(self) -> Dataset:
        samples: list[Sample] = []
        weights: dict[str, VariedColumns] = {}
        for process, files in self._analysis.samples.items():
            events, weights[process] = self._nominal(process, files)
            samples.append(Sample(process, Role(files.role), events))
        sources = [one for name, s in self._analysis.systematics.items() for one in self._sources(name, s, weights)]
        return Dataset(samples, sources, self._rule)

    def _nominal(self, process: str, files: SampleFiles) -> tuple[Events, VariedColumns]:
        """Nominal events, and the weights of all weight-type sources on them."""
        acting = [name for name, processes in self._acts_on.items() if process in processes]
        families = {name: self._bases[_source_of(name)] for name in acting if _source_of(name) in self._bases}
        variations = {}
        for name, source in self._analysis.systematics.items():
            if isinstance(source, WeightSource) and process in self._acts_on[name]:
                variations[f"{name} up"] = Expression(source.up)
                if source.down is not None:
                    variations[f"{name} down"] = Expression(source.down)
        request = self._request(files, self._scale(process, files), variations=variations)
        request = replace(request, families=families)
        return self._read(process, files.files, files.tree, request)

    def _sources(self, name: str, source: AnySource, columns: Mapping[str, VariedColumns]) -> list[Systematic]:
        """Sources that one entry of the file stands for: several for a family of weights."""
        if not isinstance(source, FamilySource):
            return [self._source(name, source, columns)]
        basis = self._bases[_source_of(name)]
        numbers = range(basis.n_columns)
        stored = {p: [columns[p][family_column(name, k)] for k in numbers] for p in self._acts_on[name]}
        return make_sources(name, basis, stored)

    def _source(
        self, name: str, source: WeightSource | ShapeSource | NormSource, columns: Mapping[str, VariedColumns]
    ) -> Systematic:
        processes = self._acts_on[name]
        match source:
            case NormSource():
                return Systematic.norm(name, source.size, processes=processes)
            case WeightSource():
                up = {process: columns[process][f"{name} up"] for process in processes}
                down = None if source.down is None else {p: columns[p][f"{name} down"] for p in processes}
                return Systematic.weight(name, up, down)
            case ShapeSource():
                shifted = self._varied(name, "up", processes, source.up)
                if source.down is None:
                    return Systematic.shape(name, shifted)
                return Systematic.shape(name, shifted, self._varied(name, "down", processes, source.down))

    def _varied(
        self, name: str, direction: str, processes: Sequence[str], variation: ShapeVariation
    ) -> dict[str, Events]:
        key = f"systematics.{name}.{direction}"
        self._check_variation(key, processes, variation)
        found = {}
        for process in processes:
            files = self._analysis.samples[process]
            named = [_name_files(path, process, files.files) for path in variation.files or ()]
            paths = [path for found in named for path in found] or files.files
            tree = _named(variation.tree, process) if variation.tree else files.tree
            self._check_positions(key, files, paths, tree)
            scale = self._scale(process, files, variation.generated, paths, tree)
            request = self._request(files, scale, columns=variation.columns, weight=variation.weight)
            self._check_columns(key, variation, request)
            found[process] = self._read(f"{process}, {name} {direction}", paths, tree, request)[0]
        return found

    def _check_variation(self, key: str, processes: Sequence[str], variation: ShapeVariation) -> None:
        """Refuse one set of events for several processes, which would turn one process into another."""
        texts = [*(variation.files or ()), variation.tree or ""]
        nominal = {tuple(self._analysis.samples[process].files) for process in processes}
        if variation.files and len(nominal) > 1 and not any(mark in text for text in texts for mark in PLACEHOLDERS):
            raise DataError(
                f"{key}: the same files for {', '.join(processes)}; put {{process}} into the path, or name one process"
            )

    def _check_positions(self, key: str, files: SampleFiles, paths: Sequence[str], tree: str | None) -> None:
        """Refuse folds by position where the varied files do not have the rows of the nominal ones."""
        rule = self._analysis.folds
        if rule is None or rule.by != "position" or (list(paths), tree) == (files.files, files.tree):
            return
        nominal, varied = (
            [one for path in side for one in expand(path, self._folder)] for side in (files.files, paths)
        )
        if len(nominal) != len(varied):
            raise DataError(f"{key}: folds by position: {len(varied)} files, {len(nominal)} nominal ones")
        for one, other in zip(nominal, varied, strict=True):
            trees = (files.tree or self._analysis.tree, tree or self._analysis.tree)
            require_same_rows((one, trees[0]), (other, trees[1]), rule.columns, key)

    def _check_columns(self, key: str, variation: ShapeVariation, request: Request) -> None:
        plan = ColumnPlan(request.derived, (), "")
        for name in request.identifying_columns:
            if varied := sorted(set(variation.columns) & plan.find_needed([name])):
                through = "" if varied == [name] else f" through {', '.join(varied)}"
                raise DataError(f"{key}.columns: {name} divides the folds and must not be varied{through}")
        selection = request.selection.names if request.selection else ()
        used = plan.find_needed((*request.features, *request.weight.names, *selection))
        idle = sorted(set(variation.columns) - used)
        if idle:
            raise DataError(f"{key}.columns: no feature, weight or selection uses {', '.join(idle)}")

    def _scale(
        self,
        process: str,
        files: SampleFiles,
        generated: Generated | None = None,
        paths: Sequence[str] | None = None,
        tree: str | None = None,
    ) -> float:
        """Return the factor on all weights of a sample, or of a variation with files and generated events its own."""
        sample = files if generated is None else files.model_copy(update={"generated": generated})
        found = self._normalise(process, sample, paths or files.files, tree or files.tree)
        return files.scale * (1.0 if found is None else found.factor)

    def _normalise(
        self, process: str, files: SampleFiles, paths: Sequence[str], tree: str | None
    ) -> Normalisation | None:
        luminosity, cross_section = self._analysis.luminosity, files.cross_section
        if luminosity is None or cross_section is None or files.generated is None:
            return None
        with _said_of(f"samples.{process}"):
            found = [file for path in paths for file in expand(path, self._folder)]
            generated = count_generated(files.generated, found, tree or self._analysis.tree)
        return Normalisation(process, self._era, luminosity, cross_section, generated)

    def _request(
        self,
        files: SampleFiles,
        scale: float,
        columns: Mapping[str, str] | None = None,
        weight: str | None = None,
        variations: Mapping[str, Expression] | None = None,
    ) -> Request:
        analysis = self._analysis
        nominal = Expression(files.weight or ("1" if files.role == "data" else analysis.weight))
        conditions, observables = read_conditions(analysis.regions), read_observables(analysis.regions)
        cuts = [f"({cut})" for cut in (analysis.selection, files.selection) if cut is not None]
        if conditions:  # events of no region are not kept
            cuts.append(f"({' or '.join(f'({one.text})' for one in conditions.values())})")
        return Request(
            features=(*analysis.features, *observables),
            weight=nominal if weight is None else Expression(weight).substitute(NOMINAL, nominal),
            scale=scale,
            variations=variations or {},
            derived={**_derived(analysis.columns, columns or {}), **observables},
            selection=Expression(" and ".join(cuts)) if cuts else None,
            conditions=conditions,
            ids=self._rule.columns if self._rule else (),
            missing=_placeholders(analysis),
        )

    def _read(
        self, what: str, paths: Sequence[str], tree: str | None, request: Request
    ) -> tuple[Events, VariedColumns]:
        with _said_of(what):
            files = [file for path in paths for file in expand(path, self._folder)]
            if twice := find_repeated(files):
                raise DataError(f"{twice[0]} is named twice: its events would count twice")
            divided = divide_files(files, *self._partition)
            tables = (open_table(f, tree or self._analysis.tree, share) for f, share in divided)
            request = replace(request, file_numbers=tuple(files.index(file) for file, _ in divided))
            return read_request(tables, request, description=what, progress=self._progress)


@contextmanager
def _said_of(what: str) -> Iterator[None]:
    """Put what is read in front of a message."""
    try:
        yield
    except (DataError, ExpressionError) as error:
        raise type(error)(f"{what}: {error}") from error


def _source_of(name: str) -> str:
    """Name of a source in the analysis file, without that of an era."""
    return name.partition("#")[0]


def _derived(columns: Mapping[str, str], varied: Mapping[str, str]) -> dict[str, Expression]:
    """Derived columns under a variation.

    Where a derived column hides a branch (`pt: pt / 1000`), the variation changes the branch beneath it; otherwise it
    takes the column's place.
    """
    derived = {name: Expression(text) for name, text in columns.items()}
    for name, text in varied.items():
        beneath = name in derived and name in derived[name].names
        derived[name] = derived[name].substitute(name, Expression(text)) if beneath else Expression(text)
    return derived


PLACEHOLDERS = ("{process}", "{file}")
"""What in the paths of varied files stands for the process's name, and for each of its nominal files."""


def _named(text: str, process: str) -> str:
    return text.replace("{process}", process)


def _name_files(text: str, process: str, nominal: Sequence[str]) -> list[str]:
    """Paths of varied files of a process; {file} stands for each nominal one, without folder and ending."""
    named = _named(text, process)
    return [named.replace("{file}", PurePath(path).stem) for path in nominal] if "{file}" in named else [named]


def _placeholders(analysis: Analysis) -> dict[str | None, tuple[float, ...]]:
    if isinstance(analysis.missing, list):
        return {None: tuple(analysis.missing)}
    return {name: tuple(values) for name, values in analysis.missing.items()}
