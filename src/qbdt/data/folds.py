"""Fold rules: from the identifiers of an event to the number of its fold.

A rule looks at identifiers only, never at features or row numbers, so an event and its shifted copies always land in
the same fold, whatever file, chunk or variation they come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qbdt.data.events import Events
from qbdt.data.identity import POSITION, hash_columns, name_bits, whole_numbers
from qbdt.errors import DataError, find_repeated, is_number


@dataclass(frozen=True)
class FoldRule(ABC):
    """How events are divided into `k` folds."""

    k: int

    by: ClassVar[str]
    """Name of the rule in analysis and model files."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", _read_whole("k", self.k))
        if self.k < 2:
            raise DataError(f"folds: k={self.k}: at least 2 folds are needed")
        names = self.columns
        if not (names and all(isinstance(name, str) and name for name in names)):
            raise DataError(f"folds: {', '.join(map(repr, names)) or 'no column'}: names of columns are needed")
        if twice := find_repeated(names):
            raise DataError(f"folds: column {twice[0]} is named twice")

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Identifier columns that the rule reads."""

    @abstractmethod
    def _assign(self, values: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Fold of each event from whole-number identifiers."""

    def assign(self, events: Events) -> NDArray[np.int64]:
        """Fold number, 0 … k − 1, of each row."""
        return self._assign([whole_numbers(name, events.identifier(name)) for name in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain data; `from_dict` reads it back."""
        return {"by": self.by, "columns": list(self.columns), "k": self.k}

    @staticmethod
    def from_dict(rule: Mapping[str, Any]) -> FoldRule:
        """Make a rule from what `to_dict` wrote.

        Examples
        --------
        >>> FoldRule.from_dict({"by": "modulo", "columns": ["event_number"], "k": 5})
        ModuloFolds(k=5, column='event_number')
        """
        columns = tuple(rule["columns"])
        match rule["by"]:
            case "modulo":
                return ModuloFolds(rule["k"], _only(columns, "modulo"))
            case "split":
                return SplitFolds(rule["k"], _only(columns, "split"))
            case "hash":
                return HashFolds(rule["k"], columns, rule.get("salt", 0))
            case other:
                raise DataError(f"folds: by={other!r}: must be 'modulo', 'hash' or 'split'")


@dataclass(frozen=True)
class _ColumnFolds(FoldRule):
    """A rule that reads one column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)


@dataclass(frozen=True)
class ModuloFolds(_ColumnFolds):
    """Fold = column modulo k.

    Examples
    --------
    >>> events = Events({"x": [0.1, 0.2, 0.3]}, [1, 1, 1], ids={"event_number": [10, 11, 12]})
    >>> ModuloFolds(2, "event_number").assign(events)
    array([0, 1, 0])
    """

    by = "modulo"

    def _assign(self, values: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return values[0] % self.k


@dataclass(frozen=True)
class SplitFolds(_ColumnFolds):
    """Fold = the value of a column that already holds the split, which must lie in 0 … k − 1."""

    by = "split"

    def _assign(self, values: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        outside = np.flatnonzero((values[0] < 0) | (values[0] >= self.k))
        if outside.size:
            value = values[0][outside[0]]
            raise DataError(
                f"folds: column {self.column} has the value {value}; with k={self.k} it must be 0 … {self.k - 1}"
            )
        return values[0]


@dataclass(frozen=True)
class HashFolds(FoldRule):
    """Fold = a 64-bit hash of several whole-number columns, modulo k; the same on every machine.

    Each value enters the state by one round of splitmix64, in the order of the columns, starting from `salt`.
    """

    hashed: tuple[str, ...]
    salt: int = 0

    by = "hash"

    def __post_init__(self) -> None:
        several = isinstance(self.hashed, Iterable) and not isinstance(self.hashed, str)
        object.__setattr__(self, "hashed", tuple(self.hashed) if several else (self.hashed,))
        object.__setattr__(self, "salt", _read_whole("salt", self.salt))
        super().__post_init__()

    @classmethod
    def by_content(cls, k: int, columns: Sequence[str], salt: int = 0) -> HashFolds:
        """Hash the values of columns that no source moves, for events without a number; readers take their bits."""
        return cls(k, tuple(map(name_bits, columns)), salt)

    @classmethod
    def by_position(cls, k: int, salt: int = 0) -> HashFolds:
        """Hash the number of the file and of the row in it, before any selection; readers count them."""
        return cls(k, POSITION, salt)

    @property
    def columns(self) -> tuple[str, ...]:
        """The hashed columns."""
        return self.hashed

    def _assign(self, values: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        # The modulo favours the first folds by k / 2^64, which no sample can show.
        return (hash_columns(values, self.salt) % np.uint64(self.k)).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain data."""
        return {**super().to_dict(), "salt": self.salt}


def _read_whole(name: str, value: Any) -> int:
    if not is_number(value) or value != int(value):
        raise DataError(f"folds: {name}={value!r}: must be a whole number")
    return int(value)


def _only(columns: tuple[str, ...], by: str) -> str:
    if len(columns) != 1:
        raise DataError(f"folds: by={by!r} takes one column, not {len(columns)}; use by='hash' for several")
    return columns[0]
