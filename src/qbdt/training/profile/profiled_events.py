"""Events of a profiled training, wherever they are: what is known of them all, and the stores that ask them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events
from qbdt.threads import Workers
from qbdt.training.inputs import described
from qbdt.training.partitions.partition import PartHosts, Survey, agreed_binning, survey_part
from qbdt.training.profile.inner_folds import N_PARTS, Division, event_rows
from qbdt.training.profile.noise import BlockSums, HeldStart, sums_of_blocks
from qbdt.training.profile.pair_rows import fixed_scale
from qbdt.training.profile.ratio_rows import RatioRows, RatioStore
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.profile.score_rows import Scored, ScoreRows, ScoreStore
from qbdt.training.profile.segments import nominal_segments, shift_segments
from qbdt.training.profile.shift_rows import ShiftRows, ShiftSegment
from qbdt.training.profile.shift_sums import ShiftStore
from qbdt.training.profile.weight_sums import Sums, WeightSums, sums_of_part
from qbdt.training.settings import Settings
from qbdt.trees import Binning
from qbdt.trees.rows import Memory, Side, copied, in_memory

__all__ = ["ProfiledEvents"]


class ProfiledEvents:
    """All events of a training, divided into inner parts.

    Parameters
    ----------
    hosts
        What holds them.
    settings
        How to train.
    workers
        Threads.
    """

    def __init__(self, hosts: PartHosts, settings: Settings, workers: Workers) -> None:
        self._hosts = hosts
        survey = hosts.over(partial(survey_part, settings=settings, count=event_rows), Survey.merged, "survey")
        empty = survey.empty
        self.binning: Binning = agreed_binning(survey, settings, workers)
        self.features = empty.features
        self.data = described(empty, survey.tallies[: len(empty.samples)])
        self.sources = tuple(source.name for source in empty.systematics)
        self._segments = shift_segments(empty)
        self._nominal = shift_segments(empty.with_systematics([]))
        self._division = Division.of(survey)
        self._sums = hosts.over(partial(sums_of_part, division=self._division), Sums.merged, "sums")
        self._sums.require_full_parts(self._segments)

    @property
    def log_odds(self) -> float:
        """Logarithm of the expected signal over the expected background."""
        signal, background = (self._sums.of_side(self._segments, side, range(N_PARTS)).first for side in Side)
        return math.log(signal / background)

    def trained(self, part: int, side: Side) -> WeightSums:
        """Sums over the events of one side that are trained on where one part is held out."""
        return self._sums.of_side(self._segments, side, _others(part))

    def means(self, part: int) -> Floats:
        """Mean relative shift of each source in the events that are trained on where one part is held out."""
        return self._sums.means(self._segments, _others(part))

    def ratio_store(self, part: int, factors: Sequence[float]) -> RatioStore:
        """Nominal rows; those of one part are held out, the others' weights multiplied by a factor for each side."""
        n_rows, largest = self._sums.nominal_bounds(self._segments, _others(part))
        most = max(factor * weight for factor, weight in zip(factors, largest, strict=True))
        firsts = self._sums.firsts(_others(part))
        build = _RatioBuild(self._division, part, firsts, self.binning, tuple(factors), self._weight_scale)
        self._hosts.build(build)
        return RatioStore(self._hosts, fixed_scale(most, n_rows), self._nominal)

    def shift_store(self, part: int, model: ProfiledEnsemble) -> ShiftStore:
        """All rows, those of one part held out; the model's first sum of trees gives r₀."""
        means, firsts = self.means(part), self._sums.firsts(_others(part))
        self._hosts.build(_ShiftBuild(self._division, part, firsts, self.binning, means, model))
        return ShiftStore(self._hosts, self._segments, means, self._sums.bounds(self._segments))

    def held_start(self, part: int, model: ProfiledEnsemble) -> HeldStart:
        """Integrals over the events of one part, where the model's first sum of trees gives r₀."""
        find = partial(sums_of_blocks, division=self._division, part=part, model=model)
        return self._hosts.over(find, BlockSums.merged, "blocks").start(self._segments)

    def score_store(self, models: Sequence[ProfiledEnsemble], shares: Sequence[float]) -> ScoreStore:
        """Rows of every part, scored by the model that was trained without it, with some shares of its second sum."""
        self._hosts.build(_ScoreBuild(self._division, tuple(models), tuple(shares), self._weight_scale))
        return ScoreStore.on(self._hosts, self._segments, len(shares))

    @property
    def _weight_scale(self) -> float:
        """What weights are multiplied by before they are rounded to units."""
        bounds = self._sums.bounds(self._segments)
        return fixed_scale(bounds.weight, bounds.n_rows)


def _others(part: int) -> list[int]:
    return [other for other in range(N_PARTS) if other != part]


@dataclass(frozen=True, eq=False)
class _RatioBuild:
    """Makes the nominal rows of one partition, which F is trained on or judged by."""

    division: Division
    part: int
    firsts: dict[int, tuple[int, ...]]
    binning: Binning
    factors: tuple[float, ...]
    scale: float

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> RatioRows:
        trained, held = self.division.divided(number, dataset, self.part, nominal=True)
        pairs = zip(nominal_segments(trained), self.firsts[number], strict=False)
        own = [replace(one, first=first) for one, first in pairs]
        return RatioRows(own, shift_segments(held), self.binning, workers, self.factors, self.scale, memory)


@dataclass(frozen=True, eq=False)
class _ShiftBuild:
    """Makes the rows of one partition that the shifts are trained on."""

    division: Division
    part: int
    firsts: dict[int, tuple[int, ...]]
    binning: Binning
    means: Floats
    model: ProfiledEnsemble

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> ShiftRows:
        trained, held = (shift_segments(one) for one in self.division.divided(number, dataset, self.part))
        pairs = zip(trained, self.firsts[number], strict=True)
        trained = [replace(one, segment=replace(one.segment, first=first)) for one, first in pairs]
        ratio = _ratio(self.model, workers.n_threads)
        return ShiftRows(trained, held, self.binning, workers, self.means, ratio, memory)


@dataclass(frozen=True, eq=False)
class _ScoreBuild:
    """Makes the scored rows of one partition."""

    division: Division
    models: tuple[ProfiledEnsemble, ...]
    shares: tuple[float, ...]
    scale: float

    def __call__(self, number: int, dataset: Dataset, workers: Workers, memory: Memory = in_memory) -> ScoreRows:
        def scored(part: int, i: int, one: ShiftSegment) -> Scored:
            model, events = self.models[part], one.segment.events
            ratio = copied(_ratio(model, workers.n_threads)(events), "ratio", memory)
            return Scored(i, one, ratio, copied(model.shift.score(events, workers.n_threads), "shift", memory))

        held = [shift_segments(self.division.divided(number, dataset, part)[1]) for part in range(N_PARTS)]
        rows = (scored(part, i, one) for part, segments in enumerate(held) for i, one in enumerate(segments))
        return ScoreRows(rows, held[0], self.shares, self.scale, workers, memory)


def _ratio(model: ProfiledEnsemble, n_threads: int) -> Callable[[Events], Floats]:
    """Return the function r₀ = s/(s + b) of events."""
    return lambda events: model.probability(model.ratio.score(events, n_threads))
