"""`Turn`: rows that are on the device while something is asked of them, and in ordinary memory meanwhile."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from numpy.typing import NDArray

from qbdt.trees.device.rows import DeviceRows

__all__ = ["Turn"]


class _Kept(NamedTuple):
    """An array of a holder in pinned memory."""

    holder: Any
    name: str
    array: NDArray[Any]


class Turn:
    """Rows that take turns on a device with others, for which there is no room at the same time.

    Their arrays are kept in memory that the device reads and writes directly. After a turn those are written back that
    may have changed.
    """

    def __init__(self, rows: DeviceRows) -> None:
        self._rows, self._device = rows, rows.device
        self._kept: dict[tuple[int, str], _Kept] = {}
        self._leave()

    def __enter__(self) -> DeviceRows:
        for holder, name, array in self._kept.values():
            setattr(holder, name, self._device.copy_in(array))
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
