"""A scored dataset as a folder of its own: Parquet files and the analysis file that reads them.

A run leaves it between scoring and fitting, and a fit starts from it: the fit can be repeated with other settings
without training again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from qbdt.data import Dataset, Events, Kind, Role, Systematic
from qbdt.errors import DataError
from qbdt.files import replace_folder
from qbdt.inference import FitSettings

__all__ = ["ANALYSIS_FILE", "write_description", "write_scored", "write_tables"]

ANALYSIS_FILE = "scored.yaml"


def write_scored(scored: Dataset, folder: Path | str, name: str, fit: FitSettings) -> Path:
    """Write a scored dataset; all files appear at once or not at all.

    Parameters
    ----------
    scored
        Dataset with one feature, the score.
    folder
        Where to; replaced if it is there.
    name
        Name of the analysis.
    fit
        Settings of the fit, to stand in the analysis file.

    Returns
    -------
    Path
        The analysis file, for `qbdt fit`.
    """
    with replace_folder(Path(folder)) as scratch:
        write_tables(scored, scratch)
        write_description(scored, scratch, name, fit)
    return Path(folder) / ANALYSIS_FILE


def write_tables(scored: Dataset, folder: Path, ending: str = "") -> None:
    """Write the tables of a scored dataset, or of a partition of it whose files have an ending of their own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for sample in scored.samples:
        if "/" in sample.name:
            raise DataError(f"process {sample.name!r}: a name with a slash cannot be the name of a file")
    for stem, columns in _tables(scored):
        pq.write_table(pa.table(columns), folder / f"{stem}{ending}.parquet")


def write_description(scored: Dataset, folder: Path, name: str, fit: FitSettings, endings: str = "") -> None:
    """Write the analysis file that reads the tables; `endings` is a wildcard where there are partitions."""
    text = yaml.safe_dump(_analysis(scored, name, fit, endings), sort_keys=False, allow_unicode=True)
    (folder / ANALYSIS_FILE).write_text(text, encoding="utf-8")


def _tables(scored: Dataset) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    for sample in scored.samples:
        columns = _columns(sample.events)
        for number, source in enumerate(scored.systematics):
            if sample.name in source.processes and _form(source) == "weight":
                for direction, effect in source.directions:
                    columns[f"w{number}_{direction}"] = effect[sample.name].apply(sample.events).weight
        yield sample.name, columns
    for number, source in enumerate(scored.systematics):
        if _form(source) == "shape":
            for direction, _ in source.directions:
                for process, events in scored.varied(source.name, direction).items():
                    yield f"{process}__{number}_{direction}", _columns(events)


def _columns(events: Events) -> dict[str, NDArray[Any]]:
    identifiers = {name: np.asarray(events.identifier(name)) for name in events.id_names}
    score = events.features[0]
    return {**identifiers, score: np.asarray(events.column(score)), "weight": events.weight}


def _form(source: Systematic) -> str:
    """How a source is written: a norm on some rows of a process becomes weights, and so does anything mixed with it."""
    if any(source.replaces_events(process) for process in source.processes):
        return "shape"
    if source.kind is Kind.NORM and all(source.relative_shift(process) is not None for process in source.processes):
        return "norm"
    return "weight"


def _analysis(scored: Dataset, name: str, fit: FitSettings, endings: str) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": name,
        "features": list(scored.features),
        "weight": "weight",
        "samples": {s.name: {"role": str(Role(s.role)), "files": f"{s.name}{endings}.parquet"} for s in scored.samples},
        "systematics": {s.name: _source(s, number, endings) for number, s in enumerate(scored.systematics)},
        "fit": {**fit.model_dump(mode="json", exclude_defaults=True), **_named_choices(fit)},
    }
    if scored.folds is not None:
        plain["folds"] = scored.folds.to_dict()
    return plain


def _named_choices(fit: FitSettings) -> dict[str, str]:
    """Return what depends on the method of the training, which the file does not have."""
    return {"transform": fit.transform, "binning": fit.binning}


def _source(source: Systematic, number: int, endings: str) -> dict[str, Any]:
    form = _form(source)
    plain: dict[str, Any] = {"kind": form, "processes": list(source.processes)}
    if form == "norm":
        return {**plain, "size": next(iter(source.up.values())).relative_size}
    for direction, _ in source.directions:
        files = {"files": f"{{process}}__{number}_{direction}{endings}.parquet"}
        plain[direction] = files if form == "shape" else f"w{number}_{direction}"
    return plain
