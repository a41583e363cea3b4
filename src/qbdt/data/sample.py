"""`Sample`: one process with its role and its nominal events, and the tally of rows and yields that is checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from qbdt.data.events import Events
from qbdt.errors import DataError

LARGEST_WEIGHT = 1e100
"""Weights of a sample may be this large at most, and its inverse at least: their squares, and sums and ratios of these,
stay far from where double precision ends (1e308, 1e-308)."""


class Role(StrEnum):
    """Kind of a sample: simulated signal, simulated background, or recorded data."""

    SIGNAL = "signal"
    BACKGROUND = "background"
    DATA = "data"


@dataclass(frozen=True, eq=False)
class Sample:
    """One process: its name, its role and its nominal events."""

    name: str
    role: Role
    events: Events

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise DataError(f"a sample needs a name that can be printed, not {self.name!r}")
        if self.role not in list(Role):
            raise DataError(f"sample {self.name}: role={self.role!r}: must be {', '.join(Role)}")
        if not isinstance(self.events, Events):
            raise DataError(f"sample {self.name}: a {type(self.events).__name__} is given where Events are needed")
        object.__setattr__(self, "role", Role(self.role))


@dataclass(frozen=True)
class Tally:
    """Rows and yield of one set of events; those of its partitions can be added."""

    # what, role: what it is, for messages, and the role of its process
    what: str
    role: Role
    # n_rows, total: number of rows and expected yield
    n_rows: int
    total: float
    largest: float  # Largest absolute weight
    n_negative: int = 0  # Number of negative weights

    @classmethod
    def of(cls, what: str, role: Role, events: Events) -> Tally:
        """Tally of events."""
        largest, n_negative = float(np.abs(events.weight).max(initial=0.0)), int(np.count_nonzero(events.weight < 0))
        with np.errstate(over="ignore"):  # refused by its largest weight
            return cls(what, role, events.n_rows, events.total, largest, n_negative)

    def __add__(self, other: Tally) -> Tally:
        n_rows, total = self.n_rows + other.n_rows, self.total + other.total
        largest, n_negative = max(self.largest, other.largest), self.n_negative + other.n_negative
        return Tally(self.what, self.role, n_rows, total, largest, n_negative)

    def require_usable(self) -> None:
        """Refuse no events and no positive yield, except of recorded data."""
        if self.role is Role.DATA:
            return
        if self.n_rows == 0:
            raise DataError(f"{self.what} has no events; is the selection too tight?")
        if self.largest == 0:
            raise DataError(f"{self.what}: all {self.n_rows} weights are zero")
        if not 1 / LARGEST_WEIGHT < self.largest < LARGEST_WEIGHT:
            raise DataError(
                f"{self.what} has weights up to {self.largest:.3g}: squares and sums of them need "
                f"{1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
            )
        if self.total <= 0:
            raise DataError(f"{self.what} has a total weight of {self.total:.6g}: a positive expected yield is needed")
