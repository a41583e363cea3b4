"""Training by folds, and training into a file that an interrupted training goes on from.

Flows in: a `Dataset` with its fold rule, and `Settings`. Flows out: a `CrossTrainedModel`, or a model file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from qbdt.data import Dataset, FoldRule, Role
from qbdt.errors import DataError, OutputError
from qbdt.files import require_place
from qbdt.models.model_file import read_any_model, write_model
from qbdt.progress import Progress, silent
from qbdt.training import AnyTrainedModel, CrossTrainedModel, Settings, TrainedModel, describe_trained, train
from qbdt.training.partitions import PartitionedEvents

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
    device: str | None = None,
) -> CrossTrainedModel:
    """Train one model for each fold, without its events and without their shifted copies.

    Parameters
    ----------
    settings, n_threads, progress, device
        As for `qbdt.training.train`, of each model.
    resume
        An earlier cross-training on the same events with the same settings, to be continued: finished models are kept.
    checkpoint
        Called with the cross-training so far after every tree; it decides itself when to write.
    say
        Told which model is trained, or was before.

    Returns
    -------
    CrossTrainedModel
        After Ctrl-C the trees so far; `complete` tells.

    Examples
    --------
    >>> from qbdt.data.samples import BUILTIN
    >>> crossed = cross_train(BUILTIN["inferno"](n=200, k=3), Settings(n_trees=2, n_leaves=3), n_threads=1)
    >>> len(crossed.trainings), crossed.folds.columns
    (3, ('event_number',))
    """
    rule = _require_rule(dataset, resume)
    earlier = () if resume is None else resume.trainings
    options: dict[str, Any] = {"n_threads": n_threads, "progress": progress, "device": device}
    done: list[TrainedModel] = []

    def report(training: TrainedModel) -> None:
        if checkpoint is not None:
            checkpoint(CrossTrainedModel((*done, training), rule))

    for fold in range(rule.k):
        events = dataset.without_fold(fold)
        before = earlier[fold] if fold < len(earlier) else None
        if before is not None and _is_finished(before, events, settings, n_threads):
            say(f"train fold{fold}: there already")
            done.append(before)
            continue
        say(f"train fold{fold}" + ("" if before is None else f", going on after {len(before.ensemble.trees)} trees"))
        done.append(train(events, settings, resume=before, checkpoint=report, **options))
        if not done[-1].complete:
            break
    return CrossTrainedModel(tuple(done), rule)


def _require_rule(dataset: Dataset | PartitionedEvents, resume: CrossTrainedModel | None) -> FoldRule:
    """Return the fold rule of the events, which an earlier training must have had too."""
    rule = dataset.folds
    if rule is None:
        raise DataError("the dataset has no fold rule: name an identifier column that divides the events")
    if resume is not None and resume.folds != rule:
        raise DataError(f"cannot resume: the earlier training divided events by {resume.folds}, this one by {rule}")
    return rule


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
    device: str | None = None,
) -> AnyTrainedModel:
    """Train into a model file: one model, or one for each fold where the dataset has a fold rule.

    Parameters
    ----------
    path
        The model file. It is also written during training, and on Ctrl-C; then the model returned is not `complete`.
    resume
        Go on from the file, if it is there.
    force
        Whether a file that is there may be replaced.
    extra
        Further plain values to keep with the model.
    dataset, settings, n_threads, progress, say, device
        As for `cross_train`.
    """
    target = Path(path)
    earlier: Any = read_any_model(target)[0] if resume and target.exists() else None
    if earlier is not None:
        _require_same_kind(target, earlier, dataset.folds is not None)
    require_writable(target, resume=resume, force=force)
    write = _Writer(target, extra)
    options: dict[str, Any] = {"n_threads": n_threads, "progress": progress, "device": device}
    options |= {"resume": earlier, "checkpoint": write}
    result: AnyTrainedModel
    if dataset.folds is None:
        result = train(dataset, settings, **options)
    else:
        result = cross_train(dataset, settings, say=say, **options)
    write_model(target, result, extra)
    return result


def require_writable(path: Path, *, resume: bool, force: bool) -> None:
    """Refuse to train into a place where no file can be, or over a file that is there."""
    require_place(path)
    if path.exists() and not (force or resume):
        raise OutputError(f"{path} exists; force=True overwrites it, resume=True goes on from it")


def _require_same_kind(path: Path, earlier: AnyTrainedModel, with_folds: bool) -> None:
    """Refuse to go on with a single model by folds, and the other way round."""
    if (earlier.folds is not None) != with_folds:
        kinds = ("a single model", "a cross-trained one")
        found, wanted = kinds if with_folds else kinds[::-1]
        raise DataError(f"{path}: cannot resume: it holds {found}, and this is {wanted}")


class _Writer:
    """Writes an unfinished model from time to time."""

    def __init__(self, path: Path, extra: Mapping[str, Any] | None) -> None:
        self._path, self._extra, self._not_before, self._n_written = path, extra, 0.0, 0

    def __call__(self, training: AnyTrainedModel) -> None:
        start, n_complete = monotonic(), sum(one.complete for one in training.trainings)
        is_due = n_complete > self._n_written or start >= self._not_before  # a finished model is never lost
        if is_due and training.trainings[-1].is_checkpoint(TREES_BETWEEN_WRITES):
            write_model(self._path, training, self._extra)
            self._n_written = n_complete
            end = monotonic()
            self._not_before = end + (end - start) / SHARE_OF_WRITING


def _is_finished(
    earlier: TrainedModel, events: Dataset | PartitionedEvents, settings: Settings, n_threads: int | None
) -> bool:
    """Whether an earlier training is the one asked for; refused where it was on other events.

    Partitioned events are not read for this: whoever keeps a model with them must keep them unchanged.
    """
    known = describe_trained(events, settings, n_threads) if isinstance(events, Dataset) else {}
    if {key: _drop_data(earlier.data.get(key)) for key in known} != {k: _drop_data(v) for k, v in known.items()}:
        raise DataError("cannot resume: the earlier training was on other events")
    return earlier.complete and earlier.settings == settings


def _drop_data(described: Any) -> Any:
    """Samples as a training describes them, without recorded data, which it never looks at; anything else as it is."""
    if not isinstance(described, list):
        return described
    return [one for one in described if not isinstance(one, dict) or one.get("role") != Role.DATA]
