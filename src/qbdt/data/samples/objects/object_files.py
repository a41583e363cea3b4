"""`Objects`: the objects that a detector reconstructs in h → γττ events, and their Parquet layout.

Owns the columns, their precision and the folder format: one Parquet file per process and `metadata.json` with the
yields, the settings and a checksum of each file. Objects are stored instead of variables because all variables of all
variations follow from them (`reconstruction`) at a quarter of the size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from qbdt.errors import DataError
from qbdt.files import digest_file

PROCESSES = ("signal", "background")
METADATA = "metadata.json"
FORMAT_VERSION = 1
MANTISSA_BITS = 14
"""Bits kept of the 23 of a float32: a relative step of 6e-5, far below any resolution, at 70 % of the size."""


@dataclass(frozen=True, slots=True)
class Objects:
    """One lepton, one hadronic tau, one photon and the missing momentum per event, in GeV and radians."""

    event_number: NDArray[np.int64]
    lepton_flavour: NDArray[np.int8]  # PDG code, 11 or 13
    lepton_pt: NDArray[np.float32]
    lepton_eta: NDArray[np.float32]
    lepton_phi: NDArray[np.float32]
    tau_pt: NDArray[np.float32]
    tau_eta: NDArray[np.float32]
    tau_phi: NDArray[np.float32]
    tau_mass: NDArray[np.float32]
    photon_pt: NDArray[np.float32]
    photon_eta: NDArray[np.float32]
    photon_phi: NDArray[np.float32]
    # met_x, met_y: missing transverse momentum, resolution included
    met_x: NDArray[np.float32]
    met_y: NDArray[np.float32]
    # residual_x, residual_y: its share from the resolution; the neutrinos are the difference
    residual_x: NDArray[np.float32]
    residual_y: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.event_number)

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Objects:
        return Objects(*(getattr(self, field.name)[rows] for field in fields(self)))

    def to_table(self) -> pa.Table:
        """Return the columns as an Arrow table."""
        return pa.table({field.name: getattr(self, field.name) for field in fields(self)}, schema=SCHEMA)

    @classmethod
    def from_table(cls, table: pa.Table) -> Objects:
        """Read the columns from an Arrow table; one that lacks a column is refused."""
        absent = [name for name in SCHEMA.names if name not in table.column_names]
        if absent:
            raise DataError(
                f"no column {', '.join(absent)} among the objects; there are: {', '.join(table.column_names)}"
            )
        table = table.select(SCHEMA.names).cast(SCHEMA).combine_chunks()
        return cls(*(table.column(name).to_numpy() for name in SCHEMA.names))

    @classmethod
    def concatenate(cls, pieces: list[Objects]) -> Objects:
        """Join the events of several pieces."""
        return cls(*(np.concatenate([getattr(piece, field.name) for piece in pieces]) for field in fields(cls)))


FLOATS = tuple(field.name for field in fields(Objects))[2:]
SCHEMA = pa.schema(
    [("event_number", pa.int64()), ("lepton_flavour", pa.int8()), *((name, pa.float32()) for name in FLOATS)]
)


def round_mantissa(values: NDArray[Any], bits: int = MANTISSA_BITS) -> NDArray[np.float32]:
    """Round to float32 with fewer mantissa bits, half away from zero, so that files compress.

    Examples
    --------
    >>> float(round_mantissa(np.array([1.0 + 2.0**-14]), bits=14)[0]) == 1 + 2**-14
    True
    >>> float(round_mantissa(np.array([1.0 + 2.0**-16]), bits=14)[0])
    1.0
    """
    drop = 23 - bits
    raw = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (raw + np.uint32(1 << (drop - 1))) & np.uint32(0xFFFFFFFF ^ ((1 << drop) - 1))
    return rounded.view(np.float32)


class ObjectsWriter:
    """Write objects of one process to Parquet piece by piece, in row groups of one size whatever the pieces are."""

    def __init__(self, path: Path, rows_per_group: int = 131_072) -> None:
        self._writer = pq.ParquetWriter(
            path,
            SCHEMA,
            compression="zstd",
            compression_level=19,
            use_dictionary=False,
            column_encoding={"event_number": "DELTA_BINARY_PACKED", "lepton_flavour": "PLAIN"}
            | dict.fromkeys(FLOATS, "BYTE_STREAM_SPLIT"),
        )
        self._rows_per_group = rows_per_group
        self._waiting: list[pa.Table] = []

    def write(self, objects: Objects) -> None:
        """Append events."""
        self._waiting.append(objects.to_table())
        if sum(len(table) for table in self._waiting) >= self._rows_per_group:
            joined = pa.concat_tables(self._waiting)
            full = len(joined) // self._rows_per_group * self._rows_per_group
            self._writer.write_table(joined.slice(0, full), row_group_size=self._rows_per_group)
            self._waiting = [joined.slice(full)]

    def close(self) -> None:
        """Write what is left and finish the file."""
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), row_group_size=self._rows_per_group)
        self._writer.close()

    def __enter__(self) -> ObjectsWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_metadata(folder: Path) -> dict[str, Any]:
    """Read and check `metadata.json` of a sample's folder."""
    path = folder / METADATA
    if not path.is_file():
        raise DataError(f"{folder}: no {METADATA}: this is not a folder that `qbdt generate` finished")
    try:
        metadata: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}: not valid JSON: {error}") from error
    if metadata.get("format") != FORMAT_VERSION:
        raise DataError(f"{path}: format {metadata.get('format')}: this version of qbdt reads format {FORMAT_VERSION}")
    return metadata


def read_folder(folder: Path) -> Iterator[tuple[str, Objects, float]]:
    """Yield (process, objects, weight per event) from a folder that `qbdt generate tautaugamma` wrote.

    The checksums of `metadata.json` are compared first, and a damaged file is refused.
    """
    metadata = read_metadata(folder)
    for process, entry in metadata["processes"].items():
        path = folder / entry["file"]
        if not path.is_file():
            raise DataError(f"{path}: the file is named in {METADATA} but absent")
        if digest_file(path) != entry["sha256"]:
            raise DataError(f"{path}: the checksum differs from {METADATA}: the file is damaged or was replaced")
        yield process, Objects.from_table(pq.read_table(path)), float(entry["weight"])
