"""Events of a regression, divided into inner folds, and the rows that are built of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import TARGET, Dataset, Events
from qbdt.threads import Workers
from qbdt.training.inputs import describe_events, make_feature_rules
from qbdt.training.partitions.events import place_events
from qbdt.training.partitions.survey import count_before
from qbdt.training.profile.inner_folds import InnerFolds, count_rows
from qbdt.training.profile.noise import BlockSums, HeldIntegrals, sum_blocks
from qbdt.training.profile.profiled_events import ShiftBuilder
from qbdt.training.profile.segments import shift_segments
from qbdt.training.profile.shift_sums import ShiftSums
from qbdt.training.profile.weight_sums import EventSums, sum_partition
from qbdt.training.regression.losses import Loss
from qbdt.training.regression.target_rows import TargetRows
from qbdt.training.settings import Settings
from qbdt.trees import Ensemble, make_binning
from qbdt.trees.rows import Memory, in_memory

LEAST_ROWS = 40
"""Fewer rows than these are not divided: a fold of them would judge nothing."""

NO_SIGNALS: tuple[tuple[int, ...], ...] = ((), ())
"""Segments of signal for g and for z: there is no signal here."""


class Scales(NamedTuple):
    """Sizes of g − start and of z in all events: what is summed is these over their size, at most 1."""

    prediction: float
    influence: float


@dataclass(frozen=True, eq=False)
class HeldPrediction:
    """Functions of held-out events that the sums over them are taken with: g − start and z = ψ(y − g)/κ, both scaled.

    g is the prediction of the trees that have not seen them, and z the influence of an event on a mean: r for the
    squared loss. It is what `Ratios` is to the profiled method.
    """

    trees: Ensemble
    start: float
    loss: Loss
    curvature: float
    scales: Scales

    n_strengths = 2

    def shares(self, events: Events, n_threads: int | None = None) -> Floats:
        """Both functions, as (function, event)."""
        moved = self.trees.score(events, n_threads)
        influence = self.loss.gradient(events.identifier(TARGET) - self.start - moved) / self.curvature
        return np.stack([moved / self.scales.prediction, influence / self.scales.influence])


class RegressionEvents:
    """All events of a regression in memory, divided into inner folds by identifiers, or by position without any."""

    def __init__(self, dataset: Dataset, settings: Settings, workers: Workers) -> None:
        settings.require_features(dataset.features)
        dataset.require_categories(settings.categorical_features)
        self.dataset, self.workers = dataset, workers
        self.nominal = dataset.samples[0].events
        known = dataset.categories(settings.categorical_features)
        # Quantiles are those of one class: it is given as both.
        both = ([self.nominal], [self.nominal])
        self.binning = make_binning(settings.binning, settings.max_bins, dataset.features, *both, workers, known)
        self.rules = make_feature_rules(self.binning, settings).without_directions()
        self.data = describe_events(dataset)
        self.sources = tuple(source.name for source in dataset.systematics)
        self.rows = place_events(dataset, workers)
        counts = {0: count_rows(dataset, settings)}
        divisible = self.nominal.n_rows >= LEAST_ROWS
        names = tuple(name for name in self.nominal.id_names if name != TARGET)
        self.folds = InnerFolds(names, counts[0], count_before(counts), counts)
        self.folds = self.folds if divisible else replace(self.folds, k=1)
        self.sums = self.rows.reduce(partial(sum_partition, folds=self.folds), EventSums.merge, "sums")
        self.segments = shift_segments(dataset)

    @property
    def n_folds(self) -> int:
        """Inner folds."""
        return self.folds.k

    @property
    def total(self) -> float:
        """Expected events W."""
        return self.nominal.total

    @property
    def mean_weight(self) -> float:
        """Weight of an average event, Σw²/Σw, by which leaves count entries."""
        return float(np.square(self.nominal.weight).sum() / self.total)

    def nominal_of(self, fold: int) -> tuple[Events, Events]:
        """Nominal events that are trained on, and those held out."""
        trained, held = self.folds.split(0, self.dataset, fold, self.workers, nominal=True)
        return trained.samples[0].events, held.samples[0].events

    def build_target_rows(self, fold: int, loss: Loss, start: float) -> None:
        """Build the rows on which the prediction is learnt."""
        trained, held = self.nominal_of(fold)

        def build(number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> TargetRows:
            return TargetRows(trained, held, self.binning, workers, loss, start, memory)

        self.rows.build(build)

    def build_shift_rows(self, fold: int, prediction: HeldPrediction) -> ShiftSums:
        """Build all rows, nominal and varied, on which shifts are learnt."""
        means, firsts = self.means(fold), self.sums.count_before(self.folds.trained(fold))
        self.rows.build(ShiftBuilder(self.folds, fold, firsts, self.binning, means, prediction))
        return ShiftSums(self.rows, self.segments, NO_SIGNALS, means, self.sums.bounds(self.segments))

    def means(self, fold: int) -> Floats:
        """Mean relative shift of each source in the events that are trained on."""
        return self.sums.means(self.segments, self.folds.trained(fold))

    def held_integrals(self, fold: int, prediction: HeldPrediction) -> HeldIntegrals:
        """Integrals of shifts over the events of one fold."""
        find = partial(sum_blocks, folds=self.folds, fold=fold, ratios=prediction)
        return self.rows.reduce(find, BlockSums.merge, "blocks").integrals(self.segments, NO_SIGNALS)
