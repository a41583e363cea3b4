"""What every result has in common: a `Table` that prints as text or Markdown and goes to JSON.

Flows in: numbers from any layer. Flows out: text for people, plain dictionaries for machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Table"]


@dataclass(frozen=True)
class Table:
    """A titled table of strings, ready for a terminal, a note or a page.

    Examples
    --------
    >>> print(Table("yields", ("process", "yield"), (("ttbar", "12.5"),)))
    yields
    process  yield
    ttbar     12.5
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"{self.title}: a row of {len(row)} cells under {len(self.header)} headings")

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Which columns hold numbers, and so are aligned to the right."""
        return tuple(all(_is_number(row[i]) for row in self.rows) for i in range(len(self.header)))

    def __str__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        body = (self._aligned(line, widths) for line in lines)
        return "\n".join([self.title, *body])

    def _aligned(self, line: Sequence[str], widths: Sequence[int]) -> str:
        cells = zip(line, widths, self.numeric, strict=True)
        return "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip()

    def to_markdown(self) -> str:
        """Return the table as GitHub-flavoured Markdown, with cell contents escaped."""
        rule = ["---:" if right else "---" for right in self.numeric]
        lines = [
            [_escaped(cell) for cell in self.header],
            rule,
            *([_escaped(cell) for cell in row] for row in self.rows),
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Return title, header and rows as plain lists."""
        return {"title": self.title, "header": list(self.header), "rows": [list(row) for row in self.rows]}


def _is_number(cell: str) -> bool:
    text = cell.strip().rstrip("%").replace(",", "").replace(" ", "").replace("−", "-")
    if text in ("", "–"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _escaped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
