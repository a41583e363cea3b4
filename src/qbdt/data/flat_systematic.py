"""`FlatSystematic`: a source over the rows of one table, as users of arrays give it, and the kinds of sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from qbdt.errors import DataError

LabelledTable: TypeAlias = tuple[Any, ArrayLike, ArrayLike | None]
"""Features, labels and weights of a shape variation over one table."""


class Kind(StrEnum):
    """How a source acts: other weights, other events, or a relative size."""

    WEIGHT = "weight"
    SHAPE = "shape"
    NORM = "norm"


@dataclass(frozen=True, eq=False)
class FlatSystematic:
    """A source given over the rows of one table, before its rows are assigned to processes."""

    name: str
    kind: Kind
    up: Any
    down: Any
    event_id: tuple[Any, ...] = (None, None)

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.event_id) != 2:
            raise DataError(f"systematic {self.name}: event_id is a tuple of {len(self.event_id)}: (of up, of down)")
        if self.kind is Kind.SHAPE:
            for side in (self.up, self.down):
                if side is not None and (not isinstance(side, tuple) or len(side) != 3):
                    raise DataError(f"systematic {self.name}: a shape variation is a tuple (X, y, weight)")

    def map_tables(self, change: Callable[..., LabelledTable]) -> FlatSystematic:
        """Return a shape source with the tables, labels and weights of its sides changed; other sources stay."""
        if self.kind is not Kind.SHAPE:
            return self
        up, down = (None if side is None else change(*side) for side in (self.up, self.down))
        return replace(self, up=up, down=down)

    def __repr__(self) -> str:
        return f"Systematic({self.name}: {self.kind}, {'up only' if self.down is None else 'up and down'})"


def check_name(name: str) -> None:
    """Refuse a name of a source that cannot be printed."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise DataError(f"a systematic needs a name that can be printed, not {name!r}")
