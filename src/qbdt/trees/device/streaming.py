"""`Turn`: rows that are on the device while something is asked of them, and in ordinary memory meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.trees.device.device import Device, DeviceArray
from qbdt.trees.device.rows import DeviceRows

ALIGNED = 256
"""Bytes that an array's place in device memory is a multiple of."""


class _Kept(NamedTuple):
    """An array of a holder in pinned memory."""

    holder: Any
    name: str
    array: NDArray[Any]


class Slot:
    """Memory of a device that some rows use in turn."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._memory: DeviceArray = device.zeros(0, np.uint8)

    def load(self, kept: Sequence[_Kept]) -> None:
        """Copy arrays to the device, and have their holders use them there."""
        ends = np.cumsum([-(-one.array.nbytes // ALIGNED) * ALIGNED for one in kept]).tolist()
        if len(self._memory) < ends[-1]:
            self._memory = self.device.zeros(ends[-1], np.uint8)
        for (holder, name, array), begin in zip(kept, [0, *ends], strict=False):
            place = self._memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
            self.device.copy_in(array, place)
            setattr(holder, name, place)


class Turn:
    """Rows that take turns on a device with others, for which there is no room at the same time.

    Their arrays are kept in memory that the device reads and writes directly. After a turn those are written back that
    may have changed.
    """

    def __init__(self, rows: DeviceRows, slot: Slot) -> None:
        self._rows, self._slot, self._device = rows, slot, rows.device
        self._kept: dict[tuple[int, str], _Kept] = {}
        self._leave()

    def __enter__(self) -> DeviceRows:
        self._slot.load(list(self._kept.values()))
        return self._rows

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        for number, holder in enumerate(self._rows.holders):
            for name, array in vars(holder).items():
                if self._device.owns(array):
                    self._keep(number, holder, name, array)
        self._device.wait()
        for holder, name, array in self._kept.values():
            setattr(holder, name, array)

    def _keep(self, number: int, holder: Any, name: str, array: Any) -> None:
        known = self._kept.get((number, name))
        if known is None or known.array.shape != array.shape:
            self._kept[number, name] = _Kept(holder, name, self._device.pin(array))
        elif name not in holder.constant:
            self._device.copy_out(array, known.array)
