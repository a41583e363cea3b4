"""The command from scores to an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import (
    AnalysisFile,
    DataFolder,
    Force,
    Json,
    Quiet,
    Unblind,
    app,
    bar,
    origin,
    print_json,
    print_sentence,
)
from qbdt.errors import OutputError
from qbdt.files import require_place


@app.command(epilog="Example:  qbdt fit scored.yaml --out fit --score bdt")
def fit(
    analysis: AnalysisFile,
    data: DataFolder = None,
    out: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="Folder for results, workspaces and figures.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="Feature that is the score; the only one by default.")] = None,
    figures: Annotated[bool, typer.Option(help="Draw figures into the folder.")] = True,
    unblind: Unblind = False,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit events that already have a score: templates, workspaces, significance; settings under `fit:` in the file.

    With recorded data results are blind, until --unblind.
    """
    from qbdt.analysis import fit_scored, read_analysis
    from qbdt.tables import show

    if out is not None:
        require_place(out, folder=True)
    if out is not None and (out / "fit.json").exists() and not force:
        raise OutputError(f"{out / 'fit.json'} exists; --force overwrites it")
    result = fit_scored(
        read_analysis(analysis),
        data or analysis.parent,
        out,
        score=score,
        figures=figures,
        unblind=unblind,
        origin=origin(analysis=analysis, data=data or analysis.parent),
        progress=bar(quiet),
    )
    if as_json:
        print_json(result.to_dict())
        return
    show(result.tables())
    print_sentence("Blind: recorded data take no part until --unblind." if result.shown is not None else "")
    if out is not None and not quiet:
        typer.echo(f"everything is in {out}")
