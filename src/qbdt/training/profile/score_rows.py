"""Held-out events with their scores: `ScoreRows` those of one partition, `HeldScores` all of them, as histograms.

A score is r − a g for each of several shares a. Its bins hold equal absolute signal; their edges are scores of events,
found by asking how much signal there is up to some value, eight bits of the value at a time: eight questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Fixed, Floats
from qbdt.threads import Workers
from qbdt.training.kernels.residuals import add_up_to
from qbdt.training.partitions.protocol import Partitions, total
from qbdt.training.profile.segments import ShiftSegment, sum_shifts, sum_signals
from qbdt.trees.kernels import LIMBS, round_sums, sum_in_bins
from qbdt.trees.rows import Memory, copy_values, in_memory

BITS = 8
"""Bits of an edge that are found at a time: 8 × 256 numbers are one answer for each edge."""


class ScoredSegment(NamedTuple):
    """Rows of one segment: its number, what they add to the shifts, and their r (r₀, or F) and g = Σ_k c_k f_k."""

    number: int
    segment: ShiftSegment
    ratio: Floats
    shift: Floats


class Templates(NamedTuple):
    """Signal, of several strengths as (strength, bin), shifts (source, bin) and variance of each bin, in events."""

    signal: Floats
    shifts: Floats
    variance: Floats


class _WeightedScores(NamedTuple):
    """Rows of one segment: r, g, and their weights, then shifts given row by row."""

    number: int
    nominal: bool
    ratio: Floats
    shift: Floats
    weights: tuple[Floats, ...]


class ScoreSlots:
    """Where sums are: of the weights of each segment, then of the squared weights and the columns of nominal ones."""

    def __init__(self, segments: Sequence[ShiftSegment]) -> None:
        self._signal = [i for i, one in enumerate(segments) if one.is_signal]
        sizes = [1 + len(one.columns) if one.segment.nominal else 0 for one in segments]
        self._firsts = np.cumsum([len(segments), *sizes]).tolist()

    @property
    def size(self) -> int:
        """Number of all sums."""
        return int(self._firsts[-1])

    def first_of(self, segment: int) -> int:
        """Sum of the squared weights of a nominal segment; its columns follow."""
        return int(self._firsts[segment])

    def signal_factors(self, factors: Mapping[int, float] | None) -> Mapping[int, float]:
        """Factors of the segments of signal, one for each where none are given."""
        return dict.fromkeys(self._signal, 1.0) if factors is None else factors


class ScoreRows:
    """Scored rows of a partition; r and g are not copied, and may change.

    `segments` are all there are, by number, maybe without rows; `shares` are of g in the score; `scale` rounds weights.
    Bins hold equal signal; `factors` of its segments, by number, let several signals count alike.
    """

    def __init__(
        self,
        scored: Iterable[ScoredSegment],
        segments: Sequence[ShiftSegment],
        shares: Sequence[float],
        scale: float,
        workers: Workers,
        memory: Memory = in_memory,
        factors: Mapping[int, float] | None = None,
    ) -> None:
        self._shares, self._scale, self._workers = shares, scale, workers
        self._slots = ScoreSlots(segments)
        self._factors = self._slots.signal_factors(factors)
        self._segments = [_copy_weights(one, memory) for one in scored]

    def signal_up_to(self, keys: Fixed) -> Fixed:
        """Absolute signal, in units, with a score of at most each of some keys, as (share, key)."""
        return np.stack(self._workers.run(self._sum_up_to, list(zip(self._shares, keys, strict=True))))

    def _sum_up_to(self, share: float, keys: Fixed) -> Fixed:
        order = np.argsort(keys, kind="stable")
        sums = np.zeros(len(keys) + 1, dtype=np.int64)
        for one in self._segments:
            if one.number in self._factors:
                values, scale = make_keys(one.ratio - share * one.shift), self._factors[one.number] * self._scale
                add_up_to(values, one.weights[0], scale, keys[order], sums)
        found = np.empty_like(keys)
        found[order] = np.cumsum(sums[:-1])
        return found

    def fill(self, edges: Floats) -> Fixed:
        """Exact sums in the bins between edges (share, edge), as (share, what is summed, bin, limb).

        Summed are the weights of each segment, then the squared weights and the columns of each nominal one.
        """
        sums = self._workers.run(self._fill, list(zip(self._shares, edges, strict=True)))
        return np.stack(sums)

    def _fill(self, share: float, edges: Floats) -> Fixed:
        n_bins = len(edges) + 1
        sums = np.zeros((self._slots.size, n_bins, LIMBS), dtype=np.int64)
        for one in self._segments:
            bins = np.searchsorted(edges, one.ratio - share * one.shift, side="right")
            sums[one.number] += sum_in_bins(one.weights[0], bins, n_bins)
            if one.nominal:
                for j, weight in enumerate((np.square(one.weights[0]), *one.weights[1:])):
                    sums[self._slots.first_of(one.number) + j] += sum_in_bins(weight, bins, n_bins)
        return sums


class HasScores(Protocol):
    """Rows with a score: `ScoreRows`, or those of F, which keep their own."""

    def signal_up_to(self, keys: Fixed) -> Fixed:
        """Absolute signal up to some keys."""

    def fill(self, edges: Floats) -> Fixed:
        """Exact sums in bins."""


def _signal_up_to(rows: HasScores, keys: Fixed) -> Fixed:
    return rows.signal_up_to(keys)


def _fill(rows: HasScores, edges: Floats) -> Fixed:
    return rows.fill(edges)


class HeldScores:
    """All held-out rows with their scores; `segments` are all there are, by number, maybe without rows.

    `signals` are the numbers of those that each strength multiplies; one for all signal by default.
    """

    def __init__(
        self,
        rows: Partitions,
        segments: Sequence[ShiftSegment],
        n_shares: int,
        signals: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self._rows, self._segments, self._n_shares = rows, segments, n_shares
        self._signals = [[i for i, one in enumerate(segments) if one.is_signal]] if signals is None else signals

    def templates(self, n_bins: int) -> list[Templates]:
        """Histograms in bins of equal signal, for each share."""
        edges = self._equal_signal(n_bins)
        return [self._collect(round_sums(sums)) for sums in self._rows.ask(total(_fill, edges))[0]]

    def _equal_signal(self, n_bins: int) -> Floats:
        """Inner edges (share, edge): the smallest scores up to which there are 1/n, 2/n … of the signal."""
        largest = np.full((self._n_shares, 1), np.iinfo(np.int64).max)
        signal = int(self._find_signal(largest)[0, 0])
        targets = np.array([-(-i * signal // n_bins) for i in range(1, n_bins)], dtype=np.int64)
        found = np.zeros((self._n_shares, n_bins - 1, 1), dtype=np.uint64)
        for shift in range(64 - BITS, -1, -BITS):
            # The next digit of each edge is the smallest one for which the keys up to it, whatever their lower
            # digits (all ones), hold at least the target.
            step, rest = np.uint64(shift), np.uint64(2**shift - 1)
            digits = np.arange(2**BITS, dtype=np.uint64) << step
            keys = _view_signed(found | digits | rest)
            below = self._find_signal(keys.reshape(self._n_shares, -1)).reshape(keys.shape)
            digit = np.argmax(below >= targets[:, None], axis=2)
            found |= digit[:, :, None].astype(np.uint64) << step
        return _read_keys(_view_signed(found[:, :, 0]))

    def _collect(self, sums: Floats) -> Templates:
        """Histograms of s, of Δ_k = Σ a_k w + Σ columns, and of n = w + w², from sums over segments."""
        segments, slots = self._segments, ScoreSlots(self._segments)
        signal = sum_signals(sums, self._signals)
        variance = np.zeros(sums.shape[1])
        for i, one in enumerate(segments):
            if one.segment.nominal:
                variance += sums[i] + sums[slots.first_of(i)]
        columns = [sums[slots.first_of(i) + 1 :] for i in range(len(segments))]
        return Templates(signal, sum_shifts(segments, sums, columns), variance)

    def _find_signal(self, keys: Fixed) -> Fixed:
        return self._rows.ask(total(_signal_up_to, keys))[0]


def make_keys(values: Floats) -> Fixed:
    """Integers in the order of floating-point numbers; zero and minus zero have the same.

    Examples
    --------
    >>> keys = make_keys(np.array([-np.inf, -1.0, -0.0, 0.0, 1e-300, 2.0]))
    >>> np.diff(keys) > 0
    array([ True,  True, False,  True,  True])
    """
    return _reverse_negative((values + 0.0).view(np.int64))


def _read_keys(keys: Fixed) -> Floats:
    """Inverse of `make_keys`."""
    return np.asarray(_reverse_negative(keys).view(np.float64))


def _reverse_negative(bits: Fixed) -> Fixed:
    """Reverse the order of negative numbers, whose bits grow with their size."""
    return np.asarray(bits ^ ((bits >> 63) & np.iinfo(np.int64).max))


def _view_signed(keys: NDArray[np.uint64]) -> Fixed:
    """Integers with a sign in the order of those without."""
    return np.asarray((keys ^ np.uint64(2**63)).view(np.int64))


def _copy_weights(one: ScoredSegment, memory: Memory) -> _WeightedScores:
    weight = copy_values(one.segment.segment.events.weight, "weight", memory)
    columns = [copy_values(column(), "shift_column", memory) for _, column in one.segment.columns]
    return _WeightedScores(one.number, one.segment.segment.nominal, one.ratio, one.shift, (weight, *columns))
