"""The table that leads the page of results: qbdt beside the best peer, copied from the tables below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from docs._figures.benchmark_tables import RESULTS, Row, find_row, read_tables

__all__ = ["summary_table", "write_summary_table"]

PLACE = re.compile(r"(?<=<!-- summary -->\n).*?(?=<!-- end of summary -->)", re.DOTALL)

PROBLEMS = {
    "P2": "CMS Open Data, H → ττ",
    "P3": "the paper's own events",
    "P4": "simulated h → γττ",
}
HEADER = ("problem", "20 bins", "method", "Z full", "σ_μ full", "Δμ_sys")


def write_summary_table(page: Path = RESULTS) -> None:
    """Put the table between its two marks."""
    text, table = page.read_text(encoding="utf-8"), summary_table(page)
    page.write_text(PLACE.sub(lambda _: f"{table}\n", text), encoding="utf-8")


def summary_table(page: Path = RESULTS) -> str:
    """Markdown of the table."""
    lines = [HEADER, ("---", "---", "---", "---:", "---:", "---:"), *_rows(read_tables(page))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _rows(tables: dict[str, list[Row]]) -> Iterator[tuple[str, ...]]:
    for problem, name in PROBLEMS.items():
        pairs = next(rows for title, rows in tables.items() if title.startswith(f"{problem}: qbdt profile −"))
        for binning in ("equal-signal", "optimised"):
            start, sign = f"{problem}: ", f"; {binning} bins"
            rows = next(rows for title, rows in tables.items() if title.startswith(start) and sign in title)
            peer = find_row(pairs, binning=binning, bins="20")["best peer"]
            for method, mark in (("qbdt profile", "**"), (peer, "")):
                row = find_row(rows, method=method, bins="20")
                yield name, binning, f"{mark}{method}{mark}", *(f"{mark}{row[column]}{mark}" for column in HEADER[3:])
                name = ""
