"""Quantiles of features, which depend on the set of rows only, not on their order.

Weights are added as integers, and where a class has very many rows, a hash of a row's values decides whether it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import SUM_BITS, Fixed, Floats
from qbdt.data import Events
from qbdt.errors import DataError
from qbdt.threads import Workers
from qbdt.trees.event_matrices import chunk_matrices, chunk_ranges
from qbdt.trees.kernels.codes import hash_rows

QUANTILE_ROWS = 32768
"""Rows of each class from which quantiles are taken: with 255 bins, 257 rows in each, known to 6 %."""


@dataclass(frozen=True, eq=False)
class QuantileSketch:
    """At most about QUANTILE_ROWS rows of one class, chosen by their values, from which quantiles are taken.

    Sketches of partitions merge into that of all rows, exactly, in any order: a row is in it if its hash is below a
    limit that falls with the number of rows, so a partition keeps every row that all partitions together will.
    """

    # n_rows, largest: number of all rows, and their largest absolute weight
    n_rows: int
    largest: float
    # chosen, hashes: the rows chosen, in pieces, and their hashes; those of weight zero are left out
    chosen: tuple[Events, ...]
    hashes: NDArray[np.uint64]

    @classmethod
    def of(cls, pieces: Sequence[Events], workers: Workers) -> QuantileSketch:
        """Sketch of events; their columns are not copied."""
        n_rows = sum(events.n_rows for events in pieces)
        largest = max((float(np.abs(events.weight).max(initial=0.0)) for events in pieces), default=0.0)
        found = [_choose_rows(events, _hash_limit(n_rows), workers) for events in pieces]
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *(hashes for _, hashes in found)])
        return cls(n_rows, largest, tuple(events for events, _ in found), hashes)

    def copy(self) -> QuantileSketch:
        """Return it with its rows as arrays of their own, which do not keep the other rows in memory."""
        pieces = [
            Events({name: np.array(piece.column(name)) for name in piece.features}, np.array(piece.weight))
            for piece in self.chosen
        ]
        return replace(self, chosen=tuple(pieces))

    def merge(self, other: QuantileSketch) -> QuantileSketch:
        """Sketch of the rows of both."""
        n_rows = self.n_rows + other.n_rows
        hashes = np.concatenate([self.hashes, other.hashes])
        kept = hashes < _hash_limit(n_rows)
        pieces = [*self.chosen, *other.chosen]
        masks = np.split(kept, np.cumsum([piece.n_rows for piece in pieces])[:-1])
        chosen = tuple(piece[mask] for piece, mask in zip(pieces, masks, strict=True))
        merged = QuantileSketch(n_rows, max(self.largest, other.largest), chosen, hashes[kept])
        return merged if kept.all() else merged.copy()

    def column(self, name: str) -> Floats:
        """Values of one feature."""
        return np.concatenate([np.empty(0), *(piece.column(name) for piece in self.chosen)])

    @property
    def weights(self) -> Floats:
        """Weights of the rows chosen."""
        return np.concatenate([np.empty(0), *(piece.weight for piece in self.chosen)])

    def fixed_weights(self) -> Fixed:
        """Absolute weights as integers, whose sums no order of rows changes."""
        if self.largest == 0.0:
            raise DataError("all weights of a class are zero")
        exponent = SUM_BITS - int(np.frexp(self.largest)[1]) - int(np.frexp(float(self.n_rows))[1])
        return np.rint(np.ldexp(np.abs(self.weights), exponent)).astype(np.int64)


def _hash_limit(n_rows: int) -> np.uint64:
    """Limit on the 53-bit hash of a row, such that about QUANTILE_ROWS of so many rows are below it."""
    return np.uint64(2**53 if n_rows <= QUANTILE_ROWS else QUANTILE_ROWS / n_rows * 2**53)


def _choose_rows(events: Events, limit: np.uint64, workers: Workers) -> tuple[Events, NDArray[np.uint64]]:
    """Rows that count, and their hashes."""
    hashes = np.zeros(events.n_rows, dtype=np.uint64)

    def hash_chunk(begin: int, end: int) -> None:
        with np.errstate(over="ignore"):
            for matrix, _, rows in chunk_matrices(events, events.features, begin, end):
                hash_rows(matrix, rows, hashes[begin:end])

    workers.run(hash_chunk, chunk_ranges(events.n_rows))
    hashes >>= np.uint64(11)
    kept = np.flatnonzero((hashes < limit) & (events.weight != 0))
    return events[kept], hashes[kept]


def quantile_edges(values: Floats, weights: Fixed, n_bins: int) -> Floats:
    """Edges half-way between neighbouring values, at equal shares of the weights (class, row), classes counting alike.

    Each class is added up by itself: numpy takes three times as long for two columns at once.
    """
    # Distinct values that are not missing (NaN sorts last), and the weight of both classes up to each.
    order = np.argsort(values)
    ordered = values[order]
    ordered = ordered[: np.searchsorted(ordered, np.nan)]
    if ordered.size == 0:
        return np.empty(0)
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    distinct = ordered[last]
    sums = [np.cumsum(own[order[: ordered.size]])[last] for own in weights]
    # Edges lie above the values that reach 1/n, 2/n, … of the weight; with few values, between all of them.
    if distinct.size > n_bins:
        share = sums[0] / max(sums[0][-1], 1) + sums[1] / max(sums[1][-1], 1)
        targets = share[-1] * np.arange(1, n_bins) / n_bins
        below = np.unique(np.searchsorted(share, targets))
        below = below[below < distinct.size - 1]
    else:
        below = np.arange(distinct.size - 1)
    low, high = distinct[below], distinct[below + 1]
    # Half-way between neighbours; where rounding makes this the lower value, the upper one, since x < edge goes left.
    middle = low + (high - low) / 2
    return np.where(middle > low, middle, high)
