"""Events of a profiled training, wherever they are: exact sums over all of them, and rows built of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events
from qbdt.threads import Workers
from qbdt.training.inputs import describe_events
from qbdt.training.partitions.protocol import Partitions
from qbdt.training.partitions.survey import survey_events
from qbdt.training.profile.device_rows import DeviceRatioRows, DeviceShiftRows
from qbdt.training.profile.inner_folds import N_FOLDS, InnerFolds, count_rows
from qbdt.training.profile.noise import BlockSums, HeldIntegrals, sum_blocks
from qbdt.training.profile.pair_rows import fixed_scale
from qbdt.training.profile.ratio_rows import RatioRows
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.score_rows import HeldScores, ScoredSegment, ScoreRows
from qbdt.training.profile.segments import ShiftSegment, nominal_segments, shift_segments
from qbdt.training.profile.shift_rows import ShiftRows
from qbdt.training.profile.shift_sums import ShiftSums
from qbdt.training.profile.weight_sums import EventSums, WeightSums, sum_partition
from qbdt.training.settings import Settings
from qbdt.training.weight_smoothing import smooth_weights
from qbdt.trees import Binning
from qbdt.trees.device import DeviceMemory
from qbdt.trees.rows import Memory, Side, copy_values, in_memory

__all__ = ["ProfiledEvents"]


class ProfiledEvents:
    """All events of a training, divided into inner folds."""

    def __init__(self, partitions: Partitions, settings: Settings, workers: Workers) -> None:
        survey = survey_events(partitions, settings, count_rows)
        empty = survey.empty
        self.binning: Binning = survey.choose_binning(settings, workers)
        self.rows = smooth_weights(partitions, survey, self.binning, settings, workers)
        self._as_given = partitions
        self._largest = max(tally.largest for tally in survey.samples)
        self.features = empty.features
        self.data = describe_events(empty, survey.samples)
        self.sources = tuple(source.name for source in empty.systematics)
        self._segments = shift_segments(empty)
        self._nominal = shift_segments(empty.with_systematics([]))
        self._folds, self._sums = self._divide(InnerFolds.of(survey))
        if self.n_folds < N_FOLDS:
            self.data["inner_folds"] = self.n_folds

    @property
    def n_folds(self) -> int:
        """Inner folds: five, fewer where events do not fill as many, one where nothing can be held out."""
        return self._folds.k

    def _divide(self, folds: InnerFolds) -> tuple[InnerFolds, EventSums]:
        """Sum over events in as many inner folds as they fill."""
        sums = self.rows.reduce(partial(sum_partition, folds=folds), EventSums.merge, "sums")
        if folds.k == 1 or sums.fills_folds(self._segments, folds):
            return folds, sums
        return self._divide(replace(folds, k=folds.k - 1))

    @property
    def log_odds(self) -> float:
        """Logarithm of the expected signal over the expected background."""
        signal, background = (self._sums.of_side(self._segments, side, range(self.n_folds)).first for side in Side)
        return math.log(signal / background)

    def trained(self, fold: int, side: Side) -> WeightSums:
        """Sums over the events of one side that are trained on where one fold is held out."""
        return self._sums.of_side(self._segments, side, self._folds.trained(fold))

    def means(self, fold: int) -> Floats:
        """Mean relative shift of each source in the events that are trained on where one fold is held out."""
        return self._sums.means(self._segments, self._folds.trained(fold))

    def build_ratio_rows(self, fold: int, factors: Sequence[float]) -> tuple[float, HeldScores]:
        """Build nominal rows; those of one fold are held out, the others' weights multiplied by a factor for each side.

        Returns the scale of the trained rows' weights, see `fixed_scale`, and the scores of those held out.
        """
        n_rows, largest = self._sums.nominal_bounds(self._segments, self._folds.trained(fold))
        most = max(factor * weight for factor, weight in zip(factors, largest, strict=True))
        firsts = self._sums.count_before(self._folds.trained(fold))
        self.rows.build(_RatioBuilder(self._folds, fold, firsts, self.binning, tuple(factors), self._weight_scale))
        return fixed_scale(most, n_rows), HeldScores(self.rows, self._nominal, 1)

    def build_shift_rows(self, fold: int, model: ProfiledEnsemble) -> ShiftSums:
        """Build all rows, those of one fold held out; the model's first sum of trees gives r₀."""
        means, firsts = self.means(fold), self._sums.count_before(self._folds.trained(fold))
        self.rows.build(_ShiftBuilder(self._folds, fold, firsts, self.binning, means, model))
        return ShiftSums(self.rows, self._segments, means, self._sums.bounds(self._segments))

    def held_integrals(self, fold: int, model: ProfiledEnsemble) -> HeldIntegrals:
        """Integrals over the events of one fold, where the model's first sum of trees gives r₀."""
        find = partial(sum_blocks, folds=self._folds, fold=fold, model=model)
        return self.rows.reduce(find, BlockSums.merge, "blocks").integrals(self._segments)

    @property
    def is_smoothed(self) -> bool:
        """Whether weights differ from those given, because some of these are negative."""
        return self.rows is not self._as_given

    def build_score_rows(
        self, models: Sequence[ProfiledEnsemble], shares: Sequence[float], as_given: bool = False
    ) -> HeldScores:
        """Score every fold by the model that was trained without it, with some shares of its second sum.

        The rows have the weights that are trained on, or those given, negative ones included.
        """
        rows = self._as_given if as_given else self.rows
        rows.build(_ScoreBuilder(self._folds, tuple(models), tuple(shares), self._weight_scale))
        return HeldScores(rows, self._segments, len(shares))

    @property
    def _weight_scale(self) -> float:
        """Scale of weights of all rows, smoothed or as given, see `fixed_scale`."""
        bounds = self._sums.bounds(self._segments)
        return fixed_scale(max(bounds.weight, self._largest), bounds.n_rows)


@dataclass(frozen=True, eq=False)
class _RatioBuilder:
    """Builds the nominal rows of one partition, which F is trained on or judged by."""

    folds: InnerFolds
    fold: int
    firsts: Mapping[int, Sequence[int]]
    binning: Binning
    factors: tuple[float, ...]
    scale: float

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        trained, held = self.folds.split(number, dataset, self.fold, nominal=True)
        pairs = zip(nominal_segments(trained), self.firsts[number], strict=False)
        own = [replace(one, first=first) for one, first in pairs]
        given = (own, shift_segments(held), self.binning, workers, self.factors, self.scale)
        if isinstance(memory, DeviceMemory):
            return DeviceRatioRows(*given, memory.device)
        return RatioRows(*given, memory)


@dataclass(frozen=True, eq=False)
class _ShiftBuilder:
    """Builds the rows of one partition that the shifts are trained on."""

    folds: InnerFolds
    fold: int
    firsts: Mapping[int, Sequence[int]]
    binning: Binning
    means: Floats
    model: ProfiledEnsemble

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        trained, held = (shift_segments(one) for one in self.folds.split(number, dataset, self.fold))
        pairs = zip(trained, self.firsts[number], strict=True)
        trained = [replace(one, segment=replace(one.segment, first=first)) for one, first in pairs]
        ratio = _ratio(self.model, workers.n_threads)
        given = (trained, held, self.binning, workers, self.means, ratio)
        if isinstance(memory, DeviceMemory):
            return DeviceShiftRows(*given, memory.device)
        return ShiftRows(*given, memory)


@dataclass(frozen=True, eq=False)
class _ScoreBuilder:
    """Builds the scored rows of one partition."""

    folds: InnerFolds
    models: tuple[ProfiledEnsemble, ...]
    shares: tuple[float, ...]
    scale: float

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> ScoreRows:
        def scored(fold: int, i: int, one: ShiftSegment) -> ScoredSegment:
            model, events = self.models[fold], one.segment.events
            ratio = copy_values(_ratio(model, workers.n_threads)(events), "ratio", memory)
            return ScoredSegment(
                i, one, ratio, copy_values(model.shift.score(events, workers.n_threads), "shift", memory)
            )

        held = [shift_segments(self.folds.split(number, dataset, fold)[1]) for fold in range(self.folds.k)]
        rows = (scored(fold, i, one) for fold, segments in enumerate(held) for i, one in enumerate(segments))
        return ScoreRows(rows, held[0], self.shares, self.scale, workers, memory)


def _ratio(model: ProfiledEnsemble, n_threads: int) -> Callable[[Events], Floats]:
    """Return the function r₀ = s/(s + b) of events."""
    return lambda events: model.probability(model.ratio.score(events, n_threads))
