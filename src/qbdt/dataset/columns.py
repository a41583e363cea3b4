"""Tables of any kind that people hold in memory, as named one-dimensional columns, without copies where possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.errors import DataError

__all__ = ["as_columns"]


def as_columns(table: Any, names: Sequence[str] | None = None, context: str = "") -> dict[str, NDArray[Any]]:
    """Columns of a numpy array, mapping, pandas or Arrow table, awkward record array, or anything that speaks Arrow.

    Parameters
    ----------
    table
        The table.
    names
        For arrays: the column names (x0, x1, … if not given). For named tables: which columns, in this order.
    context
        Put in front of messages.

    Examples
    --------
    >>> list(as_columns(np.zeros((3, 2))))
    ['x0', 'x1']
    """
    if isinstance(table, Mapping):
        columns = {str(name): np.asarray(values) for name, values in table.items()}
    elif _is_from(table, "awkward"):
        columns = {str(name): np.asarray(table[name]) for name in table.fields}
    elif _is_from(table, "pandas") and hasattr(table, "columns"):
        columns = _pandas_columns(table, context)
    elif _is_from(table, "pyarrow") or (hasattr(table, "__arrow_c_stream__") and not isinstance(table, np.ndarray)):
        columns = _arrow_columns(table)
    else:
        return _array_columns(np.asarray(table), names, context)
    if names is None:
        return columns
    absent = [name for name in names if name not in columns]
    if absent:
        raise DataError(f"{context}no column {', '.join(absent)}; there are: {', '.join(columns)}")
    return {name: columns[name] for name in names}


def _is_from(table: Any, package: str) -> bool:
    return type(table).__module__.partition(".")[0] == package


def _array_columns(array: NDArray[Any], names: Sequence[str] | None, context: str) -> dict[str, NDArray[Any]]:
    if array.dtype.names:
        return as_columns({name: array[name] for name in array.dtype.names}, names, context)
    if array.ndim != 2:
        raise DataError(f"{context}X has shape {array.shape}: a table of rows × features is needed")
    labels = [f"x{i}" for i in range(array.shape[1])] if names is None else list(names)
    if len(labels) != array.shape[1]:
        raise DataError(
            f"{context}X has {array.shape[1]} columns, {len(labels)} feature names are given: {', '.join(labels)}"
        )
    return {label: array[:, i] for i, label in enumerate(labels)}


def _pandas_columns(frame: Any, context: str) -> dict[str, NDArray[Any]]:
    if not frame.columns.is_unique:
        repeated = sorted({str(name) for name in frame.columns[frame.columns.duplicated()]})
        raise DataError(f"{context}two columns are named {', '.join(repeated)}")
    return {str(name): frame[name].to_numpy() for name in frame.columns}


def _arrow_columns(table: Any) -> dict[str, NDArray[Any]]:
    import pyarrow as pa

    arrow = table if isinstance(table, pa.Table) else pa.table(table)
    repeated = {name for name in arrow.column_names if arrow.column_names.count(name) > 1}
    if repeated:
        raise DataError(f"two columns are named {', '.join(sorted(repeated))}")
    return {name: arrow_to_numpy(arrow.column(name)) for name in arrow.column_names}


def arrow_to_numpy(column: Any) -> NDArray[Any]:
    """Return an Arrow column as numpy, zero-copy where it is one chunk without nulls; nulls become NaN."""
    if column.num_chunks == 1 and column.null_count == 0:
        chunk = column.chunk(0)
        try:
            return np.asarray(chunk.to_numpy(zero_copy_only=True))
        except (ValueError, TypeError, NotImplementedError):
            return np.asarray(chunk.to_numpy(zero_copy_only=False))
    return np.asarray(column.to_numpy())
