"""Plain columns of whole files, before any selection: read, summed, compared."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.data.expressions import Expression
from qbdt.data.readers.chunks import ColumnPlan, ColumnStack
from qbdt.data.readers.table import open_table
from qbdt.errors import DataError


def read_columns(path: str | PathLike[str], columns: Sequence[str], tree: str | None = None) -> dict[str, NDArray[Any]]:
    """Read columns of one file as they are; see `open_table` for `tree`."""
    stack = ColumnStack(columns)
    with open_table(str(path), tree) as table:
        plan = ColumnPlan({}, table.names, table.label)
        for chunk in table.chunks([name for column in columns for name in plan.branches(column)]):
            stack.append(chunk)
    return stack.finish()


def require_same_values(
    nominal: tuple[str, str | None], varied: tuple[str, str | None], columns: Sequence[str], what: str
) -> None:
    """Refuse two files, each with its tree, whose rows do not have the same values of `columns` in the same order."""
    lengths = [_count_rows(*side) for side in (nominal, varied)]
    if lengths[0] != lengths[1]:
        raise DataError(
            f"{what}: {varied[0]} has {lengths[1]} rows, {nominal[0]} has {lengths[0]}: folds by position need the same"
        )
    one, other = (read_columns(path, columns, tree) for path, tree in (nominal, varied))
    for name in columns:
        differs = np.flatnonzero(one[name] != other[name])
        if differs.size:
            raise DataError(
                f"{what}: {name} differs between {nominal[0]} and {varied[0]}, first in row {differs[0]}: the same "
                "rows in the same order are needed"
            )


def _count_rows(path: str, tree: str | None) -> int:
    with open_table(path, tree) as table:
        if table.n_rows is not None:
            return table.n_rows
        return sum(len(next(iter(chunk.values()))) for chunk in table.chunks(table.names[:1]))


def sum_expression(path: str, tree: str | None, expression: Expression) -> float:
    """Sum of an expression over all rows of a file, before any selection."""
    total = 0.0
    with open_table(path, tree) as table:
        plan = ColumnPlan({}, table.names, table.label)
        for chunk in table.chunks(sorted(plan.branches(expression)) or list(table.names[:1])):
            n_rows = len(next(iter(chunk.values())))
            values = plan.evaluate(expression, chunk)
            if getattr(values, "ndim", 0) > 1:
                raise DataError(f"{table.label}: {expression.shown} has several values per event; pick an element")
            total += float(np.broadcast_to(values, (n_rows,)).sum(dtype=np.float64))
    return total
