"""The h → γττ sample, bundled or from a folder that `qbdt generate tautaugamma` wrote: as `Dataset`, or as ROOT files.

The ROOT files have the form in which an analysis has its events; they are written piece by piece, so that memory does
not grow with the sample.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from qbdt.data.dataset import Dataset
from qbdt.data.folds import ModuloFolds
from qbdt.data.samples.objects.object_files import Objects, read_folder, read_metadata
from qbdt.data.samples.objects.reconstruction import (
    EFFICIENCIES,
    NOMINAL,
    SHAPES,
    Reconstruction,
    build_dataset,
    efficiency_weight,
)
from qbdt.errors import OutputError
from qbdt.files import make_folder, recreate_root, replace_file
from qbdt.progress import Progress, silent

BUNDLED = files("qbdt.data.samples") / "data" / "tautaugamma"
"""Where the bundled sample is."""


def tautaugamma(folder: str | PathLike[str] | None = None, *, k: int = 5, paper_met: bool = False) -> Dataset:
    """Load h → γττ against pp → γττ at 13 TeV and 80 fb⁻¹ with seven sources up and down on both.

    Parameters
    ----------
    folder
        Made by `qbdt generate tautaugamma`; the bundled sample if not given.
    k
        Number of folds, by event number modulo k.
    paper_met
        Use the paper's treatment of the missing momentum: the right size in a random direction.

    Examples
    --------
    >>> data = tautaugamma()
    >>> data.features[:4], len(data.systematics)
    (('pt_lep', 'pt_tau', 'pt_pho', 'pt_met'), 7)
    """
    rule = ModuloFolds(k, "event_number")
    if folder is not None:
        return _load(Path(folder), rule, paper_met)
    with as_file(BUNDLED) as bundled:
        return _load(bundled, rule, paper_met)


def _load(folder: Path, rule: ModuloFolds, paper_met: bool) -> Dataset:
    processes = {name: (objects, weight) for name, objects, weight in read_folder(folder)}
    return build_dataset(processes, rule, paper_met=paper_met)


def write_bundled_ntuples(out: Path, *, force: bool = False, progress: Progress = silent) -> list[Path]:
    """Write the bundled sample as ROOT files into a folder, made if it is not there; see `write_ntuples`."""
    make_folder(out)
    with as_file(BUNDLED) as folder:
        return write_ntuples(folder, out, force=force, progress=progress)


def write_ntuples(folder: Path, out: Path, *, force: bool = True, progress: Progress = silent) -> list[Path]:
    """Write a sample of objects in `folder` as `signal.root` and `background.root`; return their paths.

    Each file has a tree `nominal` with the variables, `event_number`, `weight` and a weight per efficiency source and
    direction, and one tree per shape source and direction, for example `tes_up`.
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
            recreate_root(scratch) as file,
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
