"""Which branches are needed for the columns asked for, and how columns are computed from branches."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from qbdt.data.expressions import Expression
from qbdt.errors import DataError, ExpressionError

__all__ = ["ColumnPlan"]


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

    def branches(self, expression: Expression | str, within: tuple[str, ...] = ()) -> frozenset[str]:
        """Branches that a column name or an expression needs in the end."""
        if isinstance(expression, Expression):
            return frozenset().union(*(self.branches(name, within) for name in expression.names))
        name = expression
        if name in self._derived and (not within or within[-1] != name):
            if name in within:
                raise ExpressionError(f"derived columns use each other in a circle: {' → '.join((*within, name))}")
            return self.branches(self._derived[name], (*within, name))
        if name not in self._known:
            self._refuse(name, within)
        return frozenset((name,))

    def evaluate(self, expression: Expression | str, branches: Mapping[str, Any], within: str | None = None) -> Any:
        """Values of a column or an expression from the branches of one chunk."""
        if isinstance(expression, Expression):
            names = {name: self.evaluate(name, branches, within) for name in expression.names}
            return expression.evaluate(names)
        if expression in self._derived and expression != within:
            return self.evaluate(self._derived[expression], branches, expression)
        return branches[expression]

    def mask(self, selection: Expression, branches: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Rows that pass a selection."""
        return selection.mask({name: self.evaluate(name, branches) for name in selection.names})

    def reached(self, names: Iterable[str]) -> frozenset[str]:
        """Columns and branches that these need, on the way and in the end."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._derived[name].names if name in self._derived else ()
        return frozenset(found)

    def _refuse(self, name: str, within: tuple[str, ...]) -> None:
        used = f", which the column {within[-1]} needs" if within else ""
        close = difflib.get_close_matches(name, self._available, n=3)
        hint = f"; did you mean {' or '.join(close)}?" if close else f"; there are: {_abridged(self._available)}"
        raise DataError(f"{self._label}: no branch {name}{used}{hint}")


def _abridged(names: tuple[str, ...], most: int = 30) -> str:
    shown = ", ".join(names[:most])
    return f"{shown}, … ({len(names)} in all)" if len(names) > most else shown or "none"
