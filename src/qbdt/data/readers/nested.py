"""Columns of Arrow tables as numpy or awkward arrays: numbers, lists, records, and lists of records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qbdt.data.columns import arrow_to_numpy

__all__ = ["list_fields", "numpy_or_awkward"]


def list_fields(field: Any) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names under which a column is read, with the column and its field: `jet.pt` for lists of records."""
    import pyarrow as pa

    kind = field.type.value_type if _is_list(field.type) else field.type
    if not pa.types.is_struct(kind):
        yield field.name, (field.name, "")
        return
    for i in range(kind.num_fields):
        yield f"{field.name}.{kind.field(i).name}", (field.name, kind.field(i).name)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def numpy_or_awkward(column: Any, what: str, field: str = "") -> Any:
    """Return a column, or one field of its records, as numpy; as awkward lists where it has several values per row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_list(column.type):
        values = pc.struct_field(column, field) if field else column
        return arrow_to_numpy(values, what)
    import awkward as ak

    lists = column.cast(pa.large_list(column.type.value_type)).combine_chunks()  # awkward pads 64-bit offsets only
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    flat = pc.list_flatten(lists)
    flat = pc.struct_field(flat, field) if field else flat
    chunks = flat if isinstance(flat, pa.ChunkedArray) else pa.chunked_array([flat])
    return ak.unflatten(arrow_to_numpy(chunks, what), lengths)
