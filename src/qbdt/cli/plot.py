"""The command that draws what an analysis reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import AnalysisFile, DataFolder, Force, Json, Quiet, Unblind, app, bar, print_json


@app.command(epilog="Example:  qbdt plot analysis.yaml --variable 'pt_tau / pt_lep' --format pdf --out plots")
def plot(
    analysis: AnalysisFile,
    data: DataFolder = None,
    variable: Annotated[
        list[str] | None, typer.Option("--variable", "-v", help="Expression to draw beside the features; repeatable.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "--output", "-o", help="Folder for the page and figures.")] = Path(
        "plots"
    ),
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="Write each figure also as png or pdf; repeatable.")
    ] = None,
    every_source: Annotated[
        bool, typer.Option("--every-source", help="Draw each source in every variable, not only where it acts most.")
    ] = False,
    unblind: Unblind = False,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw what an analysis reads, before anything is trained: one page, and every figure as SVG.

    Every feature in every region with all processes, recorded data, their ratio and the uncertainty of all sources;
    what each source does; correlations; yields and cut flow. Recorded data are hidden where the fit hides them.
    """
    from qbdt.analysis import read_analysis
    from qbdt.analysis.inputs import plot_inputs

    found = plot_inputs(
        read_analysis(analysis),
        data or analysis.parent,
        out,
        variables=variable or [],
        formats=formats or [],
        every_source=every_source,
        unblind=unblind,
        force=force,
        progress=bar(quiet),
    )
    if as_json:
        print_json({"page": str(found)})
    elif not quiet:
        typer.echo(f"Page: {found}")
