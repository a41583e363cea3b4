"""Names that users give: which of them are given more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["repeated"]


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted.

    Examples
    --------
    >>> repeated(["b", "a", "b", "c", "a"])
    ['a', 'b']
    """
    return sorted(name for name, times in Counter(names).items() if times > 1)
