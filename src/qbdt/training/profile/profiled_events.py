"""Events of a profiled training, wherever they are: exact sums over all of them, and rows built of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset
from qbdt.threads import Workers
from qbdt.training.inputs import describe_events
from qbdt.training.partitions.protocol import Partitions
from qbdt.training.partitions.survey import survey_events
from qbdt.training.profile.device_rows import DeviceRatioRows, DeviceShiftRows
from qbdt.training.profile.device_scores import DeviceScoreRows
from qbdt.training.profile.inner_folds import N_FOLDS, InnerFolds, count_rows
from qbdt.training.profile.noise import BlockSums, EventFunctions, HeldIntegrals, sum_blocks
from qbdt.training.profile.pair_rows import fixed_scale
from qbdt.training.profile.parameters import Parameters
from qbdt.training.profile.ratio_rows import RatioRows
from qbdt.training.profile.ratios import Ratios
from qbdt.training.profile.score_rows import HeldScores, ScoredSegment, ScoreRows
from qbdt.training.profile.segments import ShiftSegment, find_columns, nominal_segments, shift_segments
from qbdt.training.profile.shift_rows import ShiftRows
from qbdt.training.profile.shift_sums import ShiftSums
from qbdt.training.profile.sums_of_trees import TermScorer
from qbdt.training.profile.weight_sums import EventSums, WeightSums, sum_partition
from qbdt.training.settings import Settings
from qbdt.training.weight_smoothing import smooth_weights
from qbdt.trees import Binning
from qbdt.trees.device import DeviceMemory
from qbdt.trees.rows import Memory, Side, copy_values, in_memory


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
        self.parameters = Parameters.of(settings, empty)
        self.sources = self.parameters.sources
        self._segments = shift_segments(empty)
        self._nominal = shift_segments(empty.with_systematics([]))
        self._signals = [
            [i for i, one in enumerate(self._segments) if one.is_signal and one.segment.name in processes]
            for processes in self.parameters.processes
        ]
        self._left_out: tuple[str, ...] = ()  # signal processes of other strengths, see `of_strength`
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
        others = [self.parameters.other_processes(i) for i in range(len(self.parameters.strengths))]
        if folds.k == 1 or sums.fills_folds(self._segments, folds, others):
            return folds, sums
        return self._divide(replace(folds, k=folds.k - 1))

    def fork(self, workers: Workers) -> ProfiledEvents | None:
        """Return the same events for another thread, with rows of its own; None where rows are not in this memory."""
        rows = self.rows.fork(workers)
        if rows is None:
            return None
        own = copy(self)
        own.rows = rows
        return own

    @property
    def n_bytes(self) -> int:
        """Memory that the rows of one fold take: codes of the features, weights and sums."""
        return self._sums.bounds(self._segments).n_rows * (2 * len(self.features) + 64)

    @property
    def log_odds(self) -> tuple[float, ...]:
        """Logarithm of the expected signal of each strength over the expected background."""
        folds, count = range(self.n_folds), len(self.parameters.strengths)
        others = [self.parameters.other_processes(i) for i in range(count)]
        sums = [[self._sums.of_side(self._segments, side, folds, names).first for side in Side] for names in others]
        return tuple(math.log(signal / background) for signal, background in sums)

    def of_strength(self, number: int) -> ProfiledEvents:
        """Return the same events and rows for F of one strength: of the signals, only those that it multiplies."""
        own = copy(self)
        own._left_out = self.parameters.other_processes(number)
        return own

    def trained(self, fold: int, side: Side) -> WeightSums:
        """Sums over the events of one side that are trained on where one fold is held out."""
        return self._sums.of_side(self._segments, side, self._folds.trained(fold), self._left_out)

    def means(self, fold: int) -> Floats:
        """Mean relative shift of each source in the events that are trained on where one fold is held out."""
        return self._sums.means(self._segments, self._folds.trained(fold))

    def build_ratio_rows(self, fold: int, factors: Sequence[float]) -> tuple[float, HeldScores]:
        """Build nominal rows; those of one fold are held out, the others' weights multiplied by a factor for each side.

        Returns the scale of the trained rows' weights, see `fixed_scale`, and the scores of those held out.
        """
        trained, left_out = self._folds.trained(fold), self._left_out
        n_rows, largest = self._sums.nominal_bounds(self._segments, trained, left_out)
        most = max(factor * weight for factor, weight in zip(factors, largest, strict=True))
        firsts, scale = self._sums.count_before(trained), self._weight_scale
        self.rows.build(_RatioBuilder(self._folds, fold, firsts, self.binning, tuple(factors), scale, left_out))
        return fixed_scale(most, n_rows), HeldScores(self.rows, _without(self._nominal, left_out), 1)

    def build_shift_rows(self, fold: int, ratios: Ratios) -> ShiftSums:
        """Build all rows, those of one fold held out; the sums of trees `ratios` give each r₀."""
        means, firsts = self.means(fold), self._sums.count_before(self._folds.trained(fold))
        self.rows.build(ShiftBuilder(self._folds, fold, firsts, self.binning, means, ratios))
        return ShiftSums(self.rows, self._segments, self._signals, means, self._sums.bounds(self._segments))

    def held_integrals(self, fold: int, ratios: Ratios) -> HeldIntegrals:
        """Integrals over the events of one fold, where the sums of trees `ratios` give each r₀."""
        find = partial(sum_blocks, folds=self._folds, fold=fold, ratios=ratios)
        return self.rows.reduce(find, BlockSums.merge, "blocks").integrals(self._segments, self._signals)

    @property
    def is_smoothed(self) -> bool:
        """Whether weights differ from those given, because some of these are negative."""
        return self.rows is not self._as_given

    def build_score_rows(
        self, models: Sequence[TermScorer], shares: Sequence[float], as_given: bool = False
    ) -> HeldScores:
        """Score every fold by the model that was trained without it, with some shares of its second sum.

        The rows have the weights that are trained on, or those given, negative ones included. Bins will hold equal
        signal, where several signals count alike.
        """
        rows = self._as_given if as_given else self.rows
        builder = _ScoreBuilder(self._folds, tuple(models), tuple(shares), self._weight_scale, self._signal_factors)
        rows.build(builder)
        return HeldScores(rows, self._segments, len(shares), self._signals)

    @property
    def _signal_factors(self) -> dict[int, float] | None:
        """Factors of the segments of signal with which the signals of all strengths have the same yield."""
        if len(self._signals) == 1:
            return None
        odds = np.array(self.log_odds)
        return {i: math.exp(odds.min() - odds[j]) for j, own in enumerate(self._signals) for i in own}

    @property
    def _weight_scale(self) -> float:
        """Scale of weights of all rows, smoothed or as given, see `fixed_scale`."""
        bounds = self._sums.bounds(self._segments)
        return fixed_scale(max(bounds.weight, self._largest), bounds.n_rows)


def _without(segments: Sequence[ShiftSegment], left_out: Sequence[str]) -> list[ShiftSegment]:
    """Return nominal segments but for those of some processes."""
    return [one for one in segments if one.segment.name not in left_out]


@dataclass(frozen=True, eq=False)
class _RatioBuilder:
    """Builds the nominal rows of one partition, which F is trained on or judged by."""

    folds: InnerFolds
    fold: int
    firsts: Mapping[int, Sequence[int]]
    binning: Binning
    factors: tuple[float, ...]
    scale: float
    left_out: tuple[str, ...]

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        trained, held = self.folds.split(number, dataset, self.fold, workers, nominal=True)
        pairs = zip(nominal_segments(trained), self.firsts[number], strict=False)
        own = [replace(one, first=first) for one, first in pairs if one.name not in self.left_out]
        judged = _without(shift_segments(held), self.left_out)
        if isinstance(memory, DeviceMemory):
            return DeviceRatioRows(own, judged, self.binning, self.factors, self.scale, memory)
        return RatioRows(own, judged, self.binning, workers, self.factors, self.scale, memory)


@dataclass(frozen=True, eq=False)
class ShiftBuilder:
    """Builds the rows of one partition that the shifts are trained on."""

    folds: InnerFolds
    fold: int
    firsts: Mapping[int, Sequence[int]]
    binning: Binning
    means: Floats
    functions: EventFunctions

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        """Return the rows of one partition."""
        trained, held = (shift_segments(one) for one in self.folds.split(number, dataset, self.fold, workers))
        pairs = zip(trained, self.firsts[number], strict=True)
        trained = [replace(one, segment=replace(one.segment, first=first)) for one, first in pairs]
        shares = partial(self.functions.shares, n_threads=workers.n_threads)
        given = (self.means, shares, self.functions.n_strengths)
        if isinstance(memory, DeviceMemory):
            trained, held = find_columns((trained, held), workers)
            return DeviceShiftRows(trained, held, self.binning, *given, memory)
        return ShiftRows(trained, held, self.binning, workers, *given, memory)


@dataclass(frozen=True, eq=False)
class _ScoreBuilder:
    """Builds the scored rows of one partition."""

    folds: InnerFolds
    models: tuple[TermScorer, ...]
    shares: tuple[float, ...]
    scale: float
    factors: Mapping[int, float] | None = None

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> Any:
        def scored(fold: int, i: int, one: ShiftSegment) -> ScoredSegment:
            ratio, shift = self.models[fold].terms(one.segment.events, workers.n_threads)
            return ScoredSegment(i, one, copy_values(ratio, "ratio", memory), copy_values(shift, "shift", memory))

        held = [shift_segments(self.folds.held(number, dataset, fold, workers)) for fold in range(self.folds.k)]
        rows = (scored(fold, i, one) for fold, segments in enumerate(held) for i, one in enumerate(segments))
        if isinstance(memory, DeviceMemory) and memory.keeps_tables:  # there is room for all rows
            return DeviceScoreRows(rows, held[0], self.shares, self.scale, memory.device, self.factors)
        return ScoreRows(rows, held[0], self.shares, self.scale, workers, memory, self.factors)
