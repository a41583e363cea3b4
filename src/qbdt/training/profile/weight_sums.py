"""Exact sums and upper bounds of the weights of all events of a profiled training, fold by fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.data import Dataset
from qbdt.threads import Workers
from qbdt.training.partitions.survey import count_before
from qbdt.training.profile.inner_folds import InnerFolds
from qbdt.training.profile.segments import ShiftSegment, shift_segments, sum_shifts, variance
from qbdt.training.profile.shift_sums import ShiftBounds
from qbdt.trees.kernels import LIMBS, exact_sum, round_sums
from qbdt.trees.rows import Side


class WeightSums(NamedTuple):
    """Σw and Σw² of some events."""

    first: float
    second: float


@dataclass(frozen=True, eq=False)
class EventSums:
    """Sums over the rows of each segment in each fold; exact ones have limbs as their last axis."""

    # Number of rows as (fold, segment), by number of the partition.
    rows: dict[int, Fixed]
    # Σ w, Σ w² and Σ n, n = w + w², as (fold, segment); n of nominal segments only.
    weight: Fixed
    square: Fixed
    variance: Fixed
    # Sums of the shifts given row by row, as (fold, segment, column).
    columns: Fixed
    # Largest absolute weight of each segment, and of each of its columns.
    largest: Floats
    largest_columns: Floats

    def merge(self, other: EventSums) -> EventSums:
        """Return the sums over the rows of both."""
        return EventSums(
            {**self.rows, **other.rows},
            self.weight + other.weight,
            self.square + other.square,
            self.variance + other.variance,
            self.columns + other.columns,
            np.maximum(self.largest, other.largest),
            np.maximum(self.largest_columns, other.largest_columns),
        )

    def of_side(
        self, segments: Sequence[ShiftSegment], side: Side, folds: Sequence[int], left_out: Sequence[str] = ()
    ) -> WeightSums:
        """Sums over all nominal events of one side in some folds, but for some processes."""
        nominal = [(i, one.segment) for i, one in enumerate(segments) if one.segment.nominal]
        own = [i for i, segment in nominal if segment.side is side and segment.name not in left_out]
        first, second = (
            float(round_sums(sums[np.ix_(folds, own)].sum(axis=(0, 1)))) for sums in (self.weight, self.square)
        )
        return WeightSums(first, second)

    def means(self, segments: Sequence[ShiftSegment], folds: Sequence[int]) -> Floats:
        """Mean relative shift ∫ Δ_k / ∫ n of each source in some folds."""
        chosen = list(folds)
        weight, columns = (round_sums(sums[chosen].sum(axis=0)) for sums in (self.weight, self.columns))
        return sum_shifts(segments, weight, columns) / float(round_sums(self.variance[chosen].sum(axis=(0, 1))))

    def nominal_bounds(
        self, segments: Sequence[ShiftSegment], folds: Sequence[int], left_out: Sequence[str] = ()
    ) -> tuple[int, list[float]]:
        """Nominal rows in some folds, but for some processes, and the largest absolute weight of each side."""
        nominal = [i for i, one in enumerate(segments) if one.segment.nominal and one.segment.name not in left_out]
        n_rows = sum(int(rows[np.ix_(folds, nominal)].sum()) for rows in self.rows.values())
        return n_rows, [
            max(float(self.largest[i]) for i in nominal if segments[i].segment.side is side) for side in Side
        ]

    def bounds(self, segments: Sequence[ShiftSegment]) -> ShiftBounds:
        """Upper bounds on the numbers of any row."""
        nominal = [i for i, one in enumerate(segments) if one.segment.nominal]
        columns = tuple(self.largest_columns[i, : len(segments[i].columns)] for i in nominal)
        return ShiftBounds(int(sum(rows.sum() for rows in self.rows.values())), float(self.largest.max()), columns)

    def count_before(self, folds: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Rows of some folds in all partitions before each one, by segment."""
        return count_before({number: rows[list(folds)].sum(axis=0).tolist() for number, rows in self.rows.items()})

    def fills_folds(
        self, segments: Sequence[ShiftSegment], folds: InnerFolds, others: Sequence[Sequence[str]] = ((),)
    ) -> bool:
        """Whether each fold, and what is left without it, has a positive yield of background and of each signal.

        `others` are, for each signal, the processes of all other signals.
        """
        chosen = [part for fold in range(folds.k) for part in (folds.trained(fold), [fold])]
        return all(
            self.of_side(segments, side, part, left_out).first > 0
            for left_out in others
            for part in chosen
            for side in Side
        )


def sum_partition(number: int, dataset: Dataset, workers: Workers, folds: InnerFolds) -> EventSums:
    """Sums over one partition of the events."""
    divided = [shift_segments(folds.held(number, dataset, fold, workers)) for fold in range(folds.k)]
    n_segments, n_columns = len(divided[0]), max(len(one.columns) for one in divided[0])
    rows = np.array([[one.segment.events.n_rows for one in fold] for fold in divided], dtype=np.int64)
    weight, square, nominal = (np.zeros((folds.k, n_segments, LIMBS), dtype=np.int64) for _ in range(3))
    columns = np.zeros((folds.k, n_segments, n_columns, LIMBS), dtype=np.int64)
    largest, largest_columns = np.zeros((folds.k, n_segments)), np.zeros((folds.k, n_segments, n_columns))

    def add_segment(p: int, i: int, one: ShiftSegment) -> None:
        events = one.segment.events
        weight[p, i], square[p, i] = exact_sum(events.weight), exact_sum(np.square(events.weight))
        largest[p, i] = _magnitude(events.weight)
        if one.segment.nominal:
            nominal[p, i] = exact_sum(variance(events))
        for j, (_, column) in enumerate(one.columns):
            values = column()
            columns[p, i, j] = exact_sum(values)
            largest_columns[p, i, j] = _magnitude(values)

    workers.run(add_segment, [(p, i, one) for p, segments in enumerate(divided) for i, one in enumerate(segments)])
    most = (largest.max(axis=0), largest_columns.max(axis=0))
    return EventSums({number: rows}, weight, square, nominal, columns, *most)


def _magnitude(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
