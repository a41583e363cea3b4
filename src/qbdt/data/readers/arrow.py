"""Parquet, Feather and CSV through pyarrow, and tables in memory, in chunks of the columns asked for."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.data.columns import arrow_to_numpy, as_arrow, as_columns, column_readers, has_names, refuse_repeated
from qbdt.data.lists import has_lists
from qbdt.data.readers.table import CHUNK_BYTES, Share, TableFile, each_readable, readable
from qbdt.errors import DataError


class MemoryTable:
    """A table in memory (numpy, pandas, Arrow, awkward, a mapping of columns), read as if it were a file."""

    def __init__(self, table: Any, label: str = "table in memory") -> None:
        self.label, self.first_row = label, 0
        self._readers = _list_readers(table)
        self._columns: dict[str, Any] = {}  # those that were asked for
        lengths = {name: _count_rows(values, name, label) for name, values in _list_sized(table)}
        self.n_rows: int | None = next(iter(lengths.values()), 0)
        for name, n_rows in lengths.items():
            if n_rows != self.n_rows:
                raise DataError(f"{label}: column {name} has {n_rows} rows, others have {self.n_rows}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self._readers)

    def chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Views of the columns, piece by piece."""
        self._columns |= {name: self._readers[name]() for name in columns if name not in self._columns}
        step = max(1, CHUNK_BYTES // (8 * max(len(columns), 1)))
        for start in range(0, self.n_rows or 0, step):
            yield {name: self._columns[name][start : start + step] for name in columns}


def _list_readers(table: Any) -> dict[str, Callable[[], Any]]:
    """Functions that read the columns of a table, those with several values per row as lists."""
    if (arrow := as_arrow(table)) is not None:
        refuse_repeated(arrow.column_names, "")
        fields = [(name, *place) for field in arrow.schema for name, place in _list_fields(field)]
        return {n: partial(_numpy_or_awkward, arrow.column(of), f"column {n}", field) for n, of, field in fields}
    if not has_names(table):
        return {name: partial(np.asarray, values) for name, values in as_columns(table).items()}
    names = list(table) if isinstance(table, Mapping) else getattr(table, "fields", [])
    lists = {str(name): table[name] for name in names if has_lists(table[name])}
    return column_readers(table) | {name: partial(_same, values) for name, values in lists.items()}


def _same(values: Any) -> Any:
    return values


def _list_sized(table: Any) -> list[tuple[str, Any]]:
    """What has a length: the columns of a mapping, any other table as a whole."""
    return list(table.items()) if isinstance(table, Mapping) else [("", table)]


def _count_rows(values: Any, name: str, label: str) -> int:
    try:
        return len(values)
    except TypeError:
        raise DataError(f"{label}: column {name} is a single value: one for each row is needed") from None


class _Batches:
    """A file that pyarrow reads as a sequence of record batches. Fields of records are columns: `jet.pt`, `muon.pt`."""

    def __init__(
        self,
        path: str,
        format_name: str,
        schema: Any,
        n_rows: int | None,
        read: Callable[[dict[str, list[str]]], Iterator[Any]],
        first_row: int = 0,
    ) -> None:
        with readable(path, format_name):  # names are decoded here
            names = schema.names
        refuse_repeated(names, f"{path}: ")
        self.first_row = first_row
        self.label = path
        self._fields = {name: place for field in schema for name, place in _list_fields(field)}
        self.names = tuple(self._fields)
        self.n_rows = n_rows
        self._format_name, self._read = format_name, read

    def chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        import pyarrow as pa

        wanted: dict[str, list[str]] = {}
        for name in columns:
            column, field = self._fields[name]
            wanted.setdefault(column, []).extend([field] if field else [])
        with readable(self.label, self._format_name):
            batches = self._read(wanted)
        for batch in each_readable(self.label, self._format_name, batches):
            table = pa.table(batch)
            yield {name: self._values(name, table) for name in columns}
            del batch, table

    def _values(self, name: str, table: Any) -> Any:
        column, field = self._fields[name]
        return _numpy_or_awkward(table.column(column), f"{self.label}: column {name}", field)


def _row_groups(metadata: Any, chosen: range, n_columns: int) -> Iterator[list[int]]:
    """Consecutive row groups that together make a chunk; `iter_batches` would read ahead through the whole file."""
    rows_per_chunk = CHUNK_BYTES // (8 * max(n_columns, 1))
    groups: list[int] = []
    rows = 0
    for i in chosen:
        groups.append(i)
        rows += metadata.row_group(i).num_rows
        if rows >= rows_per_chunk or i == chosen[-1]:
            yield groups
            groups, rows = [], 0


@contextmanager
def _parquet(path: str, share: Share) -> Iterator[TableFile]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with readable(path, "Parquet"):
        file = pq.ParquetFile(path, page_checksum_verification=True)
        chosen = share.of(file.metadata.num_row_groups)
        n_rows, first_row = (
            sum(file.metadata.row_group(i).num_rows for i in groups) for groups in (chosen, range(chosen.start))
        )

    def read(columns: dict[str, list[str]]) -> Iterator[Any]:
        flat = [name for name, fields in columns.items() if not fields]
        for groups in _row_groups(file.metadata, chosen, sum(max(len(fields), 1) for fields in columns.values())):
            pieces = [flat[i : i + 4] for i in range(0, len(flat), 4)]
            arrays = [column for piece in pieces for column in file.read_row_groups(groups, columns=piece).columns]
            for name, fields in columns.items():
                if fields:
                    arrays.append(file.read_row_groups(groups, columns=_leaves(file, name, fields)).column(name))
            yield pa.Table.from_arrays(arrays, [*flat, *(name for name, fields in columns.items() if fields)])
            del arrays

    with file:
        yield _Batches(path, "Parquet", file.schema_arrow, n_rows, read, first_row)


def _leaves(file: Any, column: str, fields: list[str]) -> list[str]:
    """Paths of the fields of a column of records, or of lists of records, in a Parquet file: `jet.list.item.pt`."""
    paths = [file.schema.column(i).path for i in range(len(file.schema.names))]
    return [path for path in paths if path.startswith(f"{column}.") and path.rpartition(".")[2] in fields]


@contextmanager
def _feather(path: str, share: Share) -> Iterator[TableFile]:
    import pyarrow as pa

    with readable(path, "Feather"):
        source = pa.memory_map(path)
        whole = pa.ipc.open_file(source)
        schema, batches = whole.schema, share.of(whole.num_record_batches)
        first_row = sum(whole.get_batch(i).num_rows for i in range(batches.start))

    def read(columns: dict[str, list[str]]) -> Iterator[Any]:
        options = pa.ipc.IpcReadOptions(included_fields=[schema.names.index(name) for name in columns])
        reader = pa.ipc.open_file(source, options=options)
        return (reader.get_batch(i) for i in batches)

    with source:
        yield _Batches(path, "Feather", schema, None, read, first_row)


@contextmanager
def _csv(path: str, share: Share) -> Iterator[TableFile]:
    import pyarrow as pa
    from pyarrow import csv

    block = csv.ReadOptions(block_size=CHUNK_BYTES // 8)
    with readable(path, "CSV"), csv.open_csv(path, read_options=block) as head:
        schema = head.schema

    def read(columns: dict[str, list[str]]) -> Iterator[Any]:
        # Types are guessed from the first block; a later one may hold 1.5 in a column that began with whole numbers.
        whole = [f.name for f in schema if pa.types.is_integer(f.type) or pa.types.is_null(f.type)]
        options = csv.ConvertOptions(
            include_columns=list(columns), column_types=dict.fromkeys(whole, pa.string()), strings_can_be_null=True
        )
        for batch in csv.open_csv(path, block, convert_options=options) if share.of(1) else ():
            values = zip(batch.schema.names, batch.columns, strict=True)
            yield pa.table({name: _parse_numbers(one) if name in whole else one for name, one in values})

    yield _Batches(path, "CSV", schema, None, read)


def _parse_numbers(texts: Any) -> Any:
    """Numbers of texts: with 64 bits where all are whole, since double precision would round them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(texts)
    try:
        return trimmed.cast(pa.int64())
    except pa.ArrowInvalid:
        return trimmed.cast(pa.float64())


@contextmanager
def _open_zipped_csv(path: str, share: Share) -> Iterator[TableFile]:
    """CSV in an archive: pyarrow unpacks streams as it reads; the one file of a .zip is unpacked first."""
    if not path.endswith(".zip"):
        with _csv(path, share) as table:
            yield table
        return
    with tempfile.TemporaryDirectory() as folder:
        with readable(path, "ZIP"), zipfile.ZipFile(path) as archive:
            inside = [name for name in archive.namelist() if name.lower().endswith(".csv")]
            if len(inside) != 1:
                raise DataError(f"{path}: {len(inside)} CSV files are in it: one is needed")
            unpacked = Path(folder) / "table.csv"
            with archive.open(inside[0]) as source, unpacked.open("wb") as target:
                shutil.copyfileobj(source, target)
        with _csv(str(unpacked), share) as table:
            table.label = path  # type: ignore[misc]  # what messages call it
            yield table


OPENERS: dict[str, Callable[[str, Share], AbstractContextManager[TableFile]]] = {
    ".parquet": _parquet,
    ".pq": _parquet,
    ".feather": _feather,
    ".arrow": _feather,
    ".csv": _csv,
    **dict.fromkeys((".csv.gz", ".csv.bz2", ".csv.zst", ".csv.zip"), _open_zipped_csv),
}
"""Reader of each file ending."""


def _list_fields(field: Any) -> Iterator[tuple[str, tuple[str, str]]]:
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


def _numpy_or_awkward(column: Any, what: str, field: str = "") -> Any:
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
