"""Arrays of a partition in files that are mapped into memory, so that rows may exceed it."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qbdt.errors import OutputError

__all__ = ["MappedArrays", "Scratch"]


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
    """Gives the arrays of one partition: a `Memory`.

    The files are unlinked as soon as they are mapped: however the process ends, nothing is left on the disk.

    Parameters
    ----------
    folder
        Where the files are made; it needs room for about 52 bytes a row with up to 32 features.
    scratch
        What need not be kept between calls.
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
        path = self._folder / f"{name}.{os.getpid()}.{id(self):x}"
        try:
            with path.open("w+b") as file:
                path.unlink()
                os.posix_fallocate(file.fileno(), 0, n_bytes)
                mapped = mmap.mmap(file.fileno(), n_bytes)
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"{self._folder}: no room for {n_bytes / 1e9:.1f} GB of binned rows: {reason}") from error
        mapped.madvise(mmap.MADV_SEQUENTIAL)
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype=dtype)

    @property
    def n_bytes(self) -> int:
        """Size of the files."""
        return sum(len(mapped) for mapped in self._maps)

    def fetch(self) -> None:
        """Have the kernel read the files ahead of their use."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_WILLNEED)
