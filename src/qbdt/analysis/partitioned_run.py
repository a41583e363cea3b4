"""A whole analysis on events in partitions: read, trained on, scored and histogrammed partition by partition.

`ClusterRun` has them on the workers of a Dask cluster. The driver sees trees, histograms, and a sample of scores on
which edges are chosen; scored events are written by the workers to the run's folder, which must be on a disk that all
machines share. `DiskRun` has one partition in memory at a time, and binned rows on disk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from qbdt.analysis.analysis_file import read_analysis
from qbdt.analysis.input_files import list_files, require_unchanged
from qbdt.analysis.inputs import require_drawable
from qbdt.analysis.loader import FilePartition, fold_rule, load_partitions, require_folds, restrict_sources
from qbdt.analysis.measured_scores import name_scores
from qbdt.analysis.region_events import RegionEvents, list_models, require_filled, require_none_shared
from qbdt.analysis.region_fit import fit_regions, require_parameters
from qbdt.analysis.schema import Analysis
from qbdt.analysis.scored_files import choose_score_name, write_description, write_scored_tables
from qbdt.data import Dataset, Events, FoldRule, HashFolds, Sample
from qbdt.data.checks import Finding, find_faults
from qbdt.errors import ConfigError
from qbdt.files import replace_folder
from qbdt.inference import FitResult
from qbdt.inference.templates import ScoreBins, TemplateSet, fill, tanh_scores
from qbdt.progress import Progress
from qbdt.tables import Table
from qbdt.training import Model
from qbdt.training.partitions import OutOfCore, PartitionedEvents, copy_rows
from qbdt.training.partitions.dask import OnCluster, Traffic, map_reduce, require_device

SAMPLE = 2_000_000
"""Scored rows that come to the driver, to choose the constant c and the edges on: all where there are not more."""

CHECKED = 200_000
"""Rows, about, that come to the driver to be looked at for faults of the input: all where there are not more."""

SALT = 0x6661756C7473
"""Makes the choice of these events independent of folds that hash the same identifiers."""

PARTITIONS_PER_THREAD = 2
"""Partitions for each thread of the cluster, so that a lost worker's share can be divided."""


_Counts: TypeAlias = tuple[Counter[tuple[str, str]], Counter[str]]


Found = TypeVar("Found")
Reader: TypeAlias = Callable[[], RegionEvents]
Find: TypeAlias = Callable[[int, RegionEvents], Found]
Merge: TypeAlias = Callable[[Found, Found], Found]


class PartitionedRun(ABC):
    """The steps of a run that look at events, partition by partition."""

    where: str
    """Where the events are, for notes."""

    n_threads: int | None = 1
    """Threads that score a partition."""

    _partitions: Sequence[FilePartition] = ()
    _files: Sequence[tuple[str, int, int]] = ()

    @abstractmethod
    def _reduce(self, partitions: Sequence[Reader], find: Find[Found], merge: Merge[Found], name: str) -> Found:
        """Compute `find(number, events)` of every partition and merge the results, in their order."""

    @abstractmethod
    def _place(self, partitions: Sequence[FilePartition], rule: FoldRule) -> PartitionedEvents:
        """Events of partitions, to train on."""

    @abstractmethod
    def count(self) -> int:
        """Partitions that the events are divided into."""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """Tables of the cost of the training."""

    def read(
        self, analysis: Analysis, folder: Path, progress: Progress, note: Callable[[str], None]
    ) -> dict[str, PartitionedEvents]:
        """Divide the events into partitions, and look for faults of the input."""
        _require_few_scores(analysis)
        self._files = list_files(analysis, folder)
        partitions = load_partitions(analysis, folder, self.count())
        rule = require_folds(partitions[0]().folds if analysis.dataset is not None else fold_rule(analysis))
        note(f"read {self.where}, in {len(partitions)} partitions")
        self._partitions = partitions
        self._reduce(read_all(partitions[:1]), partial(_require_parameters, analysis=analysis), _first, "names")
        if analysis.regions:
            require_drawable(analysis, folder)
            shared, filled = self._reduce(read_all(partitions), _count_regions, _add_counts, "regions")
            require_none_shared(shared)
            require_filled(filled, analysis.regions)
        for finding in self._find_faults(partitions, rule.columns, note):
            note(f"to be checked: {finding}")
        require_unchanged(analysis, folder, self._files)
        models = list_models(analysis.regions)
        return {model: self._place([replace(one, model=model) for one in partitions], rule) for model in models}

    def score(self, models: Mapping[str, Model], target: Path, analysis: Analysis, note: Callable[[str], None]) -> None:
        """Write scored events where they are, and here the analysis file that reads them."""
        for table in self.tables():
            for row in table.rows:
                note(": ".join(map(str, row)))
        note(f"score {self.where}")
        with replace_folder(target.resolve()) as scratch:
            score = partial(_score, models=models, folder=scratch, n_threads=self.n_threads)
            empty = self._reduce(read_all(self._partitions), score, _first, "score")
            write_description(empty, scratch, analysis, ".part*")
            require_unchanged(analysis, self._partitions[0].folder, self._files)

    def _find_faults(
        self, partitions: Sequence[FilePartition], columns: tuple[str, ...], note: Callable[[str], None]
    ) -> tuple[Finding, ...]:
        """Look for faults of the input, on a sample where there are many events: copies of an event stay together."""
        first = read_all(partitions[:1])
        n_rows = len(partitions) * self._reduce(first, _count_rows, int.__add__, "count")  # equal shares
        every = max(1, round(n_rows / CHECKED))
        if every > 1:
            note(f"one event in {every} is looked at for faults of the input")
        chosen = partial(_select_one_in, every=every, columns=columns)
        return find_faults(self._reduce(read_all(partitions), chosen, _join_datasets, "check"))

    def find_partner(self, analysis: Analysis, note: Callable[[str], None]) -> None:
        """Return nothing: control regions are looked at in one memory only, and the settings say so."""
        return

    def run_fit(self, scored: Path, analysis: Analysis, progress: Progress) -> FitResult:
        """Templates where the events are, and the fit here."""
        _require_few_scores(analysis)
        partitions = read_all(load_partitions(read_analysis(scored), scored.parent, self.count()))
        n_rows = self._reduce(partitions, _count_rows, int.__add__, "count")
        share = min(1.0, SAMPLE / max(n_rows, 1))
        sample = self._reduce(partitions, partial(_draw_sample, share=share), _join, "sample")

        def fill_region(region: str, c: float | None, bins: ScoreBins, title: str) -> TemplateSet:
            one = partial(_fill, region=region, sources=analysis.fit.systematics, c=c, bins=bins, title=title)
            return self._reduce(partitions, one, TemplateSet.__add__, "templates")

        return fit_regions(sample, analysis, progress, fill_region)


@dataclass
class ClusterRun(PartitionedRun):
    """A run on a cluster."""

    client: Any  # Dask client
    n_partitions: int | None = None  # Partitions that the events are divided into; a few for each worker by default
    device: str | None = None  # Where workers train: None for their cores, "cuda" for their GPUs
    traffic: Traffic = field(default_factory=Traffic)

    where = "on the cluster"

    def __post_init__(self) -> None:
        require_device(self.client, self.device)

    def _reduce(self, partitions: Sequence[Reader], find: Find[Found], merge: Merge[Found], name: str) -> Found:
        return map_reduce(self.client, partitions, find, merge, name)

    def _place(self, partitions: Sequence[FilePartition], rule: FoldRule) -> OnCluster:
        return OnCluster(partitions, rule, client=self.client, traffic=self.traffic, device=self.device)

    def count(self) -> int:
        """Return the number asked for, or two for each thread."""
        return self.n_partitions or PARTITIONS_PER_THREAD * max(1, sum(self.client.nthreads().values()))

    def tables(self) -> tuple[Table, ...]:
        """Traffic of the training, where there was one in this run."""
        return self.traffic.tables() if self.traffic.trees else ()


@dataclass
class DiskRun(PartitionedRun):
    """A run on more events than fit in memory: one partition in memory at a time, binned rows on disk."""

    n_partitions: int  # Partitions that the events are divided into
    folder: Path  # Where binned rows are kept while a training lasts
    n_threads: int | None = None  # Threads that score a partition

    where = "partition by partition"

    def _reduce(self, partitions: Sequence[Reader], find: Find[Found], merge: Merge[Found], name: str) -> Found:
        return reduce(merge, (find(number, read()) for number, read in enumerate(partitions)))

    def _place(self, partitions: Sequence[FilePartition], rule: FoldRule) -> OutOfCore:
        return OutOfCore(partitions, rule, self.folder)

    def count(self) -> int:
        """Return the number given."""
        return self.n_partitions

    def tables(self) -> tuple[Table, ...]:
        """Return none."""
        return ()


def _require_few_scores(analysis: Analysis) -> None:
    """Refuse bins that are chosen on all events at once."""
    if analysis.fit.joins_scores:
        raise ConfigError(
            f"binning: {analysis.fit.binning} are chosen on all events: they must fit into the memory of one machine"
        )


def read_all(partitions: Sequence[FilePartition]) -> list[Reader]:
    """Partitions as functions that read the events of all regions, not only those that train."""
    return [partition.read for partition in partitions]


def _count_regions(number: int, events: RegionEvents) -> _Counts:
    """Events that are in two regions, and background events of each."""
    return Counter(events.count_shared()), events.count_backgrounds()


def _add_counts(one: _Counts, other: _Counts) -> _Counts:
    return one[0] + other[0], one[1] + other[1]


def _score(
    number: int, events: RegionEvents, models: Mapping[str, Model], folder: Path, n_threads: int | None
) -> RegionEvents:
    """Write a scored partition; return its events without rows."""
    name = choose_score_name(events.whole.samples[0].events)
    scored = events.score(lambda model, each: name_scores(models[model], each, name, n_threads))
    write_scored_tables(scored, folder, f".part{number:05}")
    return replace(scored, whole=copy_rows(scored.whole, slice(0, 0)))


def _first(one: Found, other: Found) -> Found:
    return one


def _require_parameters(number: int, events: RegionEvents, analysis: Analysis) -> None:
    require_parameters(events.whole, analysis)


def _join(one: RegionEvents, other: RegionEvents) -> RegionEvents:
    return replace(one, whole=Dataset.concatenate([one.whole, other.whole]))


def _join_datasets(one: Dataset, other: Dataset) -> Dataset:
    return Dataset.concatenate([one, other])


def _count_rows(number: int, events: RegionEvents) -> int:
    return sum(tally.n_rows for tally in events.whole.tallies())


def _select_one_in(number: int, found: RegionEvents, every: int, columns: tuple[str, ...]) -> Dataset:
    """Simulated rows of a partition, chosen by the identifiers of folds, or by position where some events have none."""
    dataset = found.simulated()
    if every == 1:
        return dataset
    rule = HashFolds(every, columns, SALT)

    def choose(events: Events) -> Any:
        if set(columns) <= set(events.id_names):
            return rule.assign(events) == 0
        return np.arange(events.n_rows) % every == 0

    return dataset.select(choose)


def _draw_sample(number: int, events: RegionEvents, share: float) -> RegionEvents:
    """Rows of a scored partition, chosen so that copies of an event stay together, with weights that stand for all."""
    return events if share == 1 else replace(events, whole=_draw_share(events.whole, share))


def _draw_share(dataset: Dataset, share: float) -> Dataset:

    def choose(events: Events) -> Any:
        numbers = [np.asarray(events.identifier(name), dtype=np.float64) for name in events.id_names]
        if not numbers or not events.identifiers_differ:
            numbers += [np.asarray(events.column(events.features[0]), dtype=np.float64), events.weight]
        mixed = np.zeros(events.n_rows, dtype=np.uint64)
        for column in numbers:
            mixed = (mixed ^ column.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        return mixed * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(11) < np.uint64(share * 2**53)

    drawn = dataset.select(choose)
    samples = [Sample(s.name, s.role, s.events.with_weight(s.events.weight / share)) for s in drawn.samples]
    sources = [s.map(lambda _, change: change.map_weights(lambda weight: weight / share)) for s in drawn.systematics]
    return Dataset(samples, sources, drawn.folds)


def _fill(
    number: int,
    events: RegionEvents,
    region: str,
    sources: list[str] | None,
    c: float | None,
    bins: ScoreBins,
    title: str,
) -> TemplateSet:
    scored = restrict_sources(events.observe(region), sources)
    return fill(scored if c is None else tanh_scores(scored, c), bins, title)
