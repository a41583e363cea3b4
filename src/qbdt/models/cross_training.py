"""Training by folds, and training into a file that an interrupted training goes on from.

Flows in: a `Dataset` with its fold rule, and `Settings`. Flows out: a `CrossTrainedModel`, or a model file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from qbdt.data import Dataset
from qbdt.errors import DataError, OutputError
from qbdt.models.model_file import read_any_model, write_model
from qbdt.progress import Progress, silent
from qbdt.training import CrossTrainedModel, Settings, TrainedModel, describe_events, train
from qbdt.training.partitions import PartitionedEvents
from qbdt.training.profile import ProfiledEnsemble

__all__ = ["cross_train", "train_into"]

TREES_BETWEEN_WRITES = 10
"""An unfinished model is written after so many trees at most often."""

SHARE_OF_WRITING = 0.05
"""Since all trees are written each time, writing waits until training has taken that much longer than the last one."""


def cross_train(
    dataset: Dataset | PartitionedEvents,
    settings: Settings,
    *,
    n_threads: int | None = None,
    progress: Progress = silent,
    resume: CrossTrainedModel | None = None,
    checkpoint: Callable[[CrossTrainedModel], None] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> CrossTrainedModel:
    """Train one model for each fold, without its events and without their shifted copies.

    Parameters
    ----------
    dataset
        Signal, background and systematic sources, with a fold rule.
    settings
        How to train each.
    n_threads
        Threads; None for all cores. Results do not depend on it.
    progress
        Shows how far each training is.
    resume
        An earlier cross-training on the same events with the same settings, to be continued: finished models are kept.
    checkpoint
        Called with the cross-training so far after every tree; it decides itself when to write.
    say
        Told which model is trained, or was before.

    Returns
    -------
    CrossTrainedModel
        Interrupting with Ctrl-C returns what is trained so far; `complete` tells.

    Examples
    --------
    >>> from qbdt.data.samples import BUILTIN
    >>> crossed = cross_train(BUILTIN["inferno"](n=200, k=3), Settings(n_trees=2, n_leaves=3), n_threads=1)
    >>> len(crossed.trainings), crossed.folds.columns
    (3, ('event_number',))
    """
    rule = dataset.folds
    if rule is None:
        raise DataError("the dataset has no fold rule: name an identifier column that divides the events")
    if resume is not None and resume.folds != rule:
        raise DataError(f"cannot resume: the earlier training divided events by {resume.folds}, this one by {rule}")
    done: list[TrainedModel] = []
    for fold in range(rule.k):
        part = dataset.without_fold(fold)
        earlier = resume.trainings[fold] if resume is not None and fold < len(resume.trainings) else None
        if earlier is not None and _kept(earlier, part, settings):
            say(f"train fold{fold}: there already")
            done.append(earlier)
            continue
        more = "" if earlier is None else f", going on after {len(earlier.ensemble.trees)} trees"
        say(f"train fold{fold}{more}")

        def report(training: TrainedModel) -> None:
            if checkpoint is not None:
                checkpoint(CrossTrainedModel((*done, training), rule))

        done.append(train(part, settings, n_threads=n_threads, progress=progress, resume=earlier, checkpoint=report))
        if not done[-1].complete:
            break
    return CrossTrainedModel(tuple(done), rule)


def train_into(
    path: Path | str,
    dataset: Dataset | PartitionedEvents,
    settings: Settings,
    *,
    resume: bool = False,
    force: bool = True,
    extra: Mapping[str, Any] | None = None,
    n_threads: int | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = lambda text: None,
) -> TrainedModel | CrossTrainedModel:
    """Train into a model file: one model, or one for each fold where the dataset has a fold rule.

    Parameters
    ----------
    path
        The model file. It is also written during training, and on Ctrl-C.
    dataset, settings, n_threads, progress, say
        As for `cross_train`.
    resume
        Go on from the file, if it is there.
    force
        Whether a file that is there may be replaced.
    extra
        Further plain values to keep with the model.

    Returns
    -------
    TrainedModel or CrossTrainedModel
        What the file holds; `complete` is false after Ctrl-C.
    """
    target = Path(path)
    earlier = read_any_model(target)[0] if resume and target.exists() else None
    if earlier is not None and isinstance(earlier, CrossTrainedModel) != (dataset.folds is not None):
        kinds = ("a single model", "a cross-trained one")
        found, wanted = kinds if dataset.folds is not None else kinds[::-1]
        raise DataError(f"{target}: cannot resume: it holds {found}, and this is {wanted}")
    if not target.parent.is_dir():
        raise OutputError(f"{target}: there is no folder {target.parent}")
    write = _Writer(target, force or earlier is not None, extra)
    if dataset.folds is None:
        assert not isinstance(earlier, CrossTrainedModel)
        result: TrainedModel | CrossTrainedModel = train(
            dataset,
            settings,
            n_threads=n_threads,
            progress=progress,
            resume=earlier,
            checkpoint=write,
        )
    else:
        assert not isinstance(earlier, TrainedModel)
        result = cross_train(
            dataset,
            settings,
            n_threads=n_threads,
            progress=progress,
            resume=earlier,
            checkpoint=write,
            say=say,
        )
    write_model(target, result, extra)
    return result


class _Writer:
    """Writes an unfinished model from time to time."""

    def __init__(self, path: Path, force: bool, extra: Mapping[str, Any] | None) -> None:
        if not force and path.exists():
            raise OutputError(f"{path} exists; force=True overwrites it, resume=True goes on from it")
        self._path, self._extra, self._not_before = path, extra, 0.0

    def __call__(self, training: TrainedModel | CrossTrainedModel) -> None:
        last = training if isinstance(training, TrainedModel) else training.trainings[-1]
        start = monotonic()
        whole_part = isinstance(last.ensemble, ProfiledEnsemble)  # the profiled method reports these, not trees
        if last.is_checkpoint(TREES_BETWEEN_WRITES) and (whole_part or start >= self._not_before):
            write_model(self._path, training, self._extra)
            end = monotonic()
            self._not_before = end + (end - start) / SHARE_OF_WRITING


def _kept(earlier: TrainedModel, part: Dataset | PartitionedEvents, settings: Settings) -> bool:
    """Whether an earlier training is what is asked for; refused where it was on other events.

    Events in parts are not read for this: whoever keeps a model with them sees to it that they are the same.
    """
    known = describe_events(part) if isinstance(part, Dataset) else {}
    if {key: earlier.data.get(key) for key in known} != known:
        raise DataError("cannot resume: the earlier training was on other events")
    return earlier.complete and earlier.settings == settings
