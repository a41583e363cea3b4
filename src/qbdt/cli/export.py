"""The command that writes a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import DataFolder, Force, Json, Quiet, app, bar, print_json
from qbdt.files import require_place


@app.command(epilog="Example:  qbdt export model.qbdt --to onnx --out higgs.onnx --events analysis.yaml")
def export(
    model: Annotated[Path, typer.Argument(help="Model file, single or cross-trained.")],
    to: Annotated[str, typer.Option(help="Format: onnx, xgboost, tmva or cpp.")],
    out: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="File to write; by default named like the model.")
    ] = None,
    events: Annotated[
        Path | None, typer.Option(help="Analysis file: compare the scores of all its events, too.")
    ] = None,
    data: DataFolder = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a model for other programs, read it back and print the largest difference of scores.

    Compared are values exactly at, just below and just above every cut, in double and single precision, missing and
    infinite values, and events where an analysis is given. A warning says what a format cannot hold, and why.
    """
    from qbdt.analysis import load_named_events, read_analysis
    from qbdt.models import read_any_model
    from qbdt.models.export import FORMATS, export_model

    target = out or model.with_suffix(FORMATS.get(to, ""))
    require_place(target, [model, *filter(None, [events])])
    training = read_any_model(model)[0]
    rows = (
        () if events is None else load_named_events(read_analysis(events), data or events.parent, training, bar(quiet))
    )
    done = export_model(training.ensemble, target, to, events=rows, force=force)
    if as_json:
        print_json(done.to_dict())
        return
    typer.echo(f"wrote {', '.join(str(path) for path in done.files)}")
    for check in done.checks:
        typer.echo(f"  {check.what}: {check.rows} rows, largest difference {check.difference:.3g}")
    for warning in done.warnings:
        typer.echo(f"warning: {warning}", err=True)
