"""Columns of a file that is read in chunks: the branches they need, their values in a chunk, and chunks joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.data.expressions import Expression
from qbdt.errors import DataError, ExpressionError, hint_at


class ColumnPlan:
    """Derived columns over the branches of one file.

    A derived column may use branches and other derived columns. A column that is named like a branch hides it; inside
    its own expression the name stands for the branch (`pt_tau: pt_tau * 1.02`).
    """

    def __init__(self, derived: Mapping[str, Expression], available: Iterable[str], label: str) -> None:
        self._derived = dict(derived)
        self._available = tuple(available)
        self._label = label

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._available)

    def branches(self, expression: Expression | str) -> frozenset[str]:
        """Branches that a column name or an expression needs in the end."""
        wanted = expression.names if isinstance(expression, Expression) else (expression,)
        used = [name for name in wanted if name not in self._derived]
        for column in self._sort(wanted):
            used += [name for name in self._derived[column].names if self._is_branch(name, column)]
        return frozenset(used)

    def evaluate(self, expression: Expression | str, branches: Mapping[str, Any]) -> Any:
        """Values of a column or an expression from the branches of one chunk; each column is computed once."""
        wanted = expression.names if isinstance(expression, Expression) else (expression,)
        order = self._sort(wanted)
        uses = Counter(name for column in order for name in self._derived[column].names if name != column)
        uses.update(wanted)
        values: dict[str, Any] = {}

        def use(name: str, column: str | None = None) -> Any:
            if self._is_branch(name, column):
                return branches[name]
            uses[name] -= 1
            return values[name] if uses[name] else values.pop(name)  # a column that is used up is let go of

        for column in order:
            derived = self._derived[column]
            values[column] = derived.evaluate({name: use(name, column) for name in derived.names})
        if isinstance(expression, Expression):
            return expression.evaluate({name: use(name) for name in wanted})
        return use(expression)

    def _is_branch(self, name: str, column: str | None) -> bool:
        """Whether a name stands for a branch inside the expression of a column."""
        return name not in self._derived or name == column

    def _sort(self, wanted: Iterable[str]) -> list[str]:
        """Derived columns that these need, each after those that it uses itself; unknown names are refused."""
        sorted_columns: dict[str, None] = {}
        path: dict[str, None] = {}  # columns from one that is wanted to the one at hand, each of which uses the next
        waiting: list[Iterator[str]] = [iter(wanted)]
        while waiting:
            name, column = next(waiting[-1], None), next(reversed(path), None)
            if name is None:
                waiting.pop()
                if column is not None:
                    sorted_columns[column] = path.pop(column)
            elif self._is_branch(name, column):
                self._require_branch(name, column)
            elif name in path:
                circle = " → ".join([*path, name])
                raise ExpressionError(f"derived columns use each other in a circle: {circle}")
            elif name not in sorted_columns:
                path[name] = None
                waiting.append(iter(sorted(self._derived[name].names)))
        return list(sorted_columns)

    def _require_branch(self, name: str, column: str | None) -> None:
        if name not in self._known:
            used = "" if column is None else f", which the column {column} needs"
            raise DataError(f"{self._label}: no branch {name}{used}; {hint_at(name, self._available)}")

    def mask(self, selection: Expression, branches: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Rows that pass a selection."""
        return selection.mask({name: self.evaluate(name, branches) for name in selection.names})

    def find_needed(self, names: Iterable[str]) -> frozenset[str]:
        """Columns and branches that these need, on the way and in the end."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._derived[name].names if name in self._derived else ()
        return frozenset(found)


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
            if len(values) != n_rows:
                raise DataError(f"column {name} has {len(values)} rows, others have {n_rows}: is the file damaged?")
            if not self._room:
                blocks.append(_native(values).copy() if values.base is not None else _native(values))
                continue
            if self._filled == 0:
                blocks.append(_make_room(self._room, _native_type(values.dtype)))
            elif np.result_type(blocks[-1], _native_type(values.dtype)) != blocks[-1].dtype:
                blocks[-1] = blocks[-1].astype(np.result_type(blocks[-1], _native_type(values.dtype)))
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
            raise DataError(f"a table declares {self._room} rows and has {self._filled}; is it truncated or damaged?")


def _make_room(n_rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        return np.empty(n_rows, dtype=dtype)
    except (MemoryError, ValueError) as error:
        raise DataError(f"a table declares {n_rows} rows: they do not fit into memory; is it damaged?") from error


def _native_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=")


def _native(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(_native_type(values.dtype), copy=False)
