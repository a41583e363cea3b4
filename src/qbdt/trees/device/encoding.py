"""Bin codes that a device finds itself, from columns of values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS
from qbdt.data import Events
from qbdt.trees.binning import Binning
from qbdt.trees.device.device import Device, DeviceArray

SOURCE = Path(__file__).parent / "values.cu"

CHUNK = 1 << 22
"""Rows whose values are on the device at a time: half a gigabyte of thirty features."""

THREADS = 256


class DeviceEncoder:
    """Bin codes of tables, as (row, feature) with `stride` bytes for each row."""

    def __init__(self, device: Device, binning: Binning, stride: int) -> None:
        self._device, self._binning, self._stride = device, binning, stride
        self._kernels = device.compile(SOURCE)
        n = len(binning.features)
        edges, categories = np.full((n, BINS), np.nan), np.full((n, BINS), np.nan)
        for i, own in enumerate(binning.edges):
            edges[i, : own.size] = own
        for i, values in binning.categories_by_number.items():
            categories[i, : values.size] = values
        self._edges, self._categories = device.upload(edges.ravel()), device.upload(categories.ravel())
        self._n_edges = device.upload(binning.n_cuts.astype(np.int32))

    def encode_table(self, events: Events) -> DeviceArray:
        """Codes of all rows of the table that events are rows of."""
        columns, _ = events.in_place()
        size = len(columns[self._binning.features[0]])
        codes = self._device.zeros(size * self._stride, np.uint8)
        for begin in range(0, size, CHUNK):
            own = [columns[name][begin : begin + CHUNK] for name in self._binning.features]
            self._encode(own, codes[begin * self._stride :])
        return codes

    def encode_rows(self, events: Events) -> Iterator[tuple[int, int, DeviceArray]]:
        """Codes of the rows of events, in chunks, each with its first row and the number of them."""
        for begin in range(0, events.n_rows, CHUNK):
            chunk = events[begin : begin + CHUNK]
            codes = self._device.zeros(chunk.n_rows * self._stride, np.uint8)
            self._encode_chunk(chunk, codes)
            yield begin, chunk.n_rows, codes

    def write_rows(self, events: Events, out: DeviceArray) -> None:
        """Write the codes of the rows of events."""
        for begin in range(0, events.n_rows, CHUNK):
            self._encode_chunk(events[begin : begin + CHUNK], out[begin * self._stride :])

    def _encode_chunk(self, chunk: Events, codes: DeviceArray) -> None:
        columns, rows = chunk.in_place()
        if isinstance(rows, range) and rows.step == 1:
            own = [columns[name][rows.start : rows.stop] for name in self._binning.features]
        else:
            own = [chunk.column(name) for name in self._binning.features]
        if own:  # trees without any cut look at no feature
            self._encode(own, codes)

    def _encode(self, columns: list[NDArray[Any]], codes: DeviceArray) -> None:
        """Codes of some rows, given by columns."""
        for features, values, places, step in _as_blocks(columns):
            n_rows = len(columns[0])
            sent = (self._device.upload(values), self._device.upload(places), np.int64(step), np.int64(n_rows))
            rules = (self._edges, self._n_edges, self._categories, self._device.upload(features))
            blocks = (4 * self._device.n_units, len(features), 1)
            arguments = (*sent, *rules, np.int64(self._stride), codes)
            self._kernels.launch(f"encode_{values.dtype.name}", blocks, arguments, threads=THREADS)


def gather_codes(device: Device, table: DeviceArray, events: Events, stride: int, out: DeviceArray) -> None:
    """Copy the codes of events from those of the whole table that they are rows of."""
    _, rows = events.in_place()
    if isinstance(rows, range):
        given = (device.zeros(1, np.int32), np.int32(0), np.int64(rows.start), np.int64(rows.step))
    else:
        given = (device.upload(np.asarray(rows, dtype=np.int32)), np.int32(1), np.int64(0), np.int64(1))
    arguments = (table.view(np.uint64), *given, np.int64(events.n_rows), np.int32(stride), out.view(np.uint64))
    device.compile(SOURCE).launch("gather_codes", (8 * device.n_units, 1, 1), arguments, threads=THREADS)


def _as_blocks(
    columns: list[NDArray[Any]],
) -> Iterator[tuple[NDArray[np.int32], NDArray[Any], NDArray[np.int64], int]]:
    """Columns as few arrays: the features in each, its numbers, where each feature starts, and the distance of rows.

    Columns that lie side by side in one table are sent as they are; others one by one.
    """
    table = _rows_of_table(columns)
    numbers = np.arange(len(columns), dtype=np.int32)
    if table is not None:
        yield numbers, table.reshape(-1), numbers.astype(np.int64), len(columns)
        return
    for i, column in enumerate(columns):
        kind = np.float32 if column.dtype == np.float32 else np.float64
        values = np.ascontiguousarray(column, dtype=kind)
        yield numbers[i : i + 1], values, np.zeros(1, dtype=np.int64), 1


def _rows_of_table(columns: list[NDArray[Any]]) -> NDArray[Any] | None:
    """Return the rows of a table in C order whose columns these are, all of them and in order."""
    first, n = columns[0], len(columns)
    width = first.dtype.itemsize
    if first.dtype not in (np.float32, np.float64) or first.strides[0] != n * width or n == 1 or not len(first):
        return None
    start = first.__array_interface__["data"][0]
    for i, column in enumerate(columns):
        is_next = column.__array_interface__["data"][0] == start + i * width
        if not (is_next and column.dtype == first.dtype and column.strides == first.strides):
            return None
        if column.base is None or column.base is not first.base:
            return None
    shape, strides = (len(first), n), (n * width, width)
    return np.lib.stride_tricks.as_strided(first, shape=shape, strides=strides, writeable=False)
