"""Fold rules: from the identifiers of an event to the number of its fold.

A rule looks at identifiers only, never at features or row numbers, so an event and its shifted copies always land in
the same fold, whatever file, chunk or variation they come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.data.events import Events
from qbdt.errors import DataError

__all__ = ["FoldRule", "HashFolds", "ModuloFolds", "SplitFolds", "fold_rule_from_dict", "hash_whole", "whole_numbers"]


@dataclass(frozen=True)
class FoldRule(ABC):
    """How events are divided into `k` folds."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 2:
            raise DataError(f"folds: k={self.k}: at least 2 folds are needed")

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Identifier columns that the rule reads."""

    @abstractmethod
    def _assign(self, values: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Fold of each event from whole-number identifiers."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain data; `fold_rule_from_dict` reads it back."""

    def assign(self, events: Events) -> NDArray[np.int64]:
        """Fold number, 0 … k − 1, of each row."""
        return self._assign([whole_numbers(name, events.identifier(name)) for name in self.columns])


@dataclass(frozen=True)
class ModuloFolds(FoldRule):
    """Fold = column modulo k.

    Examples
    --------
    >>> events = Events({"x": [0.1, 0.2, 0.3]}, [1, 1, 1], ids={"event_number": [10, 11, 12]})
    >>> ModuloFolds(2, "event_number").assign(events)
    array([0, 1, 0])
    """

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    def _assign(self, values: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return values[0] % self.k

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain data."""
        return {"by": "modulo", "columns": [self.column], "k": self.k}


@dataclass(frozen=True)
class HashFolds(FoldRule):
    """Fold = a 64-bit hash of several whole-number columns, modulo k; the same on every machine.

    Each value is folded into the state by one round of splitmix64, in the order of the columns, starting from `salt`.
    """

    hashed: tuple[str, ...]
    salt: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The hashed columns."""
        return self.hashed

    def _assign(self, values: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return (hash_whole(values, self.salt) % np.uint64(self.k)).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain data."""
        return {"by": "hash", "columns": list(self.hashed), "k": self.k, "salt": self.salt}


@dataclass(frozen=True)
class SplitFolds(FoldRule):
    """Fold = the value of a column that already holds the split, which must lie in 0 … k − 1."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The one column."""
        return (self.column,)

    def _assign(self, values: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        outside = np.flatnonzero((values[0] < 0) | (values[0] >= self.k))
        if outside.size:
            value = values[0][outside[0]]
            raise DataError(
                f"folds: column {self.column} has the value {value}; with k={self.k} it must be 0 … {self.k - 1}"
            )
        return values[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the rule as plain data."""
        return {"by": "split", "columns": [self.column], "k": self.k}


def fold_rule_from_dict(rule: Mapping[str, Any]) -> FoldRule:
    """Make a rule from what `to_dict` wrote.

    Examples
    --------
    >>> fold_rule_from_dict({"by": "modulo", "columns": ["event_number"], "k": 5})
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


def whole_numbers(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Identifier values as 64-bit integers; floating-point columns are accepted where every value is whole."""
    if values.dtype.kind in "bi":
        return values.astype(np.int64, copy=False)
    if values.dtype.kind == "u":
        usable = values <= np.iinfo(np.int64).max
    elif values.dtype.kind == "f":
        exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)
        usable = np.isfinite(values) & (np.abs(values) <= exact) & (np.trunc(values) == values)
    else:
        raise DataError(f"identifier column {name} has type {values.dtype}: whole numbers are needed")
    bad = np.flatnonzero(~usable)
    if bad.size:
        raise DataError(
            f"identifier column {name} has the value {values[bad[0]]} in row {bad[0]}: a whole number that "
            f"{'64 bits hold with a sign' if values.dtype.kind == 'u' else f'{values.dtype} holds exactly'} is needed"
        )
    return values.astype(np.int64)


def hash_whole(values: list[NDArray[np.int64]], salt: int = 0) -> NDArray[np.uint64]:
    """64-bit hash of rows of whole numbers: one round of splitmix64 for each column in turn, starting from `salt`."""
    state = np.full(len(values[0]), salt % 2**64, dtype=np.uint64)
    for column in values:
        state = _splitmix64(state ^ column.view(np.uint64))
    return state


def _only(columns: tuple[str, ...], by: str) -> str:
    if len(columns) != 1:
        raise DataError(f"folds: by={by!r} takes one column, not {len(columns)}; use by='hash' for several")
    return columns[0]


def _splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
