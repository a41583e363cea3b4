"""Files of a run: parts, and the sample's Parquet files with their metadata.

In: batches. Out: the folder format of `qbdt.data.samples.objects`. Everything is read and written piece by piece, so
memory does not grow with the sample; files appear under their final name only when complete.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from qbdt import __version__
from qbdt.data.samples import FORMAT_VERSION, METADATA, SELECTION, Objects, ObjectsWriter, Reconstruction, checksum
from qbdt.errors import require
from qbdt.files import replace_file, write_text
from qbdt.studies.generator.constants import BEAM_ENERGY_SQUARED, DECAY_MODE_FRACTION, LUMINOSITY
from qbdt.studies.generator.hard import Pilot
from qbdt.studies.generator.simulate import Batch

__all__ = ["PartRecord", "finish_process", "read_part", "write_metadata", "write_part"]

COUNTS = b"qbdt.counts"


@dataclass(frozen=True, slots=True)
class PartRecord:
    """Counts of one batch; see `Batch`."""

    n_selected: int
    n_points: int
    n_showered: int
    weight_sum: float
    clipped_sum: float


def write_part(path: Path, batch: Batch) -> PartRecord:
    """Write one batch with its counts."""
    record = PartRecord(int(batch.nominal.sum()), batch.n_points, batch.n_showered, batch.weight_sum, batch.clipped_sum)
    table = batch.objects.to_table().replace_schema_metadata({COUNTS: json.dumps(asdict(record))})
    with replace_file(path) as scratch:
        pq.write_table(table, scratch, compression="zstd", use_dictionary=False)
    return record


def read_part(path: Path) -> tuple[Objects, PartRecord]:
    """Read what `write_part` wrote."""
    table = pq.read_table(path)
    return Objects.from_table(table), PartRecord(**json.loads(table.schema.metadata[COUNTS]))


def finish_process(
    out: Path, name: str, wanted: int, records: list[PartRecord], paths: list[Path], pilot: Pilot
) -> dict[str, Any]:
    """Join the parts, stop at the last requested event, and return the process's entry of the metadata.

    The yield uses every event of all parts; the weight spreads it over those that are kept.
    """
    path = out / f"{name}.parquet"
    stored = 0
    missing = wanted
    with replace_file(path) as scratch, ObjectsWriter(scratch) as writer:
        for part in paths:
            objects, _ = read_part(part)
            objects = objects[: _length_with(Reconstruction(objects).passes(), missing)]
            missing -= int(Reconstruction(objects).passes().sum())
            writer.write(_renumbered(objects, stored))
            stored += len(objects)
    return {"file": path.name, "sha256": checksum(path), "events": stored, "selected": wanted} | _normalisation(
        wanted, records, pilot
    )


def _length_with(selected: NDArray[np.bool_], wanted: int) -> int:
    """Number of leading events that hold at most `wanted` selected ones."""
    return int(np.searchsorted(np.cumsum(selected), wanted, side="right")) if selected.sum() > wanted else len(selected)


def _renumbered(objects: Objects, first: int) -> Objects:
    numbers = np.arange(first, first + len(objects), dtype=np.int64)
    return Objects(numbers, *(getattr(objects, name) for name in objects.__slots__[1:]))


def _normalisation(wanted: int, records: list[PartRecord], pilot: Pilot) -> dict[str, Any]:
    points = sum(record.n_points for record in records)
    selected = sum(record.n_selected for record in records)
    weight_sum = sum(record.weight_sum for record in records)
    total = LUMINOSITY * DECAY_MODE_FRACTION * pilot.largest * selected / points
    return {
        "weight": total / wanted,
        "yield": total,
        "yield_error": total / math.sqrt(selected),
        "cross_section_fb": weight_sum / points,
        "pilot": asdict(pilot),
        "clipped_share": sum(record.clipped_sum for record in records) / weight_sum,
        "batches": len(records),
        "points": points,
        "showered": sum(record.n_showered for record in records),
        "selected_in_batches": selected,
    }


def write_metadata(out: Path, processes: dict[str, Any], settings: dict[str, Any]) -> None:
    """Write `metadata.json`, the last file of a run: with it the folder is complete."""
    metadata = {
        "format": FORMAT_VERSION,
        "sample": "h → γττ and pp → γττ, one leptonic and one hadronic tau decay",
        "sqrt_s_gev": math.sqrt(BEAM_ENERGY_SQUARED),
        "luminosity_fb": LUMINOSITY,
        "decay_mode_fraction": DECAY_MODE_FRACTION,
        "selection": asdict(SELECTION),
        "settings": settings,
        "versions": {"qbdt": __version__, "pythia8mc": _pythia_version(), "numpy": np.__version__},
        "processes": processes,
    }
    write_text(out / METADATA, json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")


def _pythia_version() -> str:
    from importlib.metadata import version

    require("pythia8mc", "qbdt generate")
    return version("pythia8mc")
