"""A whole analysis on a Dask cluster: events are read, trained on, scored and histogrammed where the workers are.

The driver sees trees, histograms, and a sample of scores on which edges are chosen. Scored events are written by the
workers to the run's folder, which must be on a disk that all machines share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.loading import FilePart, fold_rule, load_parts
from qbdt.analysis.reading import read_analysis
from qbdt.analysis.schema import Analysis
from qbdt.analysis.scored_files import begun, finished, write_part
from qbdt.data import Dataset, Events, HashFolds, Sample
from qbdt.data.checks import Finding, find_faults
from qbdt.errors import ConfigError
from qbdt.inference import FitResult, FitSettings, run_fit
from qbdt.inference.templates import Binning, TemplateSet, fill, tanh_scores
from qbdt.models import train_into
from qbdt.progress import Progress
from qbdt.tables import Table
from qbdt.training import FoldedEnsemble, Settings
from qbdt.training.partitions import copy_rows
from qbdt.training.partitions.dask import OnCluster, Traffic, map_reduce

__all__ = ["ClusterRun"]

SAMPLE = 2_000_000
"""Scored rows that come to the driver, to choose the constant c and the edges on: all where there are not more."""

CHECKED = 200_000
"""Rows, about, that come to the driver to be looked at for faults of the input: all where there are not more."""

SALT = 0x6661756C7473
"""Makes the choice of these events independent of folds that hash the same identifiers."""

PARTS_PER_THREAD = 2
"""Parts for each thread of the cluster, so that a lost worker's share can be divided."""


@dataclass
class ClusterRun:
    """The steps of a run that look at events, on a cluster.

    Parameters
    ----------
    client
        Dask client.
    n_parts
        Parts that the events are divided into; a few for each worker by default.
    """

    client: Any
    n_parts: int | None = None
    traffic: Traffic = field(default_factory=Traffic)

    def train_and_score(
        self,
        analysis: Analysis,
        folder: Path,
        root: Path,
        model: Path,
        settings: Settings,
        progress: Progress,
        note: Callable[[str], None],
    ) -> None:
        """Train by folds into a model file and write scored events."""
        parts = load_parts(analysis, folder, self._count())
        rule = fold_rule(analysis) or (parts[0]().folds if analysis.dataset is not None else None)
        if rule is None:
            raise ConfigError("folds: needed to run an analysis, so that no event is scored by a model that saw it")
        note(f"read on the cluster, in {len(parts)} parts")
        for finding in self._faults(parts, rule.columns, note):
            note(f"to be checked: {finding}")
        events = OnCluster(parts, rule, client=self.client, traffic=self.traffic)
        wanted = analysis.training.systematics
        trained_on = events if wanted is None else events.with_systematics(wanted)
        trained = train_into(model, trained_on, settings, resume=True, progress=progress, say=note)
        if not trained.complete:
            raise KeyboardInterrupt
        for row in self.traffic.table().rows:
            note(": ".join(map(str, row)))
        note("score on the cluster")
        target = (root / "scored").resolve()
        writing = begun(target)
        assert isinstance(trained.ensemble, FoldedEnsemble)
        score = partial(_score, ensemble=trained.ensemble, folder=writing)
        empty = map_reduce(self.client, parts, score, _first, "score")
        fit = analysis.fit.model_dump(mode="json", exclude_defaults=True)
        finished(empty, writing, target, analysis.name, fit, ".part*")

    def _faults(
        self, parts: Sequence[FilePart], columns: tuple[str, ...], note: Callable[[str], None]
    ) -> tuple[Finding, ...]:
        """Look for faults of the input, on a sample where there are many events: copies of an event stay together."""
        n_rows = len(parts) * map_reduce(self.client, parts[:1], _count_rows, int.__add__, "count")  # equal shares
        every = max(1, round(n_rows / CHECKED))
        if every > 1:
            note(f"one event in {every} is looked at for faults of the input")
        chosen = partial(_one_in, every=every, columns=columns)
        return find_faults(map_reduce(self.client, parts, chosen, _joined, "check"))

    def run_fit(self, scored: Path, settings: FitSettings, progress: Progress) -> FitResult:
        """Templates on the cluster, and the fit here."""
        parts = load_parts(read_analysis(scored), scored.parent, self._count())
        n_rows = map_reduce(self.client, parts, _count_rows, int.__add__, "count")
        share = min(1.0, SAMPLE / max(n_rows, 1))
        sample = map_reduce(self.client, parts, partial(_sampled, share=share), _joined, "sample")
        wanted = settings.systematics

        def filled(c: float | None, binning: Binning, title: str) -> TemplateSet:
            one = partial(_filled, wanted=wanted, c=c, binning=binning, title=title)
            return map_reduce(self.client, parts, one, TemplateSet.__add__, "templates")

        return run_fit(sample, settings, progress=progress, filled=filled)

    def tables(self) -> tuple[Table, ...]:
        """What the training cost, where there was one in this run."""
        return (self.traffic.table(),) if self.traffic.trees else ()

    def _count(self) -> int:
        return self.n_parts or PARTS_PER_THREAD * max(1, sum(self.client.nthreads().values()))


def _score(number: int, dataset: Dataset, ensemble: FoldedEnsemble, folder: Path) -> Dataset:
    """Write the scored part; return its dataset without rows."""
    scored = dataset.transform(lambda events: {"score": ensemble.score(events, 1)})
    write_part(scored, folder, f".part{number:05}")
    return copy_rows(scored, slice(0, 0))


def _first(one: Dataset, other: Dataset) -> Dataset:
    return one


def _joined(one: Dataset, other: Dataset) -> Dataset:
    return Dataset.concatenate([one, other])


def _count_rows(number: int, dataset: Dataset) -> int:
    return sum(tally.n_rows for tally in dataset.tallies())


def _one_in(number: int, dataset: Dataset, every: int, columns: tuple[str, ...]) -> Dataset:
    """Rows of a part, chosen by the identifiers that divide folds, or by position where some events have none."""
    if every == 1:
        return dataset
    rule = HashFolds(every, columns, SALT)

    def choose(events: Events) -> Any:
        if set(columns) <= set(events.id_names):
            return rule.assign(events) == 0
        return np.arange(events.n_rows) % every == 0

    return dataset.select(choose)


def _sampled(number: int, dataset: Dataset, share: float) -> Dataset:
    """Rows of a scored part, chosen by score, weight and identifiers, with weights that stand for all."""
    if share == 1:
        return dataset

    def choose(events: Events) -> Any:
        numbers = [np.asarray(events.column(events.features[0]), dtype=np.float64), events.weight]
        numbers += [np.asarray(events.identifier(name), dtype=np.float64) for name in events.id_names]
        mixed = np.zeros(events.n_rows, dtype=np.uint64)
        for column in numbers:
            mixed = (mixed ^ column.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        return mixed * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(11) < np.uint64(share * 2**53)

    part = dataset.select(choose)
    samples = [Sample(s.name, s.role, s.events.with_weight(s.events.weight / share)) for s in part.samples]
    sources = [s.map(lambda _, change: change.map_weights(lambda weight: weight / share)) for s in part.systematics]
    return Dataset(samples, sources, part.folds)


def _filled(
    number: int, dataset: Dataset, wanted: list[str] | None, c: float | None, binning: Binning, title: str
) -> TemplateSet:
    scored = dataset if wanted is None else dataset.with_systematics(wanted)
    return fill(scored if c is None else tanh_scores(scored, c), binning, title)
