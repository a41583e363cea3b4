"""`DeviceWeightedRows`: rows with the paper's weights in the memory of a device; every number is that of the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from qbdt.arrays import BINS, FEATURES_PER_WORD, SUM_BITS, Fixed, Floats, Indices
from qbdt.training.kernels.weights import ALL_ROWS
from qbdt.training.partitions.rows import DevicePartitionRows
from qbdt.trees import Binning
from qbdt.trees.device import QUAD, THREADS, DeviceArray, DeviceMemory
from qbdt.trees.rows import Segment, Side

SOURCE = Path(__file__).parents[1] / "kernels" / "weights.cu"

PLANE = 8
"""Columns that a block adds up: see `Layout.place`."""


class DeviceWeightedRows(DevicePartitionRows):
    """What `WeightedRows` are in ordinary memory: see there."""

    constant = DevicePartitionRows.constant | {
        *("_extra_floats", "_sides", "_nominal_bases", "_varied_bases", "_growth_offsets"),
        *("_starts", "_offsets", "_widths", "_bases"),
    }

    def __init__(self, segments: Sequence[Segment], binning: Binning, memory: DeviceMemory) -> None:
        super().__init__(segments, binning, memory)
        layout, device = self.layout, self.device
        self.histogram_size = layout.histogram_size
        self._weights = device.compile(SOURCE)
        self._floats = device.upload(np.concatenate([segment.events.weight for segment in segments]).astype(np.float64))
        self._fixed = device.zeros(layout.n_rows, np.int64)
        self._growth = device.upload(np.ones(layout.growth_size))
        self._largest: Floats = np.zeros(2)
        self._found: Floats = np.zeros(2)
        self._extra_floats, self._columns = self._load_columns(segments)
        self._sides = device.upload(np.array(layout.sides, dtype=np.int32))
        nominal = np.arange(layout.n_segments) < layout.n_nominal
        bases = np.where(nominal, np.arange(layout.n_segments) * layout.n_features * BINS, -1)
        self._nominal_bases = device.upload(bases.astype(np.int64))
        self._varied_bases = device.upload(np.where(nominal, -1, layout.systematic_bases).astype(np.int64))
        growth_offsets = np.where(layout.boosted > 0, layout.growth_offsets, -1)
        self._growth_offsets = device.upload(growth_offsets.astype(np.int64))
        self._starts, self._offsets, self._widths, self._bases = (
            device.upload(array)
            for array in (layout.starts, layout.extra_offsets, layout.widths, layout.systematic_bases)
        )

    def _load_columns(self, segments: Sequence[Segment]) -> tuple[DeviceArray, DeviceArray]:
        """Further columns of nominal rows as loaded: floats that boosting changes, and integers."""
        layout = self.layout
        floats, columns = np.zeros(layout.boosted_size), np.zeros(layout.extra_size, dtype=np.int32)
        for j, segment in enumerate(segments):
            n, extras = segment.events.n_rows, segment.extras
            n_boosted, width = len(extras.boosted), extras.width
            own = floats[layout.boosted_offsets[j] :][: n * n_boosted].reshape(n, n_boosted)
            for c, change in enumerate(extras.boosted):
                own[:, c] = change()
                self._largest[0] = max(self._largest[0], float(np.abs(own[:, c]).max(initial=0.0)))
            integers = columns[layout.extra_offsets[j] :][: n * width].reshape(n, width)
            for c, values in enumerate(extras.static):
                integers[:, extras.size - len(extras.static) + c] = values()
            if extras.square:
                self._largest[1] = max(self._largest[1], float(np.abs(segment.events.weight).max(initial=0.0)))
        return self.device.upload(floats), self.device.upload(columns)

    def histogram(self, node: int) -> Fixed:
        """Sums of weights of a node's nominal rows for every feature and bin: `Layout.place` says where."""
        out = self.device.zeros(self.layout.histogram_size, np.int64)
        self.fill_histogram(self.number(node), out)
        return self.device.download(out)

    def fill_histogram(self, node: DeviceArray, out: DeviceArray, node_step: int = 0) -> None:
        """Add a node's nominal histogram to `out`; that of node i from i × `node_step` on."""
        self._fill(1, node, self._fixed, self._nominal_bases, out, node_step)

    def systematic_histograms(self, node: int, words: Indices) -> Fixed:
        """Sums of all other weights of a node for some words, one row each: `Layout.place` says where."""
        out = self.device.zeros(len(words) * self.layout.systematic_size, np.int64)
        for leaf in self._undivided(node):
            self._add_systematics(self.number(leaf), words, out)
        return self.device.download(out).reshape(len(words), -1)

    def _add_systematics(self, node: DeviceArray, words: Indices, out: DeviceArray) -> None:
        layout, size = self.layout, self.layout.systematic_size
        if layout.n_segments > layout.n_nominal:
            firsts = self.device.upload(np.array(words, dtype=np.int32) * FEATURES_PER_WORD)
            self._fill_groups(1, FEATURES_PER_WORD // QUAD, firsts, node, self._fixed, self._varied_bases, out, size)
        if layout.extra_size:
            chosen = self.device.upload(np.array(words, dtype=np.int32))
            rows = (self._codes, np.int32(self._groups.stride), node, np.int32(layout.n_segments), *self._places)
            extras = (self._columns, self._starts, self._offsets, self._widths, self._bases)
            shared = 2 * PLANE * FEATURES_PER_WORD * BINS * np.dtype(np.uint32).itemsize
            planes = -(-int(layout.widths.max()) // PLANE)
            arguments = (*rows, *extras, chosen, np.int64(size), out)
            self._kernels.launch("add_columns", (self.device.n_units, len(words), planes), arguments, shared, THREADS)

    def multiply(self, leaves: Sequence[int], factors: Floats) -> None:
        """Multiply the weights of each leaf's rows by its factors (one row per leaf: signal, background)."""
        chosen = self.device.upload(np.array(leaves, dtype=np.int32))
        given = self.device.upload(np.array(factors, dtype=np.float64).ravel())
        nodes = (np.int32(self.layout.n_segments), chosen, *self._places, self._sides, given)
        arguments = (*nodes, self._starts, self._growth_offsets, self._floats, self._growth)
        self._weights.launch("boost_rows", (2 * self.device.n_units, len(leaves), 1), arguments)

    def count_weights(self) -> Fixed:
        """Return how many rows each side has."""
        sizes = self.layout.whole[:, 2] - self.layout.whole[:, 1]
        return np.bincount(self.layout.sides, sizes, minlength=len(Side)).astype(np.int64)

    def largest_weights(self) -> Floats:
        """Return the largest absolute weight of each side."""
        found = self.device.zeros(len(Side), np.uint64)
        for j, low, high in self.layout.whole:
            self._over(
                high - low, "find_largest", self._floats[low:], np.int64(high - low), found[self.layout.sides[j] :]
            )
        return self.device.download(found).view(np.float64)

    def largest_columns(self) -> Floats:
        """Return the largest further column, and the largest weight whose square is one, as loaded."""
        return self._largest

    def largest_quantised(self) -> Floats:
        """Return the largest column and the largest square of this tree, in units."""
        return self._found

    def rescale(self, factors: Floats) -> None:
        """Multiply all weights of each side by a power of two."""
        for j, low, high in self.layout.whole:
            n, factor = int(high - low), np.float64(factors[self.layout.sides[j]])
            self._over(n, "rescale", self._floats[low:], np.int64(n), factor)
            if self.layout.boosted[j]:
                self._over(n, "rescale", self._growth[self.layout.growth_offsets[j] :], np.int64(n), factor)

    def quantise(self, units: tuple[float, float], seed: int, threshold: int) -> Fixed:
        """Begin a tree: fixed point of all weights and further columns, and node 0 holds all rows.

        See `WeightedRows.quantise`.
        """
        found = self.device.zeros(len(Side) + 2, np.uint64)  # sums of both sides, the largest column, and square
        for j, low, high in self.layout.whole:
            self._quantise_segment(j, int(low), int(high), units, (seed, threshold), found)
        self._gather_rows()
        sums = self.device.download(found).astype(np.int64)
        self._found = sums[len(Side) :].astype(np.float64)
        return np.asarray(sums[: len(Side)])

    def _quantise_segment(
        self, j: int, low: int, high: int, units: tuple[float, float], draw: tuple[int, int], found: DeviceArray
    ) -> None:
        layout, n = self.layout, high - low
        floats, rows = self._floats[low:high], np.int64(n)
        seed, threshold = (np.int64(one) for one in draw)
        position = np.int64(layout.firsts[j])
        sent = (floats, rows, np.float64(math.ldexp(1.0, SUM_BITS)), seed, threshold, position)
        self._over(n, "quantise_weights", *sent, self._fixed[low:], found[layout.sides[j] :])
        n_boosted, width, square = int(layout.boosted[j]), np.int32(layout.widths[j]), layout.squares[j]
        columns = self._columns[layout.extra_offsets[j] :]
        if n_boosted:
            initial, growth = self._extra_floats[layout.boosted_offsets[j] :], self._growth[layout.growth_offsets[j] :]
            given = (initial, growth, rows, np.int32(n_boosted), width, np.float64(1 / units[0]))
            self._over(n, "quantise_columns", *given, columns, found[len(Side) :])
        if square:
            squared = (floats, rows, width, np.int32(n_boosted), np.float64(1 / units[1]))
            self._over(n, "quantise_squares", *squared, columns, found[len(Side) + 1 :])
        if draw[1] != ALL_ROWS and n_boosted + square:
            self._over(n, "drop_columns", columns, rows, width, np.int32(n_boosted + square), seed, threshold, position)

    def _over(self, n: int, name: str, *arguments: DeviceArray) -> None:
        """Run a kernel over n rows."""
        if n:
            threads = 512
            blocks = min(4 * self.device.n_units, -(-int(n) // threads))
            self._weights.launch(name, (blocks, 1, 1), arguments, threads * np.dtype(np.uint64).itemsize, threads)
