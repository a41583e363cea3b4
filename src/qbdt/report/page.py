"""A document to a folder: the page, notes in Markdown with their pictures, and all figures as one PDF."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable
from pathlib import Path

from qbdt.errors import OutputError
from qbdt.files import replace_file, write_text
from qbdt.progress import Progress, silent
from qbdt.report.document import Block, Code, Document, Figure, Fold, Statement, Text
from qbdt.report.html import render_page, svg
from qbdt.report.style import styled
from qbdt.tables import Table

PAGE = "report.html"


def write_report(document: Document, folder: Path, progress: Progress = silent) -> Path:
    """Write `report.html`, `report.md` with its pictures in `figures/`, and `figures.pdf`.

    Parameters
    ----------
    document
        What to write.
    folder
        Where to; made if it is not there.
    progress
        Told after every figure.

    Returns
    -------
    Path
        The page.
    """
    page, n_figures = folder / PAGE, sum(1 for _ in document.figures())
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        pictures = {}
        with progress("rendering", n_figures) as advance:
            for figure in document.figures():
                pictures[figure.name] = svg(figure)
                with replace_file(folder / "figures" / f"{figure.name}.svg") as scratch:
                    scratch.write_bytes(pictures[figure.name])
                advance(1)
        write_text(page, render_page(document, pictures))
        write_text(folder / "report.md", render_markdown(document))
        _write_pdf(document, folder / "figures.pdf")
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror or error}") from error
    return page


def render_markdown(document: Document) -> str:
    """Return the report as Markdown; pictures are looked for in `figures/`."""
    lines = [f"# {_plain(document.title)}", _plain(document.subtitle)]
    lines += [f"- {_plain(h.label)}: **{_plain(h.value)}** {_plain(h.note)}".rstrip() for h in document.headlines]
    for section in document.sections:
        lines.append(f"## {_plain(section.title)}")
        lines += _blocks(section.blocks)
    return "\n\n".join(lines) + "\n"


def _blocks(blocks: Iterable[Block]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        match block:
            case Text(text):
                lines.append(_plain(text))
            case Code(title, text):
                fence = "`" * (3 + max((len(run) for run in re.findall("`+", text)), default=0))
                lines += [f"**{_plain(title)}**", f"{fence}yaml\n{text.rstrip()}\n{fence}"]
            case Statement(claim, verdict, evidence):
                lines.append(f"- **{_plain(verdict)}**: {_plain(claim)} {_plain(evidence)}")
            case Figure(name=name, caption=caption):
                lines.append(f"![{_plain(caption)}](figures/{name}.svg)")
            case Table(title=title):
                lines += [f"**{_plain(title)}**", _without_markup(block).to_markdown()]
            case Fold(title, inner):
                lines += [f"### {_plain(title)}", *_blocks(inner)]
    return lines


def _without_markup(table: Table) -> Table:
    """Return the table with cells that no Markdown viewer reads as HTML."""
    header, *rows = (tuple(html.escape(cell, quote=False) for cell in row) for row in (table.header, *table.rows))
    return Table(table.title, header, tuple(rows))


def _plain(text: str) -> str:
    """Escape what Markdown, or HTML inside it, would read as markup."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text.replace("\n", " "))


def _write_pdf(document: Document, path: Path) -> None:
    from matplotlib.backends.backend_pdf import PdfPages

    about = {"Title": document.title, "CreationDate": None}
    content = io.BytesIO()  # not the file: see `qbdt.report.style.save`
    with styled(), PdfPages(content, metadata=about) as pages:
        for figure in document.figures():
            pages.savefig(figure.drawn)
    with replace_file(path) as scratch:
        scratch.write_bytes(content.getvalue())
