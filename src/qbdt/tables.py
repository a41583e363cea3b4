"""`Table`: the form in which results are printed, as text, Markdown, HTML, LaTeX, CSV or JSON.

Every result has a method `tables()` that returns a tuple of them, also where it is only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from csv import writer
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

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
        body = (self._align(line, widths) for line in lines)
        return "\n".join([self.title, *body])

    def _align(self, line: Sequence[str], widths: Sequence[int]) -> str:
        cells = zip(line, widths, self.numeric, strict=True)
        return "  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in cells).rstrip()

    def select(self, columns: Sequence[int]) -> Table:
        """Return the table with some of its columns, by number."""
        header, *rows = (tuple(line[i] for i in columns) for line in (self.header, *self.rows))
        return Table(self.title, header, tuple(rows))

    def to_markdown(self) -> str:
        """Return the table as GitHub-flavoured Markdown, with cell contents escaped."""
        rule = ["---:" if right else "---" for right in self.numeric]
        lines = [
            [_escape(cell) for cell in self.header],
            rule,
            *([_escape(cell) for cell in row] for row in self.rows),
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

    def to_csv(self) -> str:
        """Return header and rows as CSV, with quotes where cells need them."""
        text = StringIO()
        writer(text, lineterminator="\n").writerows([self.header, *self.rows])
        return text.getvalue()

    def to_latex(self) -> str:
        r"""Return the table as a LaTeX `tabular`, with cell contents escaped and ± as \pm.

        Examples
        --------
        >>> print(Table("yields", ("process", "yield"), (("tt_bar", "12.5 ± 0.3"),)).to_latex())
        \begin{tabular}{lr}
        process & yield \\
        \hline
        tt\_bar & $12.5 \pm 0.3$ \\
        \end{tabular}
        """
        numbers = [all(_is_number(cell) or "±" in cell for cell in column) for column in zip(*self.rows, strict=True)]
        columns = "".join("r" if number else "l" for number in numbers or [False] * len(self.header))
        lines = [[_escape_latex(cell) for cell in line] for line in (self.header, *self.rows)]
        head, *body = (" & ".join(line) + r" \\" for line in lines)
        return "\n".join([rf"\begin{{tabular}}{{{columns}}}", head, r"\hline", *body, r"\end{tabular}"])

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


def _escape(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}
GREEK = {"μ": r"$\mu$", "σ": r"$\sigma$", "θ": r"$\theta$", "Δ": r"$\Delta$", "−": "$-$"}


def _escape_latex(cell: str) -> str:
    if "±" in cell:
        value, error = (part.strip().replace("−", "-") for part in cell.split("±", 1))
        return rf"${value} \pm {error}$"
    return "".join(LATEX.get(character, GREEK.get(character, character)) for character in cell)


def _html_row(cells: Sequence[str], sides: Sequence[str], element: str) -> str:
    pairs = zip(cells, sides, strict=True)
    drawn = (f'<{element} style="text-align:{side}">{escape(cell)}</{element}>' for cell, side in pairs)
    return f"<tr>{''.join(drawn)}</tr>"


NARROWEST = 20
"""Characters of a line that tables need at least."""


def show(tables: Iterable[Table], console: Console | None = None) -> None:
    """Print tables, one that is too wide in pieces that fit; names are shown as they are, never read as markup."""
    from rich.console import Console  # imported here: a training makes no tables
    from rich.table import Table as RichTable
    from rich.text import Text

    console = console or Console()
    if console.width < NARROWEST:  # some machines say 0, where rich prints nothing
        console.width = NARROWEST
    for table in tables:
        console.print(Text(table.title, style="bold"))
        for piece in _cut_to_width(table, console.width):
            drawn = RichTable(show_edge=False, pad_edge=False)
            for heading, right in zip(piece.header, piece.numeric, strict=True):
                drawn.add_column(Text(heading), justify="right" if right else "left", overflow="fold")
            for row in piece.rows:
                drawn.add_row(*(Text(cell) for cell in row))
            console.print(drawn)
            console.print()


def _cut_to_width(table: Table, width: int) -> list[Table]:
    """Return the table in pieces of whole columns that fit, each with the columns that name its rows."""
    from rich.cells import cell_len

    sizes = [max(cell_len(line[i]) for line in (table.header, *table.rows)) + 3 for i in range(len(table.header))]
    if sum(sizes) - 3 <= width:
        return [table]
    n_keys = next((i for i, right in enumerate(table.numeric) if right), 1) or 1
    while n_keys > 1 and sum(sizes[:n_keys]) > width // 2:
        n_keys -= 1
    pieces: list[list[int]] = [[]]
    for i in range(n_keys, len(sizes)):
        used = sum(sizes[j] for j in (*range(n_keys), *pieces[-1]))
        if pieces[-1] and used + sizes[i] - 3 > width:
            pieces.append([])
        pieces[-1].append(i)
    return [table.select([*range(n_keys), *piece]) for piece in pieces]
