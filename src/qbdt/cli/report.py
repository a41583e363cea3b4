"""The command that makes a report of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import Json, Quiet, app, bar, print_json
from qbdt.files import require_place


@app.command(epilog="Example:  qbdt report run")
def report(
    folder: Annotated[Path, typer.Argument(help="Folder that `qbdt run` or `qbdt fit --out` wrote.")],
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder of the events, if they have moved since the run.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="Folder for the report; that of the run by default.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report of a run: one HTML page that needs nothing else, notes in Markdown, and all figures as PDF.

    An earlier report is replaced.
    """
    from qbdt.analysis import run_document
    from qbdt.report import write_report

    target = out or folder
    require_place(target, folder=True)
    page = write_report(run_document(folder, data, bar(quiet)), target, bar(quiet)).resolve()
    if as_json:
        print_json({"report": str(page)})
    elif not quiet:
        typer.echo(f"Report: {page}")
