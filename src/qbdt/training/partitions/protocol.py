"""What a store over several partitions asks of them: calls that travel, and answers that add up."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Answers", "Call", "Hosts", "Together", "added"]

Answers: TypeAlias = list[NDArray[Any] | None]
"""What calls return, one for each; None for those that return nothing."""


class Together(StrEnum):
    """How the answers of partitions become one."""

    SUM = "sum"
    MAX = "max"
    NOTHING = "nothing"


class Call(NamedTuple):
    """A method of every partition's store.

    `changes` says whether it changes the store: these calls are repeated where a lost partition is made anew. `begins`
    says that it fixes what a new tree adds up: of finished trees, only which rows were in which nodes is repeated.
    """

    method: str
    arguments: tuple[Any, ...] = ()
    together: Together = Together.NOTHING
    changes: bool = False
    begins: bool = False


class Hosts(Protocol):
    """Whatever holds the partitions of a training."""

    def run(self, calls: Sequence[Call]) -> Answers:
        """Make these calls, in this order, on every partition; return what they give together."""


def added(calls: Sequence[Call], one: Answers | None, other: Answers) -> Answers:
    """Put the answers of two places together; neither is changed, since both may be kept to be repeated."""
    if one is None:
        return other
    return [
        None if call.together is Together.NOTHING else _TOGETHER[call.together](mine, its)
        for call, mine, its in zip(calls, one, other, strict=True)
    ]


_TOGETHER: dict[Together, Any] = {Together.SUM: np.add, Together.MAX: np.maximum}
