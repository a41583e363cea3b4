"""Rows of the profiled method in the memory of a device; every number is that of the CPU's rows.

`DeviceRatioRows` are what `RatioRows` are, on which F is learnt, `DeviceShiftRows` what `ShiftRows` are, on which the
shifts are: see there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from qbdt.arrays import BINS, Fixed, Floats
from qbdt.data import Events
from qbdt.training.partitions.rows import DevicePartitionRows
from qbdt.training.profile.device_scores import SOURCE, BinnedScores, ScoredRows, add_up_to, run_over
from qbdt.training.profile.segments import ShiftSegment
from qbdt.training.profile.shift_rows import SumScales, SumSlots, sum_products
from qbdt.trees import Binning
from qbdt.trees.device import Device, DeviceArray, DeviceMemory
from qbdt.trees.rows import Segment, Side

MOST_SLOTS = 32
"""Sums over a leaf that are found in one pass, as in residuals.cu."""

THREADS = 256


class DevicePairRows(DevicePartitionRows):
    """Binned rows with a numerator and a denominator; the first `n_trained` segments are trained on."""

    constant = DevicePartitionRows.constant | {"_pair_bases"}

    def __init__(self, segments: Sequence[Segment], binning: Binning, n_trained: int, memory: DeviceMemory) -> None:
        super().__init__(segments, binning, memory)
        device = self.device
        self.histogram_size = 2 * self.layout.n_features * BINS
        self._residuals = device.compile(SOURCE)
        self._n_trained = n_trained
        self._trained = self.layout.whole[:n_trained]
        self._pairs = device.zeros(2 * int(self._trained[-1, 2]), np.int64)
        bases = np.where(np.arange(self.layout.n_segments) < n_trained, 0, -1)
        self._pair_bases = device.upload(bases.astype(np.int64))

    @abstractmethod
    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], draw: Draw) -> None:
        """Write the pairs of a trained segment."""

    def begin_tree(self, scales: tuple[float, float], seed: int, threshold: int) -> None:
        """Fix the pairs of the next tree; node 0 holds all rows."""
        for segment, low, high in self._trained.tolist():
            position = int(self.layout.firsts[segment])
            draw = (np.int64(seed), np.int64(threshold), np.int64(position), self._pairs[2 * low :])
            if high > low:
                self._fill_pairs(segment, low, high, scales, draw)
        self._gather_rows()

    def histogram(self, node: int) -> Fixed:
        """Sums of the pairs of a node's trained rows, as (feature, bin, pair)."""
        out = self.device.zeros(self.histogram_size, np.int64)
        for leaf in self._undivided(node):
            self.fill_histogram(self.number(leaf), out)
        return self.device.download(out)

    def fill_histogram(self, node: DeviceArray, out: DeviceArray, node_step: int = 0) -> None:
        """Add a node's histogram to `out`; that of node i from i × `node_step` on."""
        self._fill(2, node, self._pairs, self._pair_bases, out, node_step)

    def _over(self, n: int, name: str, *arguments: DeviceArray) -> None:
        """Run a kernel over n rows."""
        run_over(self.device, n, name, *arguments)

    def _leaves(self, leaves: Sequence[int]) -> tuple[DeviceArray, ...]:
        """Return the arguments that say where the rows of leaves are."""
        chosen = self.device.upload(np.array(leaves, dtype=np.int32))
        return np.int32(self.layout.n_segments), chosen, *self._places

    def _over_leaves(self, n_leaves: int, name: str, *arguments: DeviceArray) -> None:
        """Run a kernel over the rows of all leaves, of one segment."""
        shared = THREADS * np.dtype(np.uint64).itemsize
        self._residuals.launch(name, (self.device.n_units, n_leaves, 1), arguments, shared, THREADS)


Draw = tuple[np.int64, np.int64, np.int64, DeviceArray]
"""Seed, threshold and first position of a draw of rows, and where their pairs go."""


class DeviceRatioRows(DevicePairRows):
    """Nominal rows with weights, and F so far: see `RatioRows`."""

    constant = DevicePairRows.constant | {"_weight", "_held_weight"}

    def __init__(
        self,
        trained: Sequence[Segment],
        held: Sequence[ShiftSegment],
        binning: Binning,
        factors: Sequence[float],
        scale: float,
        memory: DeviceMemory,
    ) -> None:
        segments = [*trained, *(one.segment for one in held)]
        super().__init__(segments, binning, len(trained), memory)
        device = self.device
        weights = [segment.events.weight * factors[segment.side] for segment in trained]
        self._weight = device.upload(np.concatenate(weights))
        self._log_ratio = device.zeros(self.layout.n_rows, np.float64)
        self._n_weights = int(self._trained[-1, 2])
        self._total = device.zeros(self.layout.n_rows - self._n_weights, np.float64)
        self._held_weight = device.upload(np.concatenate([one.segment.events.weight for one in held]))
        self._held = held
        self._scale = scale

    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], draw: Draw) -> None:
        is_signal = np.int32(self.layout.sides[segment] is Side.SIGNAL)
        rows = (self._weight[low:], self._log_ratio[low:], is_signal, np.int64(high - low))
        self._over(high - low, "logistic_pairs", *rows, np.float64(scales[0]), np.float64(scales[1]), *draw)

    def add(self, leaves: Sequence[int], outputs: Floats) -> None:
        """Add one output per leaf to F."""
        places, given = self._leaves(leaves), self.device.upload(np.array(outputs, dtype=np.float64))
        for segment in range(self.layout.n_segments):
            arguments = (*places, np.int32(segment), np.int64(0), np.int32(1), given, self._log_ratio)
            self._over_leaves(len(leaves), "add_outputs", *arguments)
        n_held = self.layout.n_rows - self._n_weights
        self._over(n_held, "add_values", np.int64(n_held), self._log_ratio[self._n_weights :], self._total)

    def yields(self, leaves: Sequence[int], scale: float) -> Fixed:
        """Sums of the weights of trained rows as (leaf, side), in units."""
        sums = self.device.zeros(len(leaves) * len(Side), np.int64)
        places, scales = self._leaves(leaves), self.device.upload(np.array([scale]))
        nothing, none = self._weight, np.int32(0)
        for segment in range(self._n_trained):
            arrays = (np.int32(segment), np.int64(0), self._weight, nothing, nothing, nothing, none, none, none)
            out = sums[int(self.layout.sides[segment]) :]
            sent = (*places, *arrays, none, np.int32(1), scales, np.int64(len(Side)), out)
            self._over_leaves(len(leaves), "sum_leaves", *sent)
        return self.device.download(sums).reshape(len(leaves), len(Side))

    def signal_up_to(self, keys: Fixed) -> Fixed:
        """Absolute signal held out up to some keys, see `ScoreRows`."""
        held = zip(self._held, self._held_ranges(), strict=True)
        arrays = ((self._total[low:], self._held_weight[low:], n) for one, (low, n) in held if one.is_signal)
        return add_up_to(self.device, (ScoredRows(*one, self._scale) for one in arrays), keys[0])[None]

    def fill(self, edges: Floats) -> Fixed:
        """Exact sums over rows held out, see `ScoreRows`: weights of each segment, then their squares."""
        found = BinnedScores(self.device, 2 * len(self._held), edges[0])
        for i, (low, n) in enumerate(self._held_ranges()):
            for square in (0, 1):
                number = square * len(self._held) + i
                found.add(number, self._total[low:], self._held_weight[low:], n, squared=bool(square))
        return found.sums()[None]

    def _held_ranges(self) -> list[tuple[int, int]]:
        """First row and number of rows of each segment held out, counted from the first."""
        whole = self.layout.whole[self._n_trained :] - self._n_weights
        return [(int(low), int(high - low)) for _, low, high in whole]


class _Nominal:
    """State of one nominal segment: f_k so far, r₀ of each strength, and shifts given row by row."""

    constant: ClassVar[frozenset[str]] = frozenset({"columns", "ratio"})

    def __init__(self, segment: ShiftSegment, n_sources: int, ratio: Floats, device: Device) -> None:
        n_rows, n_columns = segment.segment.events.n_rows, len(segment.columns)
        self.columns = device.zeros(n_rows * n_columns, np.float64)
        for j, (_, column) in enumerate(segment.columns if n_rows else ()):
            given = (np.int64(n_rows), np.int32(n_columns), np.int32(j), device.upload(column()), self.columns)
            device.compile(SOURCE).launch("place_column", (4 * device.n_units, 1, 1), given)
        self.current = device.zeros(n_rows * n_sources, np.float64)
        self.ratio = device.upload(np.ascontiguousarray(ratio.T).ravel())
        self.sources = [source for source, _ in segment.columns]


class DeviceShiftRows(DevicePairRows):
    """Rows of all processes and variations, with their shifts and the f_k so far: see `ShiftRows`."""

    constant = DevicePairRows.constant | {"_weight"}

    def __init__(
        self,
        trained: Sequence[ShiftSegment],
        held: Sequence[ShiftSegment],
        binning: Binning,
        means: Floats,
        shares: Callable[[Events], Floats],
        n_ratios: int,
        memory: DeviceMemory,
    ) -> None:
        segments = [*trained, *held]
        super().__init__([one.segment for one in segments], binning, len(trained), memory)
        device = self.device
        self.n_sources, self._n_ratios = len(means), n_ratios
        self._means = np.array(means)
        self._factors = [one.factors for one in segments]
        self._weight = device.upload(np.concatenate([one.segment.events.weight for one in segments]))
        self._gram, self._nominal = self._load_nominal(segments, shares)
        self._coefficients: Floats = np.zeros(self.n_sources)

    def _load_nominal(
        self, segments: Sequence[ShiftSegment], shares: Callable[[Events], Floats]
    ) -> tuple[Fixed, dict[int, _Nominal]]:
        """State of nominal segments, and the exact sums of n f g over those held out, see `gram`."""
        products, nominal = [], {}
        for i, one in enumerate(segments):
            if not one.segment.nominal:
                continue
            ratio = np.zeros((self._n_ratios, one.segment.events.n_rows))
            if i >= self._n_trained:
                ratio = shares(one.segment.events)
                products.append(sum_products(one.segment.events, ratio))
            nominal[i] = _Nominal(one, self.n_sources, ratio, self.device)
        return np.asarray(np.sum(products, axis=0)), nominal

    @property
    def holders(self) -> Sequence[Any]:
        """These rows, and their nominal segments."""
        return (self, *self._nominal.values())

    def gram(self) -> Fixed:
        """Exact sums of n f g over held-out rows, for pairs f, g of each r₀ and 1, as `ShiftRows.gram`."""
        return self._gram

    def direct(self, coefficients: Floats) -> None:
        """Let the next trees fit Σ_k c_k r_k."""
        self._coefficients = np.array(coefficients)

    def _fill_pairs(self, segment: int, low: int, high: int, scales: tuple[float, float], draw: Draw) -> None:
        common = float(self._factors[segment] @ self._coefficients)
        weight, n = self._weight[low:], np.int64(high - low)
        if segment not in self._nominal:
            self._over(int(n), "varied_pairs", weight, n, np.float64(common * scales[0]), *draw)
            return
        state = self._nominal[segment]
        chosen = self.device.upload(np.concatenate([self._coefficients[state.sources], self._coefficients]))
        mean = np.float64(float(self._means @ self._coefficients))
        rows = (weight, state.columns, state.current, np.float64(common))
        sizes = (np.int32(len(state.sources)), np.int32(self.n_sources), chosen, mean, n)
        self._over(int(n), "shift_pairs", *rows, *sizes, np.float64(scales[0]), np.float64(scales[1]), *draw)

    def sums(self, leaves: Sequence[int], scales: SumScales) -> Fixed:
        """Sums over the rows of each leaf, in units, as `SumSlots.pack` has them."""
        n_segments = self.layout.n_segments
        n_columns = max(len(state.sources) for state in self._nominal.values())
        slots = SumSlots(self.n_sources, n_columns, self._n_ratios)
        size = slots.columns.stop
        totals, places = self.device.zeros(len(leaves) * n_segments * size, np.int64), self._leaves(leaves)
        for segment, low, high in self.layout.whole.tolist():
            if high > low:
                self._sum_segment(
                    segment, low, len(leaves), places, scales, n_segments * size, totals[segment * size :]
                )
        found = self.device.download(totals).reshape(len(leaves), n_segments, size)
        return slots.pack(found, list(self._nominal))

    def _sum_segment(
        self,
        segment: int,
        low: int,
        n_leaves: int,
        places: tuple[DeviceArray, ...],
        scales: SumScales,
        step: int,
        out: DeviceArray,
    ) -> None:
        state, weight = self._nominal.get(segment), self._weight[low:]
        if state is None:
            given, n_slots, n_columns = scales.first[:1], 1, 0
            arrays: tuple[DeviceArray, ...] = (weight, weight, weight, weight)
        else:
            columns = scales.columns[segment % self._n_trained]
            given = np.concatenate([scales.first, scales.fitted, columns])
            n_slots, n_columns = len(given), len(state.sources)
            arrays = (weight, state.ratio, state.current, state.columns)
        of_slots = self.device.upload(np.array(given, dtype=np.float64))
        sizes = (np.int32(self._n_ratios), np.int32(self.n_sources), np.int32(n_columns))
        rows = (*places, np.int32(segment), np.int64(low), *arrays, *sizes)
        for first in range(0, n_slots, MOST_SLOTS):
            chosen = (np.int32(first), np.int32(n_slots), of_slots, np.int64(step), out)
            self._over_leaves(n_leaves, "sum_leaves", *rows, *chosen)

    def add(self, leaves: Sequence[int], outputs: Floats) -> None:
        """Add one output per leaf and source to the f_k."""
        places, given = self._leaves(leaves), self.device.upload(np.array(outputs, dtype=np.float64).ravel())
        for segment, state in self._nominal.items():
            start, width = np.int64(self.layout.starts[segment]), np.int32(self.n_sources)
            arguments = (*places, np.int32(segment), start, width, given, state.current)
            self._over_leaves(len(leaves), "add_outputs", *arguments)
