"""Which files and columns an analysis reads, and which processes its sources act on."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path, PurePath

from qbdt.analysis.eras import split_eras
from qbdt.analysis.schema import Analysis, SampleFiles, ShapeSource, Source
from qbdt.data import Expression, Role
from qbdt.data.readers import Share, expand
from qbdt.errors import DataError, ExpressionError, OutputError

PLACEHOLDERS = ("{process}", "{file}")
"""Stand in the paths of varied files for the process's name, and for each of its nominal files."""


@contextmanager
def name_in_errors(what: str) -> Iterator[None]:
    """Put a name, if there is one, in front of the message of an error."""
    try:
        yield
    except (DataError, ExpressionError) as error:
        raise type(error)(f"{what}: {error}" if what else str(error)) from error


def insert_process(text: str, process: str) -> str:
    """Put the name of a process in its place in a path or the name of a tree."""
    return text.replace("{process}", process)


def name_files(text: str, process: str, nominal: Sequence[str]) -> list[str]:
    """Paths of varied files of a process; {file} stands for each nominal one, without folder and ending."""
    named = insert_process(text, process)
    return [named.replace("{file}", PurePath(path).stem) for path in nominal] if "{file}" in named else [named]


def divide_files(files: Sequence[str], number: int, count: int) -> list[tuple[str, Share]]:
    """Files, or shares of files, that make up one of `count` equal partitions of a list of files.

    Examples
    --------
    >>> [[(file, str(share.begin), str(share.end)) for file, share in divide_files("ab", i, 4)] for i in (0, 1)]
    [[('a', '0', '1/2')], [('a', '1/2', '1')]]
    """
    low, high = (Fraction(len(files) * (number + i), count) for i in (0, 1))
    cut = [(file, max(low - i, Fraction(0)), min(high - i, Fraction(1))) for i, file in enumerate(files)]
    return [(file, Share(begin, end)) for file, begin, end in cut if begin < end]


def list_files(analysis: Analysis, folder: Path) -> list[tuple[str, int, int]]:
    """Path, size and time of change of every file that an analysis reads; the reader reports missing ones."""
    with suppress(DataError):
        acts_on = match_sources(analysis)
        eras = split_eras(analysis, acts_on).values()
        found = {path for one in eras for path in _find_files(one, folder)}
        return sorted((str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in found)
    return []


def refuse_same_files(files: Sequence[str]) -> None:
    """Refuse a file that occurs twice, also through links, of which a wildcard may follow one in circles."""
    found: dict[str, str] = {}
    for file in files:
        place = file if "://" in file else os.path.realpath(file)
        if place in found:
            what = f"{file} is named twice" if file == found[place] else f"{file} and {found[place]} are one file"
            raise DataError(f"{what}: its events would count twice")
        found[place] = file


def require_unchanged(analysis: Analysis, folder: Path, before: Sequence[tuple[str, int, int]]) -> None:
    """Refuse files that are not as `list_files` found them before: old and new events would be mixed."""
    if changed := sorted(set(before) ^ set(list_files(analysis, folder))):
        raise DataError(f"{changed[0][0]}: the file was changed while events were read; start again")


def refuse_inputs(analysis: Analysis, folder: Path, outputs: Iterable[Path]) -> None:
    """Refuse to replace files, or folders with all that is in them, that an analysis reads."""
    read = [Path(path) for path, _, _ in list_files(analysis, folder)]
    for output in outputs:
        place = output.resolve()
        if found := [path for path in read if path == place or place in path.parents]:
            raise OutputError(f"{output}: {found[0]} is read by the analysis and would be lost; choose another place")


def _find_files(analysis: Analysis, folder: Path) -> set[Path]:
    """Files of an analysis without eras that are there."""
    shapes = [side for s in analysis.systematics.values() if isinstance(s, ShapeSource) for side in (s.up, s.down)]
    patterns = [path for sample in analysis.samples.values() for path in sample.files]
    for path in (path for side in shapes if side is not None for path in side.files or ()):
        for process, sample in analysis.samples.items():
            patterns += name_files(path, process, sample.files)
    for sample in analysis.samples.values():
        friends = analysis.friends if sample.friends is None else sample.friends
        patterns += [one.files.replace("{file}", "*") for one in friends if one.files is not None]
    found = set()
    partner = analysis.training.partner_file
    with suppress(OSError):  # a name that is too long
        if partner is not None and Path(partner).exists():
            found.add(Path(partner))
    for pattern in patterns:
        with suppress(DataError):
            found |= {Path(file) for file in expand(pattern, folder) if "://" not in file}
    return found


def match_sources(analysis: Analysis) -> dict[str, list[str]]:
    """Processes that each source acts on."""
    return {name: match_processes(name, source, analysis.samples) for name, source in analysis.systematics.items()}


def match_processes(name: str, source: Source, samples: Mapping[str, SampleFiles]) -> list[str]:
    """Processes that a source acts on; every pattern must match one, and none of them recorded data."""
    simulated = [process for process, sample in samples.items() if Role(sample.role) is not Role.DATA]
    from_files = [process for process in simulated if samples[process].from_data is None]
    found: list[str] = []
    for pattern in source.patterns:  # a background from data is meant only where it is named
        matched = [pattern] if pattern in simulated else fnmatch.filter(from_files, pattern)
        if not matched:
            role = " (it is recorded data)" if pattern in samples else ""
            raise DataError(
                f"systematics.{name}: {pattern!r} matches no simulated process{role}; there are: {', '.join(simulated)}"
            )
        found += matched
    with name_in_errors(f"systematics.{name}"):
        for process in found:
            source.find_size(process)  # refuses two sizes
    return list(dict.fromkeys(found))


def vary_columns(columns: Mapping[str, str], varied: Mapping[str, str]) -> dict[str, Expression]:
    """Return the derived columns under a variation.

    Where a derived column hides a branch (`pt: pt / 1000`), the variation changes the branch beneath it; otherwise it
    takes the column's place.
    """
    derived = {name: Expression(text) for name, text in columns.items()}
    for name, text in varied.items():
        beneath = name in derived and name in derived[name].names
        derived[name] = derived[name].substitute(name, Expression(text)) if beneath else Expression(text)
    return derived


def list_missing(analysis: Analysis) -> dict[str | None, tuple[float, ...]]:
    """Values that mean missing, by column; under None those of all columns."""
    if isinstance(analysis.missing, list):
        return {None: tuple(analysis.missing)}
    return {name: tuple(values) for name, values in analysis.missing.items()}
