"""One call for both methods: train on a dataset as the settings say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qbdt.data import Dataset
from qbdt.progress import Progress, silent
from qbdt.threads import Workers
from qbdt.training.inputs import describe_events
from qbdt.training.model import TrainedModel
from qbdt.training.monitor import Monitor
from qbdt.training.paper.boosting import train_paper
from qbdt.training.partitions.events import PartitionedEvents
from qbdt.training.profile.asymmetry import move_events
from qbdt.training.profile.measured_sources import require_measurable_sources
from qbdt.training.profile.method import train_profiled
from qbdt.training.profile.parameters import free_normalisations
from qbdt.training.settings import Settings


def train(
    dataset: Dataset | PartitionedEvents,
    settings: Settings,
    *,
    n_threads: int | None = None,
    monitor: Monitor | None = None,
    progress: Progress = silent,
    resume: TrainedModel | None = None,
    checkpoint: Callable[[TrainedModel], None] | None = None,
    device: str | None = None,
) -> TrainedModel:
    """Train by the method that `settings.method` names: the paper's or the profiled one.

    Parameters
    ----------
    dataset
        Signal, background and systematic sources: in memory, on disk (`OutOfCore`) or on a cluster (`OnCluster`).
    settings
        How to train.
    n_threads
        Threads; None for all cores. Results do not depend on it.
    monitor
        Validation sample, early stopping, callbacks.
    progress
        Shows how far it is.
    resume
        An earlier, shorter training on the same events with the same settings, to be continued: the outcome is that of
        one uninterrupted training.
    checkpoint
        Called with the training so far after every tree; it decides itself when to write.
    device
        Where the rows are: None for ordinary memory, "cuda" for a GPU. Models are the same, bit by bit.

    Returns
    -------
    TrainedModel
        Interrupting with Ctrl-C returns the trees so far.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = np.concatenate([rng.normal(1, 1, 300), rng.normal(-1, 1, 300)])
    >>> dataset = Dataset.from_arrays(x[:, None], np.repeat([1, 0], 300))
    >>> train(dataset, Settings(method="profile", n_trees=5)).expectation.sigma_stat < 0.2
    True
    """
    if isinstance(dataset, Dataset):
        require_measurable_sources(dataset, settings.of_interest)
    method: Any = train_profiled if settings.method == "profile" else train_paper
    with Workers(n_threads) as workers:
        handed_over = [move_events(dataset, settings, workers)]
    del dataset  # so that the method can let go of it when its own arrays are filled
    options: dict[str, Any] = {"n_threads": n_threads, "monitor": monitor, "progress": progress, "device": device}
    trained: TrainedModel = method(handed_over.pop(), settings, resume=resume, checkpoint=checkpoint, **options)
    return trained


def describe_trained(dataset: Dataset, settings: Settings, n_threads: int | None = None) -> dict[str, Any]:
    """Samples and sources as a training on these events keeps them: at its working point, with what is free."""
    with Workers(n_threads) as workers:
        moved = move_events(dataset, settings, workers)
    assert isinstance(moved, Dataset)
    return describe_events(free_normalisations(moved, settings.free))
