"""Tables as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from qbdt.results import Table

__all__ = ["show"]


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
