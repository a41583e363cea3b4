"""Two runs of one fuzzed analysis, the second on the same events in another order and in more files: one result."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from qbdt.analysis import Run, run_analysis
from qbdt.analysis.analysis_file import parse_analysis
from qbdt.analysis.run_folder import read_run
from qbdt.errors import QBDTError
from tests.fuzz.runs import EVENTS

SAME = 1e-6
"""Largest relative difference of two sums of the same numbers in another order, and of fits to them."""


def use_equivalent_runs(content: Any, folder: Path) -> None:
    """Run an analysis on events as they are and on the same in other files, and compare what comes out.

    Models and scores are the same bits. Sums of weights are the same but for rounding, and so are fits, unless bins
    that are chosen on these sums were equally good.
    """
    runs = [
        _run(*one, folder / name) for one, name in (((content, EVENTS), "whole"), ((_name(content), HALVES), "halves"))
    ]
    if (runs[0] is None) != (runs[1] is None):
        raise AssertionError("one order of the events is refused, and the other is not")
    if runs[0] is None or runs[1] is None:
        return
    models, scores, yields, bins, fits = zip(*(_collect(done) for done in runs if done is not None), strict=True)
    assert models[0] == models[1], "the models differ"
    assert scores[0] == scores[1], "the scores differ"
    _compare(*yields)
    if len(bins[0]) == len(bins[1]) and np.allclose(bins[0], bins[1], rtol=SAME):
        _compare(*fits)


def _run(content: Any, files: dict[str, bytes], folder: Path) -> Run | None:
    """Run an analysis; None where it is refused."""
    folder.mkdir()
    for name, events in files.items():
        (folder / name).write_bytes(events)
    try:
        text = yaml.safe_dump(content, allow_unicode=True)
        return run_analysis(parse_analysis(text), folder, folder / "run", figures=False, n_threads=1)
    except QBDTError:
        return None


def _collect(done: Run) -> tuple[Any, ...]:
    """Models, rows of scored events, yields by place, contents of bins, and numbers of the fit by place."""
    models = {path.name: path.read_bytes() for path in done.folder.glob("*.qbdt")}
    scores = {str(path.relative_to(done.folder)): _sort_rows(path) for path in done.folder.rglob("scored/**/*.parquet")}
    measurement = read_run(done.folder).measurement
    yields: dict[str, float] = {}
    bins: list[float] = []
    for name, region in measurement.regions.items():
        for process in region.processes:
            shifts = {f"{k} {side}": getattr(v, side) for k, v in process.shifts.items() for side in ("up", "down")}
            found = {"nominal": process.nominal, **shifts}
            yields |= {f"{name} {process.name} {key}": float(values.sum()) for key, values in found.items()}
            bins += process.nominal.tolist()
    return models, scores, yields, bins, dict(_numbers(done.result["fit"]["expected"]))


def _sort_rows(path: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(map(repr, row.values())) for row in pq.read_table(path).to_pylist())


def _compare(first: dict[str, float], second: dict[str, float]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert np.isclose(value, second[name], rtol=SAME, atol=SAME, equal_nan=True), f"{name}: {value}, {second[name]}"


def _numbers(plain: Any, place: str = "") -> Iterator[tuple[str, float]]:
    entries = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, value in entries:
        yield from _numbers(value, f"{place}.{key}")
    if isinstance(plain, float | int) and not isinstance(plain, bool):
        yield place, float(plain)


def _name(plain: Any) -> Any:
    """The analysis with two files for each that it names."""
    match plain:
        case dict():
            return {key: _list_files(value) if key == "files" else _name(value) for key, value in plain.items()}
        case list():
            return [_name(value) for value in plain]
    return plain


def _list_files(files: Any) -> Any:
    if isinstance(files, str) and files in EVENTS:
        return [f"{half}{files}" for half in ("b", "a")]
    if isinstance(files, list):
        return [one for file in files for one in (_list_files(file) if isinstance(file, str) else [file])]
    return files


def _halve(name: str) -> dict[str, bytes]:
    """Rows in another order, in two files of different sizes; the same rows in a file and its friend."""
    table = pq.read_table(io.BytesIO(EVENTS[name]))
    order = np.random.default_rng(5).permutation(table.num_rows)
    cut, found = table.num_rows // 3, {}
    for half, rows in (("a", order[:cut]), ("b", order[cut:])):
        written = io.BytesIO()
        pq.write_table(table.take(pa.array(rows)), written)
        found[f"{half}{name}"] = written.getvalue()
    return found


HALVES = {half: content for name in EVENTS for half, content in _halve(name).items()}
