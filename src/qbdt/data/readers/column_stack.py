"""`ColumnStack`: columns that grow chunk by chunk, with no more than one column in memory twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.errors import DataError

__all__ = ["ColumnStack"]


class ColumnStack:
    """Collects chunks of columns.

    Where the number of rows to come is known (`expect`), chunks are copied to their place at once; otherwise they are
    joined column by column at the end.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._blocks: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        self._room = 0
        self._filled = 0

    def expect(self, n_rows: int) -> None:
        """Announce that exactly this many rows follow."""
        self._require_full()
        self._room, self._filled = n_rows, 0

    def append(self, chunk: Mapping[str, NDArray[Any]]) -> None:
        """Add a chunk; its arrays are copied."""
        n_rows = len(next(iter(chunk.values()))) if chunk else 0
        if n_rows == 0:
            return
        for name, blocks in self._blocks.items():
            values = chunk[name]
            if not self._room:
                blocks.append(_native(values).copy() if values.base is not None else _native(values))
                continue
            if self._filled == 0:
                blocks.append(np.empty(self._room, dtype=_kept_type(values.dtype)))
            elif np.result_type(blocks[-1], _kept_type(values.dtype)) != blocks[-1].dtype:
                blocks[-1] = blocks[-1].astype(np.result_type(blocks[-1], _kept_type(values.dtype)))
            blocks[-1][self._filled : self._filled + n_rows] = values
        self._filled += n_rows
        if self._room and self._filled >= self._room:
            self._room, self._filled = 0, 0

    def finish(self) -> dict[str, NDArray[Any]]:
        """Join the blocks of each column and let go of them."""
        self._require_full()
        columns = {}
        for name in list(self._blocks):
            blocks = self._blocks.pop(name)
            columns[name] = blocks[0] if len(blocks) == 1 else np.concatenate(blocks) if blocks else np.empty(0)
        return columns

    def _require_full(self) -> None:
        if self._room:
            raise DataError(f"a table promised {self._room} rows and gave {self._filled}; is it truncated or damaged?")


def _kept_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=")


def _native(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(_kept_type(values.dtype), copy=False)
