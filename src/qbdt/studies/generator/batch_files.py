"""Files of a run: one for each batch, and the sample's Parquet files with their metadata.

In: batches. Out: the folder format of `qbdt.data.samples.objects`. Everything is read and written piece by piece, so
memory does not grow with the sample; files appear under their final name only when complete.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from qbdt import __version__
from qbdt.data.samples.objects import FORMAT_VERSION, METADATA, SELECTION, Objects, ObjectsWriter, Reconstruction
from qbdt.errors import require
from qbdt.files import digest_file, replace_file, write_text
from qbdt.studies.generator.constants import BEAM_ENERGY_SQUARED, DECAY_MODE_FRACTION, LUMINOSITY
from qbdt.studies.generator.processes import Pilot
from qbdt.studies.generator.simulation import BatchCounts

COUNTS = b"qbdt.counts"


def write_batch(path: Path, objects: Objects, counts: BatchCounts) -> None:
    """Write one batch with its counts."""
    table = objects.to_table().replace_schema_metadata({COUNTS: json.dumps(asdict(counts))})
    with replace_file(path) as scratch:
        pq.write_table(table, scratch, compression="zstd", use_dictionary=False)


def read_batch(path: Path) -> tuple[Objects, BatchCounts]:
    """Read a file of `write_batch`."""
    table = pq.read_table(path)
    return Objects.from_table(table), BatchCounts(**json.loads(table.schema.metadata[COUNTS]))


def finish_process(
    out: Path, name: str, wanted: int, counts: list[BatchCounts], paths: list[Path], pilot: Pilot
) -> dict[str, Any]:
    """Join the batches, stop at the last requested event, and return the process's entry of the metadata.

    The yield uses every event of all batches; the weight spreads it over those that are kept.
    """
    path = out / f"{name}.parquet"
    stored = 0
    missing = wanted
    with replace_file(path) as scratch, ObjectsWriter(scratch) as writer:
        for batch in paths:
            objects, _ = read_batch(batch)
            objects = objects[: _count_events(Reconstruction(objects).passes(), missing)]
            missing -= int(Reconstruction(objects).passes().sum())
            writer.write(_renumber(objects, stored))
            stored += len(objects)
    return {"file": path.name, "sha256": digest_file(path), "events": stored, "selected": wanted} | _normalisation(
        wanted, counts, pilot
    )


def _count_events(selected: NDArray[np.bool_], wanted: int) -> int:
    """Number of leading events that hold at most `wanted` selected ones."""
    return int(np.searchsorted(np.cumsum(selected), wanted, side="right")) if selected.sum() > wanted else len(selected)


def _renumber(objects: Objects, first: int) -> Objects:
    numbers = np.arange(first, first + len(objects), dtype=np.int64)
    return Objects(numbers, *(getattr(objects, name) for name in objects.__slots__[1:]))


def _normalisation(wanted: int, counts: list[BatchCounts], pilot: Pilot) -> dict[str, Any]:
    points = sum(batch.n_points for batch in counts)
    selected = sum(batch.n_selected for batch in counts)
    weight_sum = sum(batch.weight_sum for batch in counts)
    # Each survivor of unweighting stands for largest/points fb; times luminosity and the share of these decays.
    total = LUMINOSITY * DECAY_MODE_FRACTION * pilot.largest * selected / points
    return {
        "weight": total / wanted,
        "yield": total,
        "yield_error": total / math.sqrt(selected),
        "cross_section_fb": weight_sum / points,
        "pilot": asdict(pilot),
        "clipped_share": sum(batch.clipped_sum for batch in counts) / weight_sum,
        "batches": len(counts),
        "points": points,
        "showered": sum(batch.n_showered for batch in counts),
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
