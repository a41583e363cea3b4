"""`EventReader`: reads the samples of one analysis, nominal and varied, era by era, into one `Dataset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from qbdt.analysis.data_driven import Contribution, find_ratio, rename_process, split_data_driven
from qbdt.analysis.eras import split_eras
from qbdt.analysis.input_files import (
    PLACEHOLDERS,
    divide_files,
    insert_process,
    list_files,
    list_missing,
    match_sources,
    name_files,
    name_in_errors,
    refuse_same_files,
    vary_columns,
)
from qbdt.analysis.normalisation import Normalisation, count_generated
from qbdt.analysis.region_events import RegionEvents, read_conditions, read_observables
from qbdt.analysis.schema import (
    Analysis,
    FamilySource,
    Generated,
    Region,
    SampleFiles,
    ShapeSource,
    ShapeVariation,
    Source,
    WeightSource,
)
from qbdt.analysis.transfer_ratio import Transfer, ratio_regions
from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Expression, FoldRule, Role, Sample, Systematic
from qbdt.data.families import BASIS_ROWS, FamilyBasis, FamilyRows, FamilySampler, find_bases, make_sources
from qbdt.data.readers import (
    NOMINAL,
    ColumnPlan,
    Friend,
    Request,
    Share,
    expand,
    family_column,
    open_with_friends,
    read_family_rows,
    read_request,
    require_same_values,
)
from qbdt.errors import DataError
from qbdt.files import digest
from qbdt.progress import Progress

VariedColumns = dict[str, Floats]
Bases = Mapping[str, FamilyBasis]

_BASES: dict[str, Bases] = {}
"""Components of the families of weights that were found last."""

MOST_FILES = 8
"""Files of a sample that principal components are found on, at most."""


class EventReader:
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
        self._acts_on = match_sources(analysis)

    def dataset(self) -> Dataset:
        """Return everything as one dataset: the eras joined, where there are some."""
        return Dataset.concatenate(list(self.datasets().values()))

    def datasets(self) -> dict[str, Dataset]:
        """Return the events of each era."""
        self._bases = self.bases()
        return {one._era: one._read_era() for one in self._eras()}

    def bases(self) -> Bases:
        """Return the principal components of each family of weights, found on some events of all eras.

        They are kept while files and analysis do not change: partitions of one analysis ask for them again.
        """
        sources = self._analysis.systematics
        samplers = {n: FamilySampler(s.family(n)) for n, s in sources.items() if isinstance(s, FamilySource)}
        if not samplers:
            return {}
        key = digest([self._analysis.describe_training(), list_files(self._analysis, self._folder)])
        if key not in _BASES:
            _BASES.clear()
            _BASES[key] = find_bases(samplers, [one._sample_families(samplers) for one in self._eras()])
        return _BASES[key]

    def _sample_families(self, samplers: Mapping[str, FamilySampler]) -> dict[str, dict[str, FamilyRows]]:
        """Weights and shifts of some events of each process, for the families that act on it."""
        found = {}
        for process, files in self._analysis.samples.items():
            if files.from_data is not None:
                continue
            acting = {_source_of(name) for name, processes in self._acts_on.items() if process in processes}
            chosen = {name: sampler for name, sampler in samplers.items() if name in acting}
            if chosen:
                request = replace(self._request(files, self._scale(process, files)), features=(), ids=())
                request = replace(request, families=chosen, missing={})
                found[process] = self._sample(process, files, request)
        return found

    def _sample(self, process: str, files: SampleFiles, request: Request) -> dict[str, FamilyRows]:
        with name_in_errors(process):
            paths = [file for path in files.files for file in expand(path, self._folder)]
            some = paths[:: -(-len(paths) // MOST_FILES)]
            tables = (self._open(process, path, files.tree, Share()) for path in some)
            return read_family_rows(tables, request, -(-BASIS_ROWS // len(some)))

    def _eras(self) -> list[EventReader]:
        """Return a loader for each era, or this one where there are none."""
        eras = split_eras(self._analysis, self._acts_on)
        return [self._in_era(era, one) for era, one in eras.items()]

    def normalisations(self) -> list[Normalisation]:
        """Return the factors on the weights of each sample, era by era."""
        found = [
            one._normalise(p, s, s.files, s.tree) for one in self._eras() for p, s in one._analysis.samples.items()
        ]
        return [one for one in found if one is not None]

    def _in_era(self, era: str, analysis: Analysis) -> EventReader:
        if not era:
            return self
        reader = self._with(analysis)
        reader._era = era
        return reader

    def _read_era(self) -> Dataset:
        """Events of all samples in files, and of backgrounds that are made of these."""
        plain, contributions = split_data_driven(self._analysis, self._acts_on)
        if not contributions:
            return self._read_files()
        transfers = {one.process: one for one in self.transfers()}
        pieces = [self._with(plain)._read_files()]
        for one in contributions:
            piece = rename_process(self._with(one.analysis)._read_files(), one.origin, one.process)
            transfer = transfers.get(one.process) if one.transferred else None
            pieces.append(piece if transfer is None else transfer.apply(piece))
        joined = Dataset.concatenate(pieces)
        free = self._analysis.tied  # their ratio is measured in the fit
        sources = [transfer.source(self._era) for process, transfer in transfers.items() if process not in free]
        return Dataset(joined.samples, [*joined.systematics, *sources], joined.folds)

    def transfers(self) -> list[Transfer]:
        """Ratios of yields that backgrounds from data are multiplied with; all files are read, whatever the share."""
        _, contributions = split_data_driven(self._analysis, self._acts_on)
        found = []
        for process, sample in self._analysis.samples.items():
            ratio = None if sample.from_data is None else find_ratio(self._analysis, sample.from_data)
            if ratio is not None:
                own = [c for c in contributions if c.process == process and c.transferred]
                found.append(Transfer.of(process, [self._count(one, ratio_regions(*ratio)) for one in own]))
        return found

    def _count(self, contribution: Contribution, regions: Mapping[str, Region]) -> RegionEvents:
        """Events in the regions of a ratio, of all files, with the sources of the sample."""
        reader = EventReader(contribution.with_regions(regions), self._folder, None, self._progress)
        reader._era, reader._bases = self._era, self._bases
        return RegionEvents(reader._read_files(), regions)

    def _with(self, analysis: Analysis) -> EventReader:
        """Return a reader of another analysis in the same era."""
        reader = type(self)(analysis, self._folder, self._rule, self._progress, self._partition)
        reader._era, reader._bases = self._era, self._bases
        return reader

    def _read_files(self) -> Dataset:
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
            if isinstance(source, WeightSource) and process in self._list_changed(name):
                variations[f"{name} up"] = Expression(source.up)
                if source.down is not None:
                    variations[f"{name} down"] = Expression(source.down)
        request = self._request(files, self._scale(process, files), variations=variations)
        request = replace(request, families=families)
        return self._read(process, process, files.files, files.tree, request)

    def _sources(self, name: str, source: Source, columns: Mapping[str, VariedColumns]) -> list[Systematic]:
        """Sources that one entry of the file stands for: several for a family of weights."""
        if not isinstance(source, FamilySource):
            return [self._source(name, source, columns)]
        basis = self._bases[_source_of(name)]
        numbers = range(basis.n_columns)
        stored = {p: [columns[p][family_column(name, k)] for k in numbers] for p in self._acts_on[name]}
        return make_sources(name, basis, stored)

    def _source(self, name: str, source: Source, columns: Mapping[str, VariedColumns]) -> Systematic:
        """Make one source: what it does to processes, joined with normalisations of others."""
        processes, sizes = self._list_changed(name), {p: source.find_size(p) for p in self._acts_on[name]}
        scaled = {process: size for process, size in sizes.items() if size is not None}
        found = [self._change(name, source, processes, columns)] if processes else []
        joined = Systematic.join([*found, *([Systematic.norm(name, scaled)] if scaled else [])])
        return Systematic(name, joined.kind, joined.up, None) if source.one_sided else joined

    def _list_changed(self, name: str) -> list[str]:
        """Processes that a source changes in another way than by a size."""
        source = self._analysis.systematics[name]
        return [process for process in self._acts_on[name] if source.find_size(process) is None]

    def _change(
        self, name: str, source: Source, processes: list[str], columns: Mapping[str, VariedColumns]
    ) -> Systematic:
        match source:
            case WeightSource():
                up = {process: columns[process][f"{name} up"] for process in processes}
                down = None if source.down is None else {p: columns[p][f"{name} down"] for p in processes}
                return Systematic.weight(name, up, down)
            case ShapeSource():
                shifted = self._read_varied(name, "up", processes, source.up)
                if source.down is None:
                    return Systematic.shape(name, shifted)
                return Systematic.shape(name, shifted, self._read_varied(name, "down", processes, source.down))
            case _:
                raise AssertionError(f"{source.kind} has sizes")

    def _read_varied(
        self, name: str, direction: str, processes: Sequence[str], variation: ShapeVariation
    ) -> dict[str, Events]:
        key = f"systematics.{name}.{direction}"
        self._check_variation(key, processes, variation)
        found = {}
        for process in processes:
            files = self._analysis.samples[process]
            named = [name_files(path, process, files.files) for path in variation.files or ()]
            paths = [path for found in named for path in found] or files.files
            tree = insert_process(variation.tree, process) if variation.tree else files.tree
            self._check_positions(key, files, paths, tree)
            scale = self._scale(process, files, variation.generated, paths, tree)
            request = self._request(files, scale, columns=variation.columns, weight=variation.weight)
            self._check_columns(key, variation, request)
            found[process] = self._read(f"{process}, {name} {direction}", process, paths, tree, request)[0]
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
            require_same_values((one, trees[0]), (other, trees[1]), rule.columns, key)

    def _check_columns(self, key: str, variation: ShapeVariation, request: Request) -> None:
        plan = ColumnPlan(request.derived, (), "")
        for name in request.identifying_columns():
            if varied := sorted(set(variation.columns) & plan.find_needed([name])):
                through = "" if varied == [name] else f" through {', '.join(varied)}"
                raise DataError(f"{key}.columns: {name} divides the folds and must not be varied{through}")
        selection = request.selection.names if request.selection else ()
        used = plan.find_needed((*request.features, *request.weight.names, *selection))
        idle = sorted(set(variation.columns) - used)
        if idle and self._analysis.features:  # without features yields are counted
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
        with name_in_errors(f"samples.{process}"):
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
            derived={**vary_columns(analysis.columns, columns or {}), **observables},
            selection=Expression(" and ".join(cuts)) if cuts else None,
            conditions=conditions,
            ids=self._rule.columns if self._rule else (),
            missing=list_missing(analysis),
        )

    def _open(self, process: str, path: str, tree: str | None, share: Share) -> AbstractContextManager[Any]:
        """Open a file of a sample with its friends."""
        sample, events = self._analysis.samples[process], tree or self._analysis.tree
        friends = []
        for one in self._analysis.friends if sample.friends is None else sample.friends:
            (place,) = [path] if one.files is None else self._find_friend(one.files, path)
            named = None if one.tree is None else one.tree.replace("{tree}", events or "")
            friends.append(Friend(place, named, tuple(one.by)))
        return open_with_friends(path, events, share, friends)

    def _find_friend(self, pattern: str, path: str) -> list[str]:
        (named,) = name_files(pattern, "", [path])
        found = expand(named, self._folder)
        if len(found) != 1:
            raise DataError(f"friend {named}: {len(found)} files match, one is needed for {path}")
        return found

    def _read(
        self, what: str, process: str, paths: Sequence[str], tree: str | None, request: Request
    ) -> tuple[Events, VariedColumns]:
        with name_in_errors(what):
            files = [file for path in paths for file in expand(path, self._folder)]
            refuse_same_files(files)
            divided = divide_files(files, *self._partition)
            tables = (self._open(process, f, tree, share) for f, share in divided)
            request = replace(request, file_numbers=tuple(files.index(file) for file, _ in divided))
            return read_request(tables, request, description=what, progress=self._progress)


def _source_of(name: str) -> str:
    """Name of a source in the analysis file, without that of an era."""
    return name.partition("#")[0]
