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

from qbdt.analysis.region_events import RegionEvents
from qbdt.analysis.schema import Analysis
from qbdt.data import Dataset, Events, Role, Systematic
from qbdt.files import choose_file_names, choose_words, make_folder, replace_folder

ANALYSIS_FILE = "scored.yaml"


def write_scored(scored: RegionEvents, folder: Path | str, analysis: Analysis) -> Path:
    """Write scored events to a folder in place of an earlier one; all files appear at once or not at all.

    The analysis file among them, for `qbdt fit`, takes its name, fit and correlations from `analysis`; its path is
    returned.
    """
    with replace_folder(Path(folder)) as scratch:
        write_scored_tables(scored, scratch)
        write_description(scored, scratch, analysis)
    return Path(folder) / ANALYSIS_FILE


def write_scored_tables(scored: RegionEvents, folder: Path, ending: str = "") -> None:
    """Write the tables of scored events, or of a partition of them whose files have an ending of their own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path, columns in _tables(scored.flatten()):
        target = folder / f"{path}{ending}.parquet"
        make_folder(target.parent)
        pq.write_table(pa.table(columns), target, write_page_checksum=True)


def write_description(scored: RegionEvents, folder: Path, analysis: Analysis, endings: str = "") -> None:
    """Write the analysis file that reads the tables; `endings` is a wildcard where there are partitions."""
    plain = _analysis(scored.flatten(), analysis, endings)
    if scored.regions:
        plain |= {"features": list(scored.features), "regions": scored.flat_regions()}
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    (folder / ANALYSIS_FILE).write_text(text, encoding="utf-8")


def choose_score_name(events: Events) -> str:
    """Name of the column of scores: `score`, unless an identifier is called so."""
    return choose_words(["score"], events.id_names)[0]


def _tables(scored: Dataset) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Path, without ending, and columns of each table: nominal ones, and those of a direction in its own folder."""
    files, folders, names = _file_names(scored), _folder_names(scored), _Names(scored)
    for sample in scored.samples:
        columns = _columns(sample.events, names.weight)
        for source in scored.systematics:
            if sample.name in _list_changed(source) and _form(source) == "weight":
                for direction, effect in source.directions:
                    varied = effect[sample.name].apply(sample.events)
                    columns[names.varied_weight(source, direction)] = varied.weight
        yield files[sample.name], columns
    for source in scored.systematics:
        if _form(source) == "shape":
            for direction, _ in source.directions:
                shifted = scored.varied(source.name, direction)
                for process in _list_changed(source):
                    path = f"{folders[source.name]}_{direction}/{files[process]}"
                    yield path, _columns(shifted[process], names.weight)


def _file_names(scored: Dataset) -> dict[str, str]:
    names = [sample.name for sample in scored.samples]
    return dict(zip(names, choose_file_names(names), strict=True))


def _folder_names(scored: Dataset) -> dict[str, str]:
    names = [source.name for source in scored.systematics]
    return dict(zip(names, choose_file_names(names), strict=True))


class _Names:
    """Names of the columns of weights, none of which is that of an identifier or of the score."""

    def __init__(self, scored: Dataset) -> None:
        sides = [(source.name, side) for source in scored.systematics for side in ("up", "down")]
        wanted = ["weight", *(f"w{number // 2}_{side}" for number, (_, side) in enumerate(sides))]
        taken = {name for s in scored.samples for name in (*s.events.id_names, *s.events.features)}
        self.weight, *varied = choose_words(wanted, taken)
        self._varied = dict(zip(sides, varied, strict=True))

    def varied_weight(self, source: Systematic, direction: str) -> str:
        """Column of the weights of one direction of a source."""
        return self._varied[source.name, direction]


def _columns(events: Events, weight: str) -> dict[str, NDArray[Any]]:
    identifiers = {name: np.asarray(events.identifier(name)) for name in events.id_names}
    columns = {name: np.asarray(events.column(name)) for name in events.features}
    return {**identifiers, **columns, weight: events.weight}


def _form(source: Systematic) -> str:
    """How a source is written: a norm on some rows of a process becomes weights."""
    if any(source.replaces_events(process) for process in source.processes):
        return "shape"
    return "weight" if _list_changed(source) else "norm"


def _list_changed(source: Systematic) -> list[str]:
    """Processes that a source does not only scale."""
    return [process for process in source.processes if source.relative_shift(process) is None]


def _size(source: Systematic, process: str) -> float | list[float]:
    """Size of a normalisation, or its changes down and up."""
    up, *down = [effect[process].relative_size for _, effect in source.directions]
    assert up is not None
    return up if not down or down[0] == -up else [float(down[0] or 0.0), up]


def _analysis(scored: Dataset, analysis: Analysis, endings: str) -> dict[str, Any]:
    files, folders, names = _file_names(scored), _folder_names(scored), _Names(scored)
    fit = analysis.fit.model_dump(mode="json", exclude_defaults=True)
    fit |= {"transform": analysis.fit.transform, "binning": analysis.fit.binning}  # known by the training
    if analysis.tied:  # by sections of samples, which are plain files here
        fit["abcd"] = {name: list(regions) for name, regions in analysis.tied.items()}
    splitting = {name: {"decorrelate": ways} for name, ways in analysis.split_sources.items()}
    plain: dict[str, Any] = {
        "name": analysis.name,
        "features": list(scored.features),
        "weight": names.weight,
        "samples": {
            s.name: {"role": str(Role(s.role)), "files": f"{files[s.name]}{endings}.parquet", "weight": names.weight}
            for s in scored.samples
        },
        "systematics": {
            s.name: {**_source(s, names, folders[s.name]), **splitting.get(s.name, {})} for s in scored.systematics
        },
        "fit": fit,
    }
    if scored.folds is not None:
        plain["folds"] = scored.folds.to_dict()
    return plain


def _source(source: Systematic, names: _Names, folder: str) -> dict[str, Any]:
    form = _form(source)
    sizes = {process: _size(source, process) for process in source.processes if process not in _list_changed(source)}
    if form == "norm":
        return {"kind": form, "size": sizes}
    plain: dict[str, Any] = {"kind": form, "processes": _list_changed(source), **({"norm": sizes} if sizes else {})}
    for direction, _ in source.directions:
        files = {"files": f"{folder}_{direction}/{{file}}.parquet"}
        plain[direction] = files if form == "shape" else names.varied_weight(source, direction)
    return plain
