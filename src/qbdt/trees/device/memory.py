"""`DeviceMemory`: where rows are kept on a device, and the codes of tables that several sets of rows are taken from."""

from __future__ import annotations

import threading
from typing import Any

from numpy.typing import DTypeLike, NDArray

from qbdt.data import Events
from qbdt.trees.binning import Binning
from qbdt.trees.device.device import Device, DeviceArray
from qbdt.trees.device.encoding import DeviceEncoder, gather_codes
from qbdt.trees.rows import in_memory


class DeviceMemory:
    """A `Memory` of rows on a device; arrays of rows that no device has are ordinary ones.

    Events of folds and processes are rows of the same tables. The codes of a whole table are found once, and kept until
    they are needed no more. Where whole tables are too large, or are read anew each time, `keeps_tables` is false.
    """

    def __init__(self, device: Device, keeps_tables: bool = True) -> None:
        self.device, self.keeps_tables = device, keeps_tables
        self._tables: dict[tuple[int, ...], tuple[DeviceArray, Any]] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, device: Device | None) -> DeviceMemory | None:
        """Memory of a device; None without one."""
        return None if device is None else cls(device)

    def __call__(self, name: str, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an ordinary array of zeros."""
        return in_memory(name, size, dtype)

    def write_codes(self, events: Events, binning: Binning, stride: int, out: DeviceArray) -> None:
        """Write the bin codes of events, `stride` bytes for each row."""
        if events.n_rows == 0:
            return
        if self.keeps_tables:
            gather_codes(self.device, self._table(events, binning, stride), events, stride, out)
        else:
            DeviceEncoder(self.device, binning, stride).write_rows(events, out)

    def _table(self, events: Events, binning: Binning, stride: int) -> DeviceArray:
        """Codes of all rows of the table that events are rows of, which several threads may ask for."""
        columns, _ = events.in_place()
        own = [columns[name] for name in binning.features]
        key = (id(binning), stride, *map(id, own))
        with self._lock:
            if key not in self._tables:
                codes = DeviceEncoder(self.device, binning, stride).encode_table(events)
                self._tables[key] = codes, (binning, own)  # kept alive, so that no other array gets their numbers
                self.device.wait()  # nothing else makes other threads' kernels wait for this one's
            return self._tables[key][0]

    def forget_tables(self) -> None:
        """Let go of the codes of tables."""
        self._tables.clear()
