"""Named tables to a ROOT file, one tree each, or to a folder of Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from qbdt.errors import OutputError
from qbdt.files import replace_file

__all__ = ["write_tables"]


def write_tables(path: str | Path, tables: Iterable[tuple[str, Mapping[str, NDArray[Any]]]]) -> list[str]:
    """Write tables as they come; returns their names.

    Parameters
    ----------
    path
        A file that ends in .root, or a folder, made if absent, for Parquet files.
    tables
        Pairs of a name and its columns.
    """
    target = Path(path)
    return _write_root(target, tables) if target.suffix == ".root" else _write_parquet(target, tables)


def _write_root(path: Path, tables: Iterable[tuple[str, Mapping[str, NDArray[Any]]]]) -> list[str]:
    import uproot

    names = []
    with replace_file(path) as scratch, uproot.recreate(scratch) as file:
        for name, columns in tables:
            file.mktree(name, {key: values.dtype for key, values in columns.items()}).extend(dict(columns))
            names.append(name)
    return names


def _write_parquet(folder: Path, tables: Iterable[tuple[str, Mapping[str, NDArray[Any]]]]) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error
    names = []
    for name, columns in tables:
        with replace_file(folder / f"{name}.parquet") as scratch:
            pq.write_table(pa.table(dict(columns)), scratch)
        names.append(name)
    return names
