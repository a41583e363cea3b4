"""Held-out events with their scores on a device: `DeviceScoreRows` are what `ScoreRows` are, see there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.training.profile.score_rows import ScoredSegment, ScoreSlots
from qbdt.training.profile.segments import ShiftSegment
from qbdt.trees.device import Device, DeviceArray
from qbdt.trees.kernels import LIMBS

SOURCE = Path(__file__).parents[1] / "kernels" / "residuals.cu"

THREADS = 256


def run_over(device: Device, n: int, name: str, *arguments: DeviceArray) -> None:
    """Run a kernel over n rows."""
    blocks = max(1, min(8 * device.n_units, -(-n // THREADS)))
    device.compile(SOURCE).launch(name, (blocks, 1, 1), arguments, threads=THREADS)


class ScoredRows(NamedTuple):
    """Scores of some rows, their weights, how many there are, and the scale that rounds absolute weights."""

    scores: DeviceArray
    weight: DeviceArray
    n_rows: int
    scale: float


def add_up_to(device: Device, rows: Iterable[ScoredRows], keys: Fixed) -> Fixed:
    """Sums of the absolute weights of rows with a score of at most each of some keys, in units."""
    order = np.argsort(keys, kind="stable")
    sums, given = device.zeros(len(keys) + 1, np.uint64), device.upload(keys[order])
    for one in rows:
        if one.n_rows:
            sent = (one.scores, one.weight, np.int64(one.n_rows), np.float64(one.scale))
            run_over(device, one.n_rows, "sum_up_to", *sent, given, np.int32(len(keys)), sums)
    found = np.empty_like(keys)
    found[order] = np.cumsum(device.download(sums).astype(np.int64)[:-1])
    return found


class BinnedScores:
    """Exact sums of weights in the bins of a score between edges, as (what is summed, bin, limb)."""

    def __init__(self, device: Device, size: int, edges: Floats) -> None:
        self._device, self._edges = device, device.upload(edges)
        self._shape = (size, len(edges) + 1, LIMBS)
        self._sums = device.zeros(size * (len(edges) + 1) * LIMBS, np.uint64)

    def add(self, number: int, scores: DeviceArray, weight: DeviceArray, n_rows: int, squared: bool = False) -> None:
        """Add the weights of rows, or their squares, to one of the sums."""
        if n_rows:
            _, n_bins, _ = self._shape
            own, shared = self._sums[number * n_bins * LIMBS :], 2 * n_bins * LIMBS * np.dtype(np.uint32).itemsize
            sent = (scores, weight, np.int64(n_rows), np.int32(squared), self._edges, np.int32(n_bins - 1), own)
            blocks = (self._device.n_units, 1, 1)
            self._device.compile(SOURCE).launch("sum_exactly", blocks, sent, shared, THREADS)

    def sums(self) -> Fixed:
        """Return the sums, in ordinary memory."""
        return self._device.download(self._sums).astype(np.int64).reshape(self._shape)


class _Scored(NamedTuple):
    """Rows of one segment on the device: r, g, weights, then shifts given row by row."""

    number: int
    nominal: bool
    n_rows: int
    ratio: DeviceArray
    shift: DeviceArray
    weights: tuple[DeviceArray, ...]


class DeviceScoreRows:
    """Scored rows on a device."""

    def __init__(
        self,
        scored: Iterable[ScoredSegment],
        segments: Sequence[ShiftSegment],
        shares: Sequence[float],
        scale: float,
        device: Device,
        factors: Mapping[int, float] | None = None,
    ) -> None:
        self._shares, self._device = shares, device
        self._slots = ScoreSlots(segments)
        self._scales = {i: factor * scale for i, factor in self._slots.signal_factors(factors).items()}
        self._segments = [self._load(one) for one in scored]
        self._scores = device.zeros(max(one.n_rows for one in self._segments), np.float64)

    def _load(self, one: ScoredSegment) -> _Scored:
        events, upload = one.segment.segment.events, self._device.upload
        weights = (upload(events.weight), *(upload(column()) for _, column in one.segment.columns))
        nominal = one.segment.segment.nominal
        return _Scored(one.number, nominal, events.n_rows, upload(one.ratio), upload(one.shift), weights)

    def _score(self, one: _Scored, share: float) -> DeviceArray:
        """R − a g of the rows of one segment, in memory that the next one reuses."""
        run_over(
            self._device,
            one.n_rows,
            "join_terms",
            *(np.int64(one.n_rows), one.ratio, one.shift, np.float64(share), self._scores),
        )
        return self._scores

    def signal_up_to(self, keys: Fixed) -> Fixed:
        """Absolute signal, in units, with a score of at most each of some keys, as (share, key)."""
        return np.stack([self._sum_up_to(*one) for one in zip(self._shares, keys, strict=True)])

    def _sum_up_to(self, share: float, keys: Fixed) -> Fixed:
        signal = (one for one in self._segments if one.number in self._scales)
        rows = (ScoredRows(self._score(o, share), o.weights[0], o.n_rows, self._scales[o.number]) for o in signal)
        return add_up_to(self._device, rows, keys)

    def fill(self, edges: Floats) -> Fixed:
        """Exact sums in the bins between edges (share, edge), as (share, what is summed, bin, limb)."""
        return np.stack([self._fill(*one) for one in zip(self._shares, edges, strict=True)])

    def _fill(self, share: float, edges: Floats) -> Fixed:
        found = BinnedScores(self._device, self._slots.size, edges)
        for one in self._segments:
            scores, (weight, *columns) = self._score(one, share), one.weights
            found.add(one.number, scores, weight, one.n_rows)
            if one.nominal:
                first = self._slots.first_of(one.number)
                found.add(first, scores, weight, one.n_rows, squared=True)
                for j, column in enumerate(columns):
                    found.add(first + 1 + j, scores, column, one.n_rows)
        return found.sums()
