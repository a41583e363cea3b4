"""Bin codes of rows, and the node that each row is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qbdt.arrays import FEATURES_PER_WORD, Codes, Fixed, Floats, Indices, Rows, Words
from qbdt.threads import LIGHT_ROWS_PER_SHARE, Workers, group_ranges, share_ranges
from qbdt.trees.binning import Binning
from qbdt.trees.kernels.lanes import aligned_zeros
from qbdt.trees.kernels.node_division import copy_divided, divide_in_place, divide_rows
from qbdt.trees.rows.layout import Layout, Segment

Memory: TypeAlias = Callable[[str, int, DTypeLike], NDArray[Any]]
"""Gives an array with a name, a size and a type, filled with zeros: in memory or elsewhere."""


def in_memory(name: str, size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an ordinary array, which starts with a cache line."""
    array: NDArray[Any] = aligned_zeros((size,), dtype)
    return array


def copy_values(values: Floats, name: str, memory: Memory) -> Floats:
    """Return an array of the same numbers, in a memory."""
    array: Floats = memory(name, len(values), np.float64)
    array[:] = values
    return array


class BinnedRows:
    """Bin codes of the rows of some segments, in a memory, and the nodes that they are in."""

    def __init__(
        self, segments: Sequence[Segment], binning: Binning, workers: Workers, memory: Memory = in_memory
    ) -> None:
        self.layout = Layout(segments, len(binning.features))
        self._workers = workers
        self._words = _encode(segments, self.layout, binning, workers, memory)
        self._rows: Rows = memory("rows", self.layout.n_rows, np.int32)
        self._scratch: Rows = memory("scratch", self.layout.n_rows, np.int32)
        self._nodes: list[Indices] = []

    def _gather_rows(self) -> None:
        """Begin a tree: node 0 holds all rows."""
        self._nodes = [self.layout.whole]

    def size(self, node: int) -> int:
        """Number of rows in a node."""
        ranges = self._nodes[node]
        return int((ranges[:, 2] - ranges[:, 1]).sum())

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node's rows; `goes_right` is 1 for each code that goes right. Returns the two new nodes."""
        ranges = self._nodes[node]
        shares = share_ranges(ranges, self._workers.n_threads, LIGHT_ROWS_PER_SHARE)
        table = np.array(goes_right)  # it is read-only where it was received over the network
        groups = group_ranges(ranges, len(shares))
        if groups is not None:  # in place, which takes fewer passes over memory
            codes, step = self._codes_of(feature)
            given = (codes, step, table, self._rows, node == 0)
            found = self._workers.run(divide_in_place, [(*given, ranges[group], self._scratch) for group in groups])
            middle = np.empty(len(ranges), np.int64)
            middle[np.concatenate(groups)] = np.concatenate(found)
        else:
            middle = self._divide_shared(ranges, shares, (self._words, feature, table, self._rows, node == 0))
        left, right = ranges.copy(), ranges.copy()
        left[:, 2], right[:, 1] = middle, middle
        self._nodes += [left, right]
        return len(self._nodes) - 2, len(self._nodes) - 1

    def _codes_of(self, feature: int) -> tuple[Codes, int]:
        """Codes that begin with that of a feature of row 0, and how far those of the next rows are apart."""
        word, place = divmod(feature, FEATURES_PER_WORD)
        return self._words[word].view(np.uint8)[place:], FEATURES_PER_WORD

    def _divide_shared(self, ranges: Indices, shares: Sequence[Indices], arguments: tuple[Any, ...]) -> Indices:
        """Divide a node by several threads; return where the right rows begin in each range."""
        counts = self._workers.run(divide_rows, [(*arguments, share, self._scratch) for share in shares])
        labels = np.concatenate([share[:, 0] for share in shares])
        n_left = np.bincount(labels, np.concatenate(counts), minlength=self.layout.n_segments).astype(np.int64)
        middle: Indices = ranges[:, 1] + n_left[ranges[:, 0]]
        copies = [
            (self._scratch, share, count, left, right, self._rows)
            for share, count, left, right in _targets(ranges, middle, shares, counts)
        ]
        self._workers.run(copy_divided, copies)
        return middle


def sum_shares(histograms: Fixed) -> Fixed:
    """Sum of the histograms of all shares of rows, in the memory of the first."""
    total: Fixed = histograms[0]
    for histogram in histograms[1:]:
        total += histogram
    return total


def _encode(segments: Sequence[Segment], layout: Layout, binning: Binning, workers: Workers, memory: Memory) -> Words:
    n_words = -(-layout.n_features // FEATURES_PER_WORD)
    words: Words = memory("words", n_words * layout.n_rows, np.uint64).reshape(n_words, layout.n_rows)
    codes: Codes = words.view(np.uint8).reshape(n_words, layout.n_rows, FEATURES_PER_WORD)
    for segment, start in zip(segments, layout.starts, strict=True):
        binning.encode(segment.events, codes, int(start), workers)
    return words


def _targets(
    ranges: Indices, middle: Indices, shares: Sequence[Indices], counts: Sequence[Indices]
) -> Iterator[tuple[Indices, Indices, Indices, Indices]]:
    """For each share: itself, its counts of left rows, and where its left and right rows go."""
    left = {int(segment): int(begin) for segment, begin, _ in ranges}
    right = {int(segment): int(at) for segment, at in zip(ranges[:, 0], middle, strict=True)}
    for share, count in zip(shares, counts, strict=True):
        lefts, rights = np.empty_like(count), np.empty_like(count)
        for p, (segment, begin, end) in enumerate(share):
            lefts[p], rights[p] = left[segment], right[segment]
            left[segment] += count[p]
            right[segment] += end - begin - count[p]
        yield share, count, lefts, rights
