"""MC noise of the effect of each source, and the shrinkage that it calls for.

The effect of a source on r₀, ∫ Δ_k r₀, and on the yield, ∫ Δ_k, is found in blocks of held-out events, an event and its
shifted copies in the same block. The spread of the blocks gives the variance σ² of their sum. A source whose effects
are within the noise would only turn the score away from sources that are known, so its effects are shrunk, down to zero
(docs/profiled-method.md, "How it learns it", step 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.data import Dataset, Events
from qbdt.threads import Workers
from qbdt.training.profile.inner_folds import InnerFolds
from qbdt.training.profile.segments import ShiftSegment, shift_segments, sum_shifts, sum_signals
from qbdt.trees.kernels import LIMBS, exact_sum, round_sums


class EventFunctions(Protocol):
    """Functions of events that are integrated over them beside a constant: each r₀ (`Ratios`), or predictions."""

    @property
    def n_strengths(self) -> int:
        """Number of functions."""

    def shares(self, events: Events, n_threads: int | None = None) -> Floats:
        """Values as (function, event)."""


class HeldIntegrals(NamedTuple):
    """∫ s f and ∫ Δ_k f (source, f) over held-out events, and the latter in blocks (block, source, f); f is r₀ or 1.

    With several strengths there is an r₀ of each, and the first is (strength, f).
    """

    signal: Floats
    shifts: Floats
    blocks: Floats


class BlockSums(NamedTuple):
    """Exact sums over held-out rows of w f (block, segment, f, limb) and column × f (…, column, f, limb); f is r₀ or 1.

    Those of partitions add up.
    """

    weight: Fixed
    columns: Fixed

    def merge(self, other: BlockSums) -> BlockSums:
        """Sums over the rows of both."""
        return BlockSums(self.weight + other.weight, self.columns + other.columns)

    def integrals(self, segments: Sequence[ShiftSegment], signals: Sequence[Sequence[int]]) -> HeldIntegrals:
        """Integrals in events; `signals` are the numbers of the segments that each strength multiplies."""
        blocks = zip(round_sums(self.weight), round_sums(self.columns), strict=True)
        return HeldIntegrals(
            round_sums(sum_signals(self.weight.sum(axis=0), signals)),
            sum_shifts(segments, round_sums(self.weight.sum(axis=0)), round_sums(self.columns.sum(axis=0))),
            np.stack([sum_shifts(segments, weight, columns) for weight, columns in blocks]),
        )


def sum_blocks(
    number: int, dataset: Dataset, workers: Workers, folds: InnerFolds, fold: int, ratios: EventFunctions
) -> BlockSums:
    """Pass over one partition of the events, where the sums of trees `ratios` give each r₀."""
    held = [shift_segments(one) for one in folds.held_blocks(number, dataset, fold, workers)]
    # Functions may be found on a device, which one thread speaks to
    known = [[ratios.shares(one.segment.events, workers.n_threads) for one in block] for block in held]
    blocks = workers.run(_block, list(zip(held, known, strict=True)))
    return BlockSums(*(np.stack(arrays) for arrays in zip(*blocks, strict=True)))


def _block(segments: Sequence[ShiftSegment], functions: Sequence[Floats]) -> BlockSums:
    """Sums over one block, whose functions but the constant are known for each segment."""
    n, n_columns, n_functions = len(segments), max(len(one.columns) for one in segments), len(functions[0]) + 1
    found = BlockSums(
        np.zeros((n, n_functions, LIMBS), dtype=np.int64),
        np.zeros((n, n_columns, n_functions, LIMBS), dtype=np.int64),
    )
    for i, (one, own) in enumerate(zip(segments, functions, strict=True)):
        columns = [column() for _, column in one.columns]
        for j, f in enumerate((*own, 1.0)):
            found.weight[i, j] = exact_sum(one.segment.events.weight * f)
            for c, values in enumerate(columns):
                found.columns[i, c, j] = exact_sum(values * f)
    return found


def noise_shrinkage(blocks: Floats) -> Floats:
    """Factor of each source's squared effect, shrunk by its MC noise, from ∫ Δ_k f as (block, source, f).

    An effect D of variance σ² has E[D²] = (true effect)² + σ², so the share of D² that is no noise is 1 − σ²/D², or
    zero where that is negative. It is that of the better known of the effects on r₀ and on the yield.

    Examples
    --------
    >>> known, noise = np.full(20, 1.0), np.resize([1.0, -1.0], 20)
    >>> noise_shrinkage(np.stack([known, noise, known + noise], axis=1)[:, :, None]).round(2)
    array([1.  , 0.  , 0.95])
    """
    effect = blocks.sum(axis=0)
    variance = len(blocks) * blocks.var(axis=0, ddof=1)  # of a sum of equally distributed blocks
    known = effect**2 > variance
    share = np.where(known, 1.0 - np.divide(variance, effect**2, out=np.zeros_like(variance), where=known), 0.0)
    return np.asarray(share.max(axis=1))
