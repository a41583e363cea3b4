"""Training on more events than fit in memory: binned rows in mapped files, passed over partition by partition."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qbdt.errors import OutputError
from qbdt.threads import Workers
from qbdt.training.partitions.events import PartitionedEvents
from qbdt.training.partitions.local import InMemoryPartitions
from qbdt.training.partitions.protocol import Builder, Partition, Partitions


@dataclass(frozen=True, eq=False)
class OutOfCore(PartitionedEvents):
    """Events whose binned rows are kept in a folder on disk during a training.

    They take about 52 bytes a row with up to 32 features; docs/cluster.md has the numbers of the profiled method.
    """

    folder: Path = Path()

    def place(self, workers: Workers) -> Partitions:
        """Keep the rows on disk."""
        return _DiskPartitions(self.partitions, self.folder, workers)


class _DiskPartitions(InMemoryPartitions):
    """Partitions whose rows are in mapped files."""

    def __init__(self, partitions: Sequence[Partition], folder: Path, workers: Workers) -> None:
        super().__init__(partitions, workers)
        self._folder = folder
        self._arrays: list[MappedArrays] = []

    def _build(self, build: Builder) -> None:
        """Bin all partitions, one in memory at a time."""
        scratch = Scratch()
        self._rows, self._arrays = [], []
        for number, read in enumerate(self._partitions):
            self._arrays.append(MappedArrays(self._folder, scratch))
            self._rows.append(build(number, read(), self._workers, self._arrays[-1]))

    def _pass_over(self) -> Iterator[Any]:
        """Pass over all partitions in the order they lie on disk; the next one is read while one is worked on."""
        for rows, ahead in zip(self._rows, [*self._arrays[1:], self._arrays[0]], strict=True):
            ahead.fetch()
            yield rows


class Scratch:
    """One array in memory that all partitions of a process use in turn."""

    def __init__(self) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype=np.int32)

    def of_size(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of at least this size; those given before stay valid."""
        if self._array.size < size or self._array.dtype != dtype:
            self._array = np.zeros(size, dtype=dtype)
        return self._array[:size]


class MappedArrays:
    """Arrays of one partition, a `Memory`: files in a folder, and a scratch array for what need not be kept.

    The files have no name: however the process ends, nothing is left on the disk.
    """

    def __init__(self, folder: Path, scratch: Scratch) -> None:
        self._folder = folder
        self._scratch = scratch
        self._maps: list[mmap.mmap] = []

    def __call__(self, name: str, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array filled with zeros."""
        if name == "scratch":
            return self._scratch.of_size(size, dtype)
        n_bytes = size * np.dtype(dtype).itemsize
        if n_bytes == 0:
            return np.zeros(size, dtype=dtype)
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                os.posix_fallocate(file.fileno(), 0, n_bytes)
                mapped = mmap.mmap(file.fileno(), n_bytes)
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{self._folder}: no room for {n_bytes / 1e9:.1f} GB of binned rows: {reason}") from error
        mapped.madvise(mmap.MADV_SEQUENTIAL)
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype=dtype)

    def fetch(self) -> None:
        """Have the kernel read the files ahead of their use."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_WILLNEED)
