"""Memory and time that the training on some events takes, from their number: arithmetic, no measurement.

Constants of memory are sizes of arrays that the rooms `data`, `trees` and `training` keep for each row. Constants of
time are in units of the histogram kernel's time for one row and feature, which is measured where the work is done.
`make resources` prints estimates beside what came.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from qbdt.arrays import FEATURES_PER_WORD
from qbdt.data import Dataset, Events
from qbdt.training import Settings
from qbdt.training.profile import N_FOLDS, count_together

BASE = 420_000_000
"""Bytes of Python, its packages, compiled kernels and the chunk that is read."""

GROWN = 0.7
"""Share of `n_trees` that a sum has where it stops, between a half, which it has in any case, and one."""

REFERENCE = 0.5
"""Nanoseconds that the kernel takes for one row and feature on the machine where the following seconds were found."""

START = 4.0
"""Seconds there until kernels are loaded and the first row is read."""

PER_TREE = 0.005
"""Seconds of a tree there that do not depend on the rows."""

READ, BUILD = 2000, 800
"""Units of reading and checking a row; of binning and scoring it for all inner folds, for each of twelve and its
features."""


@dataclass(frozen=True)
class Contents:
    """Size of a dataset."""

    # nominal, varied: rows of processes, and of what shape sources replace them by
    nominal: int
    varied: int
    n_bytes: int  # Memory of their columns
    # n_features, n_sources: features and systematic sources
    n_features: int
    n_sources: int
    weights: int  # Other weights of nominal rows, all together
    n_folds: int  # Models to train: one for each fold

    @property
    def rows(self) -> int:
        """Rows in all."""
        return self.nominal + self.varied

    @property
    def of_one_model(self) -> Contents:
        """Events that one model is trained on: all folds but one."""
        share = 1 if self.n_folds == 1 else (self.n_folds - 1) / self.n_folds
        return replace(
            self,
            nominal=round(share * self.nominal),
            varied=round(share * self.varied),
            n_bytes=round(share * self.n_bytes),
            weights=round(share * self.weights),
        )


def count_events(dataset: Dataset, count: Callable[[Events], float]) -> Contents:
    """Count the events of a dataset; `count` says how many rows some events stand for."""
    changes = [
        (process, change) for s in dataset.systematics for _, side in s.directions for process, change in side.items()
    ]
    replaced = [change.replacement for _, change in changes if change.replacement is not None]
    reweighted = [process for process, change in changes if change.replacement is None and change.n_rows is not None]
    nominal = {sample.name: count(sample.events) for sample in dataset.samples}
    weights = sum(nominal[process] for process in reweighted)
    n_bytes = sum(count(events) * _size_row(events) for events in (*(s.events for s in dataset.samples), *replaced))
    return Contents(
        round(sum(nominal.values())),
        round(sum(map(count, replaced))),
        round(n_bytes + 8 * weights),
        len(dataset.features),
        len(dataset.systematics),
        round(weights),
        1 if dataset.folds is None else dataset.folds.k,
    )


def _size_row(events: Events) -> int:
    """Bytes of a row: features, identifiers and weight."""
    columns, _ = events.in_place()
    stored = [values.dtype for values in columns.values()]
    stored += [events.identifier(name).dtype for name in events.id_names]
    return 8 + sum(dtype.itemsize for dtype in stored)


@dataclass(frozen=True)
class Estimate:
    """Approximate memory and time of a training."""

    memory: int  # Bytes at the peak, with all events in memory
    # fixed, per_partition: bytes at the peak out of core: what does not depend on the partitions, and what is divided
    # by their number
    fixed: int
    per_partition: int
    disk: int  # Bytes of binned rows on disk, out of core
    units: float  # Work on rows in memory with one thread, in units of the kernel's time for one row and feature
    serial: float  # Share of it that threads do not divide among them
    seconds: float  # Time of all else, on the machine of `REFERENCE`

    def time(self, kernel: float, n_threads: int) -> float:
        """Seconds, where the kernel takes so many nanoseconds for one row and feature."""
        of_rows = 1e-9 * self.units * (self.serial + (1 - self.serial) / n_threads)
        return kernel * (self.seconds / REFERENCE + of_rows)


def format_time(seconds: float) -> str:
    """Write a time with two digits.

    Examples
    --------
    >>> format_time(4.23), format_time(340), format_time(9000)
    ('4.2 s', '5.7 min', '2.5 h')
    """
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s"


def estimate_training(whole: Contents, trained: Contents, settings: Settings, n_threads: int) -> Estimate:
    """Estimate a training: `whole` are all events that are read, `trained` those that are trained on."""
    profiled, own = settings.method == "profile", trained.of_one_model
    costs = _profile_costs(own, settings, n_threads) if profiled else _paper_costs(own, settings)
    selected = 12 * own.rows  # row numbers and weights of a fold's events
    return Estimate(
        memory=round(BASE + whole.n_bytes + selected + costs.in_memory),
        fixed=BASE + trained.rows,  # the inner folds of all rows are kept
        per_partition=round(whole.n_bytes + selected + costs.on_disk),
        disk=round(costs.on_disk),
        units=READ * whole.rows + trained.n_folds * costs.units,
        serial=0.1 if profiled else 0.3,  # inner folds are trained side by side
        seconds=START + trained.n_folds * costs.seconds,
    )


class _Costs(NamedTuple):
    """Bytes of rows in memory and on disk, work on them and seconds of all else, of one training."""

    in_memory: float
    on_disk: float
    units: float
    seconds: float


def _paper_costs(trained: Contents, settings: Settings) -> _Costs:
    # codes; rows and scratch; floats and integers of the weight; of each further weight a float and an integer
    size = trained.rows * (_size_codes(trained) + 8 + 16) + 8 * trained.nominal + 6 * trained.weights
    histograms = _count_levels(settings) * trained.n_features
    tree = 80 * trained.rows + histograms * (1.2 * trained.nominal + 2 * trained.varied + 0.8 * trained.weights)
    return _Costs(size, size, 600 * trained.rows + settings.n_trees * tree, PER_TREE * settings.n_trees)


def _profile_costs(trained: Contents, settings: Settings, n_threads: int) -> _Costs:
    kept = (N_FOLDS - 1) / N_FOLDS
    codes = _size_codes(trained) + trained.n_features  # row by row, and feature by feature
    ratio = trained.nominal * (codes + 68)
    shift = trained.rows * (codes + 60) + trained.nominal * 8 * (trained.n_sources + 1) + 4 * trained.weights
    size = max(ratio, shift if trained.n_sources else 0)
    together = count_together(N_FOLDS, trained.rows * (2 * trained.n_features + 64), n_threads)
    # the two sums of trees of a fold: nominal rows, then all of them
    rows = trained.nominal + (trained.rows if trained.n_sources else 0)
    n_trees = N_FOLDS * GROWN * settings.n_trees
    tree = kept * rows * (50 + 1.6 * _count_levels(settings) * trained.n_features)
    units = BUILD * (12 + trained.n_features) * trained.rows + n_trees * tree
    seconds = n_trees * PER_TREE * (2 if trained.n_sources else 1)
    return _Costs(together * size, size, units, seconds)


def _size_codes(trained: Contents) -> int:
    return 8 * -(-trained.n_features // FEATURES_PER_WORD)


def _count_levels(settings: Settings) -> float:
    """How often a row is added to a histogram in the growth of a tree: at the root, then in the smaller child."""
    return 1 + math.log2(settings.n_leaves) / 2
