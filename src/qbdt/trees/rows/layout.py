"""Segments of rows, their weight columns, and where each of them lies in the flat arrays that kernels read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from qbdt.arrays import BINS, FEATURES_PER_WORD, Columns, Floats, Indices
from qbdt.data import Events
from qbdt.errors import DataError
from qbdt.trees.kernels.histogram import PLANE
from qbdt.trees.kernels.lanes import LANES


class Side(IntEnum):
    """Which boosting factor a segment's rows get."""

    SIGNAL = 0
    BACKGROUND = 1


@dataclass(frozen=True, eq=False)
class Extras:
    """Further weight columns of nominal rows, made when they are loaded.

    In this order: `boosted` ones, which are multiplied by the leaves' factors as the row's own weight is; its square;
    `static` integers, which boosting leaves alone.
    """

    boosted: tuple[Callable[[], Floats], ...] = ()
    square: bool = False
    static: tuple[Callable[[], Columns], ...] = ()

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.boosted) + self.square + len(self.static)

    @property
    def width(self) -> int:
        """Columns in memory: a multiple of how many the kernel adds at once."""
        return -(-self.size // LANES) * LANES


@dataclass(frozen=True, eq=False)
class Segment:
    """Rows that share a channel: the signal, one background process, or one process under one variation.

    `first` is the position of its first row among all rows of the channel, where other stores hold the rows before.
    """

    name: str
    side: Side
    events: Events
    nominal: bool = True
    extras: Extras = Extras()
    first: int = 0


class Channel(NamedTuple):
    """One weight of the rows of a segment, which a histogram sums: their own (column None), or a further column.

    `sign` is the one it has in the quantity that it belongs to.
    """

    segment: int
    column: int | None = None
    sign: int = 1


class Layout:
    """Positions of segments, nominal ones first, in the arrays of rows, weights and histograms; it keeps no events."""

    def __init__(self, segments: Sequence[Segment], n_features: int) -> None:
        self.n_segments = len(segments)
        self.n_features = n_features
        self.sides = tuple(segment.side for segment in segments)
        self.squares = tuple(segment.extras.square for segment in segments)
        self.n_nominal = sum(segment.nominal for segment in segments)
        rows = np.array([segment.events.n_rows for segment in segments], dtype=np.int64)
        self.starts, self.n_rows = _sum_before(rows)
        self.firsts: Indices = np.array([segment.first for segment in segments], dtype=np.int64)
        self.widths: Indices = np.array([segment.extras.width for segment in segments], dtype=np.int64)
        self.boosted: Indices = np.array([len(segment.extras.boosted) for segment in segments], dtype=np.int64)
        self.extra_offsets, self.extra_size = _sum_before(rows * self.widths)
        self.boosted_offsets, self.boosted_size = _sum_before(rows * self.boosted)
        self.growth_offsets, self.growth_size = _sum_before(rows * (self.boosted > 0))
        sizes = [FEATURES_PER_WORD * BINS * (s.extras.width if s.nominal else 1) for s in segments]
        self.systematic_bases, self.systematic_size = _sum_before(np.array(sizes, dtype=np.int64))
        self.histogram_size = self.n_nominal * n_features * BINS
        if self.n_rows > np.iinfo(np.int32).max:
            raise DataError(f"{self.n_rows} rows: one training takes at most 2^31 − 1, variations included")

    @cached_property
    def whole(self) -> Indices:
        """All rows, as ranges (segment, begin, end)."""
        ends = np.append(self.starts[1:], self.n_rows)
        return np.column_stack([np.arange(self.n_segments), self.starts, ends]).astype(np.int64)

    def place(self, channel: Channel) -> tuple[bool, int, int]:
        """Bins of a channel: whether they are in the systematic histogram of a word, the first bin, their distance."""
        segment, column = channel.segment, channel.column
        if column is None and segment < self.n_nominal:
            # Nominal histogram: (segment, feature, bin).
            return False, segment * self.n_features * BINS, 1
        # Systematic histogram of a word: segment by segment, columns in planes of PLANE (the last may be narrower),
        # each as (feature in word, bin, column of the plane). Rows of a variation have one weight: a plane of one.
        column = column or 0
        first = column - column % PLANE
        base = int(self.systematic_bases[segment]) + FEATURES_PER_WORD * BINS * first + column % PLANE
        return True, base, min(PLANE, max(1, int(self.widths[segment]) - first))


def _sum_before(sizes: Indices) -> tuple[Indices, int]:
    ends = np.cumsum(sizes)
    return (ends - sizes).astype(np.int64), int(ends[-1])
