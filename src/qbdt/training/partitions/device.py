"""Rows on a device: all at once, or in pieces that take turns where there is no room for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from qbdt.data import Dataset
from qbdt.threads import Workers
from qbdt.training.partitions.local import InMemoryPartitions
from qbdt.training.partitions.protocol import Builder, Partition
from qbdt.trees.device import DeviceMemory, DeviceRows, Slot, Turn, row_bytes

PIECES = 8
"""Pieces of rows that would fill a device: half of its memory holds rows, the other half what comes and goes."""

STAYING = PIECES // 2 - 1
"""Pieces that stay on the device; the others take turns in the room of one."""


def estimate_bytes(n_rows: int, n_features: int, n_sources: int) -> int:
    """Most device memory of the rows of a training: codes twice, weights, pairs, lists, and numbers of sources."""
    return n_rows * (2 * row_bytes(n_features) + 64 + 16 * n_sources)


def count_pieces(dataset: Dataset, memory: DeviceMemory) -> int:
    """Pieces that the rows of a dataset are divided into: one where they fit half of the device's free memory."""
    changes = [one for source in dataset.systematics for _, effect in source.directions for one in effect.values()]
    varied = [change.replacement.n_rows for change in changes if change.replacement is not None]
    n_rows = sum(sample.events.n_rows for sample in dataset.samples) + sum(varied)
    needed, free = estimate_bytes(n_rows, len(dataset.features), len(dataset.systematics)), memory.device.n_free
    return 1 if 2 * needed <= free else max(2, -(-PIECES * needed // max(free, 1)))


class TurningPartitions(InMemoryPartitions):
    """Partitions whose rows are on a device: the first few stay there, the others take turns."""

    def __init__(self, partitions: Sequence[Partition], workers: Workers, memory: DeviceMemory) -> None:
        super().__init__(partitions, workers)
        self._memory, self._slot = memory, Slot(memory.device)
        memory.keeps_tables = False  # whole tables are too large

    def _build(self, build: Builder) -> None:
        """Bin all partitions; in pinned memory are those that take turns."""
        self._rows = []
        for number, read in enumerate(self._partitions):
            rows: Any = build(number, read(), self._workers, self._memory)
            takes_turns = number >= STAYING and isinstance(rows, DeviceRows)
            self._rows.append(Turn(rows, self._slot) if takes_turns else nullcontext(rows))

    def _pass_over(self) -> Iterator[Any]:
        for turn in self._rows:
            with turn as rows:
                yield rows
