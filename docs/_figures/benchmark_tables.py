"""Numbers of the physics benchmark, read from the tables that it printed: no figure has numbers of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["RESULTS", "Row", "find_row", "read_tables"]

RESULTS = Path(__file__).parents[1] / "physics-results.md"

Row = dict[str, str]
"""Cells of one line of a table, by the title of their column."""


def read_tables(page: Path = RESULTS) -> dict[str, list[Row]]:
    """Rows of every table of a page by the bold line above it; where a title occurs twice the first table is meant."""
    found: dict[str, list[Row]] = {}
    for title, table in re.findall(r"^\*\*(.+?)\*\*\n\n((?:\|.*\n)+)", page.read_text(encoding="utf-8"), re.MULTILINE):
        found.setdefault(title, list(_rows(table)))
    return found


def find_row(rows: list[Row], **cells: str) -> Row:
    """The one row that has these cells."""
    matching = [row for row in rows if all(row[column] == cell for column, cell in cells.items())]
    if len(matching) != 1:
        raise LookupError(f"{len(matching)} rows with {cells}, not one")
    return matching[0]


def _rows(table: str) -> Iterator[Row]:
    header, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    for line in lines:
        yield dict(zip(header, line, strict=True))
