"""Tables of events with their scores: a cross-trained model scores every event by its own fold rule."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qbdt.analysis.input_files import refuse_inputs
from qbdt.analysis.loader import load
from qbdt.analysis.schema import Analysis, Folds
from qbdt.data import Dataset, Events
from qbdt.errors import ConfigError
from qbdt.files import choose_file_names, choose_words
from qbdt.models import PlacedModel, place_model
from qbdt.progress import Progress, silent
from qbdt.training import AnyTrainedModel, TrainedModel


def score_tables(
    plan: Analysis,
    folder: Path,
    training: AnyTrainedModel,
    column: str,
    *,
    average: Sequence[str] = (),
    replaced: Sequence[Path] = (),
    n_threads: int | None = None,
    device: str | None = None,
    progress: Progress = silent,
) -> Iterator[tuple[str, Mapping[str, NDArray[Any]]]]:
    """Tables of all events of an analysis, nominal and varied, with their score in a new `column`.

    Scores of several parameters have a column each, which ends in the name of its parameter. A cross-trained model
    brings the rule that divides the events. `average` names samples (wildcards allowed) that took no part in the
    training, which the average of all models scores. Files that these tables will have `replaced` must be none of those
    that are read. Scores are the same with `device="cuda"`.
    """
    refuse_inputs(plan, folder, replaced)
    scorer = place_model(training.ensemble, device)  # says what is missing before events are read
    if plan.dataset is None:
        averaged = _select_averaged(training, average, list(plan.samples))
        dataset = load(_take_fold_rule(plan, training, averaged), folder, progress, to_train=False)
    else:
        dataset = load(plan, folder, progress, to_train=False)
        averaged = _select_averaged(training, average, [sample.name for sample in dataset.samples])
    parameters = training.ensemble.parameters
    columns = choose_words([f"{column}_{name}" for name in parameters]) if len(parameters) > 1 else [column]
    known = (*dataset.features, "weight", *dataset.samples[0].events.id_names)
    if both := [name for name in columns if name in known]:
        raise ConfigError(f"column={both[0]}: the events have a column of this name")
    return _tables(dataset, scorer, columns, averaged, n_threads)


def load_named_events(
    plan: Analysis, folder: Path, training: AnyTrainedModel, progress: Progress = silent
) -> Iterator[tuple[str, Events]]:
    """All events of an analysis, nominal and varied, named, with the identifiers that the model's rule reads."""
    dataset = load(plan if plan.dataset else _take_fold_rule(plan, training, ()), folder, progress, to_train=False)
    for name, _, events in _name_samples(dataset):
        yield name, events


def training_samples(training: AnyTrainedModel) -> list[str]:
    """Names of the samples that a single model was trained on; none for a cross-trained one, which divides them."""
    return _list_simulated(training.trainings[0]) if training.folds is None else []


def _list_simulated(training: TrainedModel) -> list[str]:
    """Names of the samples of signal and background that a training says it was on."""
    return [str(sample.get("name")) for sample in training.data.get("samples", ()) if sample.get("role") != "data"]


def _select_averaged(training: AnyTrainedModel, patterns: Sequence[str], samples: list[str]) -> set[str]:
    """Samples that the average of the models scores; refused for what a model was trained on."""
    if patterns and training.folds is None:
        raise ConfigError("average: the model is a single one: there is nothing to average")
    trained = {name for one in training.trainings for name in _list_simulated(one)}
    found: set[str] = set()
    for pattern in patterns:
        matched = set(fnmatch.filter(samples, pattern))
        if not matched:
            raise ConfigError(f"average={pattern}: no such sample; there are: {', '.join(samples)}")
        if seen := sorted(matched & trained):
            raise ConfigError(f"average={pattern}: the models were trained on {', '.join(seen)}")
        found |= matched
    return found


def _take_fold_rule(plan: Analysis, training: AnyTrainedModel, averaged: Collection[str]) -> Analysis:
    """Return the analysis with the model's own rule, whose columns are read; without any where all are averaged."""
    if training.folds is None:
        return plan
    all_averaged = set(averaged) == set(plan.samples)
    return plan.model_copy(update={"folds": None if all_averaged else Folds(**training.folds.to_dict())})


def _tables(
    dataset: Dataset,
    model: PlacedModel,
    names: Sequence[str],
    averaged: Collection[str],
    threads: int | None,
) -> Iterator[tuple[str, Mapping[str, NDArray[Any]]]]:
    def table(process: str, events: Events) -> dict[str, NDArray[Any]]:
        columns = {name: events.column(name) for name in events.features}
        identifiers = {name: events.identifier(name) for name in events.id_names}
        scores = (model.average if process in averaged else model.score)(events, threads)
        weight = choose_words(["weight"], (*columns, *identifiers, *names))[0]
        by_name = dict(zip(names, scores.reshape(events.n_rows, len(names)).T, strict=True))
        return {**columns, **identifiers, weight: events.weight, **by_name}

    for name, process, events in _name_samples(dataset):
        yield name, table(process, events)


def _name_samples(dataset: Dataset) -> Iterator[tuple[str, str, Events]]:
    """Name, process and events of every nominal sample and every variation; no two have the same name."""
    varied = [
        (f"{process}__{source.name}_{direction}", process, variation)
        for source in dataset.systematics
        for direction, effect in source.directions
        for process, variation in effect.items()
    ]
    samples = [sample.name for sample in dataset.samples]
    names = iter(choose_file_names([*samples, *(name for name, _, _ in varied)]))
    for sample in dataset.samples:
        yield next(names), sample.name, sample.events
    for _, process, variation in varied:
        yield next(names), process, variation.apply(dataset.sample(process).events)
