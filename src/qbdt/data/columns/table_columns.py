"""Tables of any kind that people hold in memory, as named one-dimensional columns, without copies where possible.

Masked values are missing: NaN in features. Weights, labels and identifiers must be there for every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.errors import DataError, find_repeated

NUMBERS = ("integer", "floating", "mixed-integer-float")
"""Types that pandas infers of categories that are objects, and all numbers."""


def as_columns(table: Any, names: Sequence[str] | None = None, context: str = "") -> dict[str, NDArray[Any]]:
    """Columns of a numpy array, mapping, pandas or Arrow table, awkward record array, or anything that speaks Arrow.

    Of arrays `names` are the column names (x0, x1, … if not given), of named tables which columns, in this order;
    `context` is put in front of messages.

    Examples
    --------
    >>> list(as_columns(np.zeros((3, 2))))
    ['x0', 'x1']
    """
    refuse_repeated(names or (), context)
    if not has_names(table) and not _is_from(table, "pandas"):
        return _array_columns(np.asanyarray(table), names, context)
    columns = column_readers(table, context)
    absent = [name for name in names or () if name not in columns]
    if absent:
        raise DataError(f"{context}no column {', '.join(absent)}; there are: {', '.join(columns)}")
    return {name: columns[name]() for name in (columns if names is None else names)}


def column_readers(table: Any, context: str = "") -> dict[str, Callable[[], NDArray[Any]]]:
    """Columns of a table that knows their names, each as a function that reads it: not all need to be numbers.

    Examples
    --------
    >>> column_readers({"m": [91.0, 125.0], "name": [b"Z", b"h"]})["m"]()
    array([ 91., 125.])
    """
    if isinstance(table, np.ndarray):
        table = {name: table[name] for name in table.dtype.names or ()}
    pairs: list[tuple[Any, Callable[[], NDArray[Any]]]]
    if isinstance(table, Mapping):
        pairs = [(name, partial(_plain_column, values, f"{context}column {name}")) for name, values in table.items()]
    elif _is_from(table, "awkward"):
        pairs = [(name, partial(_awkward_column, table[name], f"{context}column {name}")) for name in table.fields]
    elif _is_from(table, "pandas"):
        if not hasattr(table, "columns"):
            raise DataError(f"{context}X is a {type(table).__name__}: a table of rows × features is needed")
        refuse_repeated([str(name) for name in table.columns], context)
        pairs = [(name, partial(_pandas_column, table[name], f"{context}column {name}")) for name in table.columns]
    else:
        arrow = as_arrow(table)
        names = arrow.column_names
        pairs = [(n, partial(_arrow_column, arrow.column(i), f"{context}column {n}")) for i, n in enumerate(names)]
    refuse_repeated([str(name) for name, _ in pairs], context)
    return {str(name): read for name, read in pairs}


def as_arrow(table: Any) -> Any:
    """Return a table that is one of Arrow, or speaks Arrow, as one of pyarrow; None for any other."""
    if _is_from(table, "pandas") or not (_is_from(table, "pyarrow") or hasattr(table, "__arrow_c_stream__")):
        return None
    import pyarrow as pa

    return table if isinstance(table, pa.Table) else pa.table(table)


def drop_columns(table: Any, names: Sequence[str], context: str = "") -> Any:
    """Return a table of the same kind without some of its columns, which must be there.

    Examples
    --------
    >>> drop_columns({"m": [91.0], "event": [7]}, ["event"])
    {'m': [91.0]}
    """
    if not names:
        return table
    known = list(column_readers(table)) if has_names(table) else []
    if absent := [name for name in names if name not in known]:
        raise DataError(f"{context}no column {', '.join(absent)}; there are: {', '.join(known) or 'none with a name'}")
    if isinstance(table, Mapping):
        return {name: values for name, values in table.items() if str(name) not in names}
    if _is_from(table, "pandas"):
        return table.drop(columns=[name for name in table.columns if str(name) in names])
    if _is_from(table, "pyarrow"):
        return table.drop_columns(list(names))
    return as_columns(table, [name for name in known if name not in names])


def name_columns(given: Any) -> tuple[str, ...]:
    """Columns of a table that are named, in place of an array of their values; none for an array."""
    if isinstance(given, str):
        return (given,)
    named = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
    return tuple(given) if named else ()


def has_names(table: Any) -> bool:
    """Whether a table knows the names of its columns.

    Examples
    --------
    >>> has_names({"m": [91.0]}), has_names(np.zeros((3, 2)))
    (True, False)
    """
    if hasattr(table, "dtype"):  # numpy, also scipy's sparse arrays
        return bool(table.dtype.names) if isinstance(table, np.ndarray) else False
    known = isinstance(table, Mapping) or hasattr(table, "columns") or hasattr(table, "__arrow_c_stream__")
    return known or _is_from(table, "awkward")


def fill_masked(values: Any, what: str = "a masked column") -> NDArray[Any]:
    """Return an array with NaN where it is masked; the same one where nothing is.

    Examples
    --------
    >>> fill_masked(np.ma.array([1, 2], mask=[False, True]))
    array([ 1., nan])
    """
    if not np.ma.is_masked(values):
        return np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise DataError(f"{what} is masked and has type {values.dtype}: features must be numbers")
    filled = np.asarray(values.astype(np.result_type(values.dtype, np.float32)).filled(np.nan))
    return _require_exact(filled, what) if values.dtype.kind in "iu" else filled


def require_unmasked(values: Any, what: str) -> NDArray[Any]:
    """Return an array of which no value is masked, or missing in an option type of awkward or Arrow."""
    if _is_from(values, "awkward"):
        import awkward as ak

        if values.ndim != 1:
            raise DataError(f"{what} has several values per row")
        values = ak.to_numpy(values, allow_missing=True)
    if np.ma.is_masked(values) or getattr(values, "null_count", 0) > 0:
        raise DataError(f"{what} is masked: every row needs a value")
    return np.asarray(values)


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
    return {label: fill_masked(array[:, i]) for i, label in enumerate(labels)}


def refuse_repeated(names: Sequence[str], context: str) -> None:
    """Refuse a table in which two columns have one name."""
    if twice := find_repeated(names):
        raise DataError(f"{context}two columns are named {', '.join(twice)}")


def _plain_column(values: Any, what: str) -> NDArray[Any]:
    column = fill_masked(values, what)
    if column.ndim == 0:
        raise DataError(f"{what} is a single value: one for each row is needed")
    return column


def _pandas_column(column: Any, what: str) -> NDArray[Any]:
    """Values of a pandas column; missing ones of nullable truths, which numpy holds as objects only, as NaN."""
    if column.dtype.kind == "b" and column.isna().any():
        return np.asarray(column.to_numpy(np.float32, na_value=np.nan))
    values = np.asarray(column.to_numpy())
    categories = getattr(column.dtype, "categories", None)
    if values.dtype == object and getattr(categories, "inferred_type", "") in NUMBERS:
        known = np.append(np.asarray(categories, np.float64), np.nan)
        return np.asarray(known[column.cat.codes])  # missing is −1, the last
    return _require_exact(values, what) if column.dtype.kind in "iu" else values


def _awkward_column(array: Any, what: str) -> NDArray[Any]:
    import awkward as ak

    if array.ndim != 1:
        raise DataError(f"{what} has several values per row: pick an element first")
    if "?" not in str(array.type):
        return np.asarray(ak.to_numpy(array))
    values = np.asarray(ak.to_numpy(ak.fill_none(array, np.nan)))
    return _require_exact(values, what) if "int" in str(array.type) else values


def _require_exact(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Refuse whole numbers that floating point, which missing values among them need, has rounded."""
    if values.dtype.kind == "f" and np.any(np.abs(values) >= 2.0 ** (np.finfo(values.dtype).nmant + 1)):
        raise DataError(
            f"{what} has missing values, and whole numbers that {values.dtype} does not hold exactly; fill or drop "
            "the missing ones"
        )
    return values


def _arrow_column(column: Any, what: str) -> NDArray[Any]:
    """Numbers, or text as Python strings: names of processes. Features of text are refused where they are used."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return np.asarray(column.to_pylist(), dtype=object)
    return arrow_to_numpy(column, what)


def arrow_to_numpy(column: Any, what: str) -> NDArray[Any]:
    """Return an Arrow column as numpy, zero-copy where it is one chunk without nulls; nulls become NaN."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_truth, is_other = pa.types.is_boolean(kind), pa.types.is_decimal(kind) or pa.types.is_null(kind)
    if not (is_truth or is_other or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(f"{what} has type {kind}: numbers are needed")
    if kind != column.type:
        column = column.cast(kind)
    if is_other or (is_truth and column.null_count):
        column = column.cast(pa.int8() if is_truth else pa.float64())
    if column.null_count:
        values = np.asarray(column.to_numpy())
        return _require_exact(values, what) if pa.types.is_integer(kind) else values
    if column.num_chunks == 1:
        chunk = column.chunk(0)
        try:
            return np.asarray(chunk.to_numpy(zero_copy_only=True))
        except ValueError:
            return np.asarray(chunk.to_numpy(zero_copy_only=False))
    return np.asarray(column.to_numpy())
