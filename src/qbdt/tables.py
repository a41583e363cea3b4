"""`Table`: the form in which results are printed, as text, Markdown, HTML or JSON.

Every result has a method `tables()` that returns a tuple of them, also where it is only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

__all__ = ["Table", "format_count", "render_html", "show"]


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

    def to_html(self) -> str:
        """Return the table as HTML, with cell contents escaped; fonts and colours are those of the page around it."""
        sides = ["right" if right else "left" for right in self.numeric]
        head = _html_row(self.header, sides, "th")
        rows = "".join(_html_row(row, sides, "td") for row in self.rows)
        title = f'<caption style="text-align:left;caption-side:top;white-space:nowrap">{escape(self.title)}</caption>'
        return f"<table>{title}<thead>{head}</thead><tbody>{rows}</tbody></table>"

    _repr_html_ = to_html

    def to_dict(self) -> dict[str, Any]:
        """Return title, header and rows as plain lists."""
        return {"title": self.title, "header": list(self.header), "rows": [list(row) for row in self.rows]}


def format_count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is not one.

    Examples
    --------
    >>> format_count(1, "source"), format_count(2, "source")
    ('1 source', '2 sources')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def render_html(headline: str, tables: Iterable[Table], unfolded: int = 1) -> str:
    """HTML of a result for a notebook: a line, the first tables, and the others folded away under their titles.

    Examples
    --------
    >>> render_html("2 < 3", [], 0)
    '<div><strong>2 &lt; 3</strong></div>'
    """
    blocks = [f"<strong>{escape(headline)}</strong>"]
    for number, table in enumerate(tables):
        if number < unfolded:
            blocks.append(table.to_html())
        else:
            blocks.append(f"<details><summary>{escape(table.title)}</summary>{table.to_html()}</details>")
    return f"<div>{''.join(blocks)}</div>"


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


def _html_row(cells: Sequence[str], sides: Sequence[str], element: str) -> str:
    pairs = zip(cells, sides, strict=True)
    drawn = (f'<{element} style="text-align:{side}">{escape(cell)}</{element}>' for cell, side in pairs)
    return f"<tr>{''.join(drawn)}</tr>"


def show(tables: Iterable[Table], console: Console | None = None) -> None:
    """Print tables; names from users' files are shown as they are, never read as markup."""
    console = console or Console()
    for table in tables:
        console.print(Text(table.title, style="bold"))
        drawn = RichTable(show_edge=False, pad_edge=False)
        for heading, right in zip(table.header, table.numeric, strict=True):
            drawn.add_column(Text(heading), justify="right" if right else "left", overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        console.print(drawn)
        console.print()
