"""Contents of a report: sections with text, statements, tables and figures, whatever their format."""

from __future__ import annotations

import csv
import io
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeAlias

from qbdt.files import versions
from qbdt.tables import Table


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


class Verdict:
    """Outcome of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "cannot be told"


@dataclass(frozen=True)
class Code:
    """Lines of a file, shown as they are."""

    title: str
    text: str


@dataclass(frozen=True)
class Statement:
    """A claim, whether the numbers bear it out, and the numbers."""

    claim: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Figure:
    """A drawn figure with its caption and the numbers behind it."""

    name: str  # Unique name, for files and links; letters, digits and hyphens
    drawn: Any = field(repr=False)  # Matplotlib figure
    caption: str  # What it shows
    data: Mapping[str, Sequence[Any]] = field(repr=False)  # Columns of the numbers in it
    wide: bool = False  # Whether it takes the width of the page

    def csv(self) -> str:
        """Return the numbers as comma-separated values; shorter columns end in empty cells."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(_as_cell, self.data))
        writer.writerows(map(_as_cell, row) for row in zip_longest(*self.data.values(), fillvalue=""))
        return out.getvalue()


def _as_cell(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula begins with an apostrophe, which it does not show."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value


@dataclass(frozen=True)
class Fold:
    """Figures or tables that are shown on demand."""

    title: str
    blocks: tuple[Figure | Table, ...]


Block: TypeAlias = Text | Code | Statement | Figure | Table | Fold


@dataclass(frozen=True)
class Headline:
    """A number that stands at the top: its label, its value, and what it is compared with."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Section:
    """Blocks under a title."""

    title: str
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        """Name to link to."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    subtitle: str
    headlines: tuple[Headline, ...]
    sections: tuple[Section, ...]

    def figures(self) -> Iterator[Figure]:
        """All figures, in order."""
        for section in self.sections:
            for block in section.blocks:
                inner = block.blocks if isinstance(block, Fold) else (block,)
                yield from (b for b in inner if isinstance(b, Figure))


def provenance_tables(
    settings: Mapping[str, Any], files: Mapping[str, str], seconds: Mapping[str, float]
) -> Iterator[Table]:
    """Tables of settings, versions, machine, checksums (SHA-256) of files, and seconds of each stage."""
    if settings:
        yield Table("Settings", ("setting", "value"), tuple((name, str(value)) for name, value in settings.items()))
    machine = ("machine", f"{platform.machine()}, {os.cpu_count()} cores")
    yield Table("Versions", ("what", "version"), (machine, *versions().items()))
    if files:
        yield Table("Files", ("file", "SHA-256"), tuple(files.items()))
    if seconds:
        yield Table("Time spent in this run", ("stage", "seconds"), tuple((s, f"{t:.1f}") for s, t in seconds.items()))
