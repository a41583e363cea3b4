"""The steps of `qbdt train` and `qbdt score`: events divided as asked for, and scores by the model's own rule."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qbdt.analysis.loading import load
from qbdt.analysis.schema import Analysis, Folds
from qbdt.data import Dataset, Events
from qbdt.errors import ConfigError
from qbdt.progress import Progress, silent
from qbdt.training import CrossTrainedModel, FoldedEnsemble, TrainedModel

__all__ = ["events_to_score", "load_for_training", "scored_tables", "seen_samples"]


def load_for_training(
    plan: Analysis, folder: Path, k: int | None = None, columns: Sequence[str] = (), progress: Progress = silent
) -> Dataset:
    """Read the events and sources that an analysis trains on.

    Parameters
    ----------
    plan, folder, progress
        As for `qbdt.analysis.loading.load`.
    k
        Number of folds instead of the analysis's; 1 for none.
    columns
        Identifier columns that divide the folds, instead of the analysis's.
    """
    dataset = load(_with_folds(plan, k, list(columns)), folder, progress)
    if k is not None and dataset.folds is not None and dataset.folds.k != k:  # the rule came with the dataset
        dataset = dataset.with_folds(None if k == 1 else replace(dataset.folds, k=k)).require_full_folds()
    wanted = plan.training.systematics
    return dataset if wanted is None else dataset.with_systematics(wanted)


def scored_tables(
    plan: Analysis,
    folder: Path,
    training: TrainedModel | CrossTrainedModel,
    column: str,
    *,
    average: Sequence[str] = (),
    n_threads: int | None = None,
    progress: Progress = silent,
) -> Iterator[tuple[str, Mapping[str, NDArray[Any]]]]:
    """Tables of all events of an analysis, nominal and varied, with their score.

    Parameters
    ----------
    plan, folder, progress
        As for `qbdt.analysis.loading.load`.
    training
        A model; a cross-trained one brings the rule that divides the events.
    column
        Name of the score.
    average
        Samples (wildcards allowed) that took no part in the training, which the average of all models scores.
    n_threads
        Threads.
    """
    if plan.dataset is None:
        averaged = _averaged(training, average, list(plan.samples))
        dataset = load(_ruled(plan, training, averaged), folder, progress, to_train=False)
    else:
        dataset = load(plan, folder, progress, to_train=False)
        averaged = _averaged(training, average, [sample.name for sample in dataset.samples])
    if column in (*dataset.features, "weight", *dataset.samples[0].events.id_names):
        raise ConfigError(f"--column {column}: the events have a column of this name")
    return _tables(dataset, training, column, averaged, n_threads)


def events_to_score(
    plan: Analysis, folder: Path, training: TrainedModel | CrossTrainedModel, progress: Progress = silent
) -> Iterator[tuple[str, Events]]:
    """All events of an analysis, nominal and varied, named, with the identifiers that the model's rule reads."""
    dataset = load(plan if plan.dataset else _ruled(plan, training, ()), folder, progress, to_train=False)
    for name, _, events in _named(dataset):
        yield name, events


def seen_samples(training: TrainedModel | CrossTrainedModel) -> list[str]:
    """Names of the samples that a single model was trained on; none for a cross-trained one, which divides them."""
    return _simulated(training) if isinstance(training, TrainedModel) else []


def _trainings(training: TrainedModel | CrossTrainedModel) -> tuple[TrainedModel, ...]:
    return training.trainings if isinstance(training, CrossTrainedModel) else (training,)


def _simulated(training: TrainedModel) -> list[str]:
    """Names of the samples of signal and background that a training says it was on."""
    return [str(sample.get("name")) for sample in training.data.get("samples", ()) if sample.get("role") != "data"]


def _with_folds(plan: Analysis, k: int | None, columns: list[str]) -> Analysis:
    """Return the analysis with the folds that were asked for."""
    if k == 1:
        if columns:
            raise ConfigError("--fold-column: there is nothing to divide with --folds 1")
        return plan.model_copy(update={"folds": None})
    if columns:
        by = "hash" if len(columns) > 1 else "modulo"
        return plan.model_copy(update={"folds": Folds(by=by, columns=columns, k=k or 2)})
    if k is None or plan.dataset is not None:
        return plan
    if plan.folds is None:
        raise ConfigError(f"--folds {k}: the analysis does not say by what; give --fold-column NAME")
    if plan.folds.by == "split" and k != plan.folds.k:
        raise ConfigError(f"--folds {k}: the column {plan.folds.columns[0]} holds {plan.folds.k} folds")
    return plan.model_copy(update={"folds": plan.folds.model_copy(update={"k": k})})


def _averaged(training: TrainedModel | CrossTrainedModel, patterns: Sequence[str], samples: list[str]) -> set[str]:
    """Samples that the average of the models scores; refused for what a model was trained on."""
    if patterns and not isinstance(training, CrossTrainedModel):
        raise ConfigError("--average: the model is a single one: there is nothing to average")
    trained = {name for one in _trainings(training) for name in _simulated(one)}
    found: set[str] = set()
    for pattern in patterns:
        matched = set(fnmatch.filter(samples, pattern))
        if not matched:
            raise ConfigError(f"--average {pattern}: no such sample; there are: {', '.join(samples)}")
        if seen := sorted(matched & trained):
            raise ConfigError(f"--average {pattern}: the models were trained on {', '.join(seen)}")
        found |= matched
    return found


def _ruled(plan: Analysis, training: TrainedModel | CrossTrainedModel, averaged: Collection[str]) -> Analysis:
    """Return the analysis with the model's own rule, whose columns are read; without any where all are averaged."""
    if not isinstance(training, CrossTrainedModel):
        return plan
    all_averaged = set(averaged) == set(plan.samples)
    return plan.model_copy(update={"folds": None if all_averaged else Folds(**training.folds.to_dict())})


def _tables(
    dataset: Dataset,
    training: TrainedModel | CrossTrainedModel,
    column: str,
    averaged: Collection[str],
    threads: int | None,
) -> Iterator[tuple[str, Mapping[str, NDArray[Any]]]]:
    model = training.ensemble

    def table(process: str, events: Events) -> dict[str, NDArray[Any]]:
        columns = {name: events.column(name) for name in events.features}
        identifiers = {name: events.identifier(name) for name in events.id_names}
        if isinstance(model, FoldedEnsemble) and process in averaged:
            scores = model.average(events, threads)
        else:
            scores = model.score(events, threads)
        return {**columns, **identifiers, "weight": events.weight, column: scores}

    for name, process, events in _named(dataset):
        yield name, table(process, events)


def _named(dataset: Dataset) -> Iterator[tuple[str, str, Events]]:
    """Name, process and events of every nominal sample and every variation."""
    for sample in dataset.samples:
        yield sample.name, sample.name, sample.events
    for source in dataset.systematics:
        for direction, _ in source.directions:
            for process, events in dataset.varied(source.name, direction).items():
                yield f"{process}__{source.name}_{direction}", process, events
