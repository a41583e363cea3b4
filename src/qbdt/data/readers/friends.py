"""Friends: columns of other trees or files beside those of a table, matched by position or by identifiers.

In: a table and its friends. Out: one `TableFile` with the columns of all; where a name occurs twice, the table's own
counts. Friends by position are read in step with the table; those by identifiers are kept in memory as far as they are
needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.data.identity import hash_columns, whole_numbers
from qbdt.data.readers.table import WHOLE, Share, TableFile, open_table
from qbdt.errors import DataError


@dataclass(frozen=True)
class Friend:
    """Another tree or file with columns of the same events."""

    # path, tree: where it is
    path: str
    tree: str | None = None
    by: tuple[str, ...] = ()  # Identifier columns that both have; none where rows follow each other in the same order


@contextmanager
def open_with_friends(
    path: str, tree: str | None = None, share: Share = WHOLE, friends: Sequence[Friend] = ()
) -> Iterator[TableFile]:
    """Open a file by its ending, with its friends; see `open_table`."""
    with ExitStack() as stack:
        main = stack.enter_context(open_table(path, tree, share))
        opened = [(friend, stack.enter_context(_open_friend(friend))) for friend in friends]
        yield _Joined(main, opened, share == WHOLE) if opened else main


@contextmanager
def _open_friend(friend: Friend) -> Iterator[TableFile]:
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(open_table(friend.path, friend.tree))
        except DataError as error:
            raise DataError(f"{error}; it is a friend: a sample that has none says `friends: []`") from None
        yield opened


class _Joined:
    """A table and its friends as one."""

    def __init__(self, main: TableFile, friends: Sequence[tuple[Friend, TableFile]], whole: bool) -> None:
        self.label, self.n_rows, self.first_row = main.label, main.n_rows, main.first_row
        self._main, self._friends = main, friends
        self._owner: dict[str, int] = {}
        for i, (friend, table) in enumerate(friends):
            _require_columns(table, friend.by)
            _require_columns(main, friend.by)
            if not friend.by and whole:
                _require_rows(main, table)
            for name in table.names:
                self._owner.setdefault(name, i)
        self.names = (*main.names, *(name for name in self._owner if name not in main.names))

    def chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Consecutive pieces with these columns."""
        own = [name for name in columns if name in self._main.names]
        wanted = {i: [n for n in columns if n not in own and self._owner[n] == i] for i in range(len(self._friends))}
        keys = [name for i, names in wanted.items() if names for name in self._friends[i][0].by]
        sources = [
            _Matched(friend, table, wanted[i]) if friend.by else _InStep(table, wanted[i], self.first_row)
            for i, (friend, table) in enumerate(self._friends)
            if wanted[i]
        ]
        needed = list(dict.fromkeys([*own, *keys])) or list(self._main.names[:1])
        for chunk in self._main.chunks(needed):
            n_rows = len(next(iter(chunk.values())))
            found = {name: chunk[name] for name in own}
            for source in sources:
                found |= source.take(chunk, n_rows, self.label)
            yield found


def _require_columns(table: TableFile, names: Sequence[str]) -> None:
    if absent := [name for name in names if name not in table.names]:
        raise DataError(f"{table.label}: no column {absent[0]}, by which friends are matched")


def _require_rows(main: TableFile, friend: TableFile) -> None:
    if None not in (main.n_rows, friend.n_rows) and main.n_rows != friend.n_rows:
        raise DataError(f"friend {friend.label} has {friend.n_rows} rows, {main.label} has {main.n_rows}")


class _InStep:
    """Columns of a friend whose rows follow each other like those of the table."""

    def __init__(self, table: TableFile, columns: list[str], skip: int) -> None:
        self._label, self._columns = table.label, columns
        self._chunks = table.chunks(columns)
        self._waiting: list[dict[str, Any]] = []
        if skip:
            self.take({}, skip, "")

    def take(self, chunk: dict[str, Any], n_rows: int, label: str) -> dict[str, Any]:
        """Columns of the next rows."""
        parts, left = [], n_rows
        while left:
            if not self._waiting:
                following = next(self._chunks, None)
                if following is None:
                    raise DataError(f"friend {self._label} has {left} rows fewer than {label}")
                self._waiting.append(following)
            piece = self._waiting.pop()
            here = len(next(iter(piece.values())))
            parts.append({name: values[:left] for name, values in piece.items()})
            if here > left:
                self._waiting.append({name: values[left:] for name, values in piece.items()})
            left -= min(here, left)
        return {name: _join([part[name] for part in parts]) for name in self._columns}


class _Matched:
    """Columns of a friend whose rows are found by identifiers."""

    def __init__(self, friend: Friend, table: TableFile, columns: list[str]) -> None:
        self._label, self._by, self._columns = table.label, friend.by, columns
        pieces = list(table.chunks([*friend.by, *columns]))
        self._values = {name: _join([piece[name] for piece in pieces]) for name in (*friend.by, *columns) if pieces}
        if not pieces or not len(self._values[friend.by[0]]):
            raise DataError(f"friend {table.label} has no rows")
        hashes = self._hash(self._values)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]
        twice = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])
        if twice.size:
            raise DataError(f"friend {table.label}: {twice.size} rows have the {', '.join(friend.by)} of another one")

    def _hash(self, columns: dict[str, Any]) -> NDArray[np.uint64]:
        return hash_columns([whole_numbers(name, np.asarray(columns[name])) for name in self._by])

    def take(self, chunk: dict[str, Any], n_rows: int, label: str) -> dict[str, Any]:
        """Columns of the rows with the identifiers of a chunk."""
        hashes = self._hash(chunk)
        place = np.minimum(np.searchsorted(self._sorted, hashes), len(self._sorted) - 1)
        absent = np.flatnonzero(self._sorted[place] != hashes)
        if absent.size:
            first = ", ".join(f"{name} = {chunk[name][absent[0]]}" for name in self._by)
            raise DataError(f"friend {self._label} has no row for {absent.size} events of {label}, first {first}")
        rows = self._order[place]
        return {name: self._values[name][rows] for name in self._columns}


def _join(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    import awkward as ak

    return ak.concatenate(parts)
