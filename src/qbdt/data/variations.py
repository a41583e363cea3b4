"""`Variation`: the effect of one direction of a source on one process, in three kinds.

Other weights for the same rows, other events, or a relative size. All answer the same questions, so that nothing
outside asks which kind it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import Floats
from qbdt.data.columns import require_unmasked
from qbdt.data.events import Events, Selection
from qbdt.errors import DataError


class Variation(ABC):
    """Effect of one direction of a source on one process."""

    @abstractmethod
    def apply(self, nominal: Events) -> Events:
        """Varied events of the process whose nominal events are given."""

    @abstractmethod
    def select(self, nominal: Selection, choose: Callable[[Events], Selection]) -> Variation:
        """Keep some of the rows: `nominal` are those kept of the nominal events, `choose` picks from other events."""

    @abstractmethod
    def map_weights(self, change: Callable[[Floats], Floats]) -> Variation:
        """Return the variation of a process all of whose weights are changed by a linear function."""

    def with_weight(self, weight: Floats) -> Variation:
        """Return the variation that gives its events these weights."""
        return Reweighting(weight)

    def map_events(self, change: Callable[[Events], Events]) -> Variation:
        """Change the features of events that it brings; a variation that brings none stays."""
        return self

    @property
    def replacement(self) -> Events | None:
        """Events that take the place of the nominal ones; None where these are kept."""
        return None

    @property
    def relative_size(self) -> float | None:
        """Relative change of all weights, where it is the same for all rows; None for anything else."""
        return None

    @property
    def n_rows(self) -> int | None:
        """Rows that the nominal events must have; None where any number will do."""
        return None


@dataclass(frozen=True, eq=False)
class Reweighting(Variation):
    """The nominal rows with other weights."""

    weight: Floats

    def apply(self, nominal: Events) -> Events:
        return nominal.with_weight(self.weight)

    def select(self, nominal: Selection, choose: Callable[[Events], Selection]) -> Reweighting:
        return Reweighting(self.weight[nominal])

    def map_weights(self, change: Callable[[Floats], Floats]) -> Reweighting:
        return Reweighting(change(self.weight))

    @property
    def n_rows(self) -> int:
        return len(self.weight)


@dataclass(frozen=True, eq=False)
class Rescaling(Variation):
    """The nominal rows with weights × (1 + sign · shift), a relative shift for each row; up and down share them."""

    shift: Floats
    sign: float = 1.0

    def apply(self, nominal: Events) -> Events:
        return nominal.with_weight(nominal.weight * (1.0 + self.sign * self.shift.astype(np.float64)))

    def select(self, nominal: Selection, choose: Callable[[Events], Selection]) -> Rescaling:
        return Rescaling(self.shift[nominal], self.sign)

    def map_weights(self, change: Callable[[Floats], Floats]) -> Rescaling:
        return self  # shifts are relative

    @property
    def n_rows(self) -> int:
        return len(self.shift)


@dataclass(frozen=True, eq=False)
class Replacement(Variation):
    """Another set of events; their number may differ, since events migrate across the selection."""

    events: Events

    def apply(self, nominal: Events) -> Events:
        return self.events

    def select(self, nominal: Selection, choose: Callable[[Events], Selection]) -> Replacement:
        return Replacement(self.events[choose(self.events)])

    def map_weights(self, change: Callable[[Floats], Floats]) -> Replacement:
        return Replacement(self.events.with_weight(change(self.events.weight)))

    def with_weight(self, weight: Floats) -> Replacement:
        return Replacement(self.events.with_weight(weight))

    def map_events(self, change: Callable[[Events], Events]) -> Replacement:
        return Replacement(change(self.events))

    @property
    def replacement(self) -> Events:
        return self.events


@dataclass(frozen=True, eq=False)
class Scaling(Variation):
    """The nominal rows (or those marked in `where`) with weights × (1 + size)."""

    size: float
    where: NDArray[np.bool_] | None = None

    def apply(self, nominal: Events) -> Events:
        scale = 1.0 + self.size
        return nominal.with_weight(nominal.weight * (scale if self.where is None else np.where(self.where, scale, 1.0)))

    def select(self, nominal: Selection, choose: Callable[[Events], Selection]) -> Scaling:
        return self if self.where is None else Scaling(self.size, self.where[nominal])

    def map_weights(self, change: Callable[[Floats], Floats]) -> Scaling:
        return self  # the size is relative

    @property
    def relative_size(self) -> float | None:
        return self.size if self.where is None else None

    @property
    def n_rows(self) -> int | None:
        return None if self.where is None else len(self.where)


LARGEST = float(np.finfo(np.float64).max)
"""Integers may be larger, and cannot be computed with."""


def relative_changes(size: float | tuple[float, float]) -> tuple[float, float]:
    """Relative changes up and down of a normalisation.

    One number below 1 is the change in both directions; one of 1 or more is log-normal, down by 1/(1 + size), as a
    yield cannot be negative. A pair gives down and up separately.

    Examples
    --------
    >>> relative_changes(0.1), relative_changes(1.0), relative_changes((-0.3, 0.6))
    ((0.1, -0.1), (1.0, -0.5), (0.6, -0.3))
    """
    if isinstance(size, list | tuple):
        if len(size) != 2 or not all(_is_number(end) and -1 < end <= LARGEST for end in size) or not any(size):
            raise DataError(f"size={size!s:.60}: two relative changes above −1, down and up, are needed")
        return float(size[1]), float(size[0])
    if not _is_number(size):
        raise DataError(f"size={size!r}: a number is needed")
    if not (-1 < size <= LARGEST and size != 0):
        raise DataError(f"size={size!s:.60}: a relative size above −1, not 0, is needed")
    return float(size), -float(size) if size < 1 else 1 / (1 + float(size)) - 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def check_weights(name: str, weight: ArrayLike) -> Floats:
    """Weights of a variation as float64, refused where not finite."""
    try:
        values = require_unmasked(weight, f"systematic {name}: weight").astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"systematic {name}: weights must be numbers ({error})") from error
    if values.ndim != 1:
        raise DataError(f"systematic {name}: weights have shape {values.shape}: one weight per row is needed")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise DataError(f"systematic {name}: the weight of row {bad[0]} is {values[bad[0]]}: weights must be finite")
    return values
