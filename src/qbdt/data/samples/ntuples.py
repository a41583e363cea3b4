"""The h → γττ sample as ROOT files, in the form in which an analysis has its events.

In: a folder of objects, the bundled one or one that `qbdt generate tautaugamma` wrote. Out: one ROOT file per process,
written piece by piece, so memory does not grow with the sample.
"""

from __future__ import annotations

from importlib.resources import as_file
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import uproot
from numpy.typing import NDArray

from qbdt.data.samples.bundled import BUNDLED
from qbdt.data.samples.objects import Objects, read_metadata
from qbdt.data.samples.reconstruction import EFFICIENCIES, NOMINAL, SHAPES, Reconstruction, efficiency_weight
from qbdt.errors import OutputError
from qbdt.files import replace_file
from qbdt.progress import Progress, silent

__all__ = ["write_bundled_ntuples", "write_ntuples"]


def write_bundled_ntuples(out: Path, *, force: bool = False, progress: Progress = silent) -> list[Path]:
    """Write the bundled sample as ROOT files into a folder, made if it is not there; see `write_ntuples`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: {error.strerror or error}") from error
    with as_file(BUNDLED) as folder:
        return write_ntuples(folder, out, force=force, progress=progress)


def write_ntuples(folder: Path, out: Path, *, force: bool = True, progress: Progress = silent) -> list[Path]:
    """Write a sample of objects as ROOT files.

    Each file has a tree `nominal` with the variables, `event_number`, `weight` and a weight per efficiency source and
    direction, and one tree per shape source and direction, for example `tes_up`.

    Parameters
    ----------
    folder
        The sample.
    out
        Folder for `signal.root` and `background.root`.
    force
        Whether existing files may be replaced.
    progress
        Told how many events are written.

    Returns
    -------
    list of Path
        The files.
    """
    processes = read_metadata(folder)["processes"]
    paths = [out / f"{name}.root" for name in processes]
    for path in paths:
        if path.exists() and not force:
            raise OutputError(f"{path} exists; force=True overwrites it")
    for path, entry in zip(paths, processes.values(), strict=True):
        source = pq.ParquetFile(folder / entry["file"])
        with (
            progress(f"writing {path.name}", source.metadata.num_rows) as advance,
            replace_file(path) as scratch,
            uproot.recreate(scratch) as file,
        ):
            for group in range(source.num_row_groups):
                objects = Objects.from_table(source.read_row_group(group))
                for tree, columns in _trees(objects, float(entry["weight"])).items():
                    if group == 0:
                        file.mktree(tree, {column: values.dtype for column, values in columns.items()})
                    file[tree].extend(columns)
                advance(len(objects))
    return paths


def _trees(objects: Objects, weight: float) -> dict[str, dict[str, NDArray[Any]]]:
    """Columns of all trees for a piece of events."""
    events = Reconstruction(objects)
    shifts = {"nominal": NOMINAL}
    for source, (up, down) in SHAPES.items():
        shifts |= {f"{source}_up": up, f"{source}_down": down}
    trees: dict[str, dict[str, NDArray[Any]]] = {}
    for tree, shift in shifts.items():
        chosen = events.passes(shift)
        columns: dict[str, NDArray[Any]] = {k: v[chosen] for k, v in events.variables(shift).items()}
        trees[tree] = columns | {
            "event_number": objects.event_number[chosen],
            "weight": np.full(int(chosen.sum()), weight),
        }
    nominal = trees["nominal"]
    for source, (variable, *_) in EFFICIENCIES.items():
        for direction, sign in (("up", +1), ("down", -1)):
            nominal[f"weight_{source}_{direction}"] = weight * efficiency_weight(source, nominal[variable], sign)
    return trees
