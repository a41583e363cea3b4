"""Commands that look at an analysis before anything is trained: inspect, init, schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import AnalysisFile, DataFolder, Json, Quiet, app, bar
from qbdt.errors import ConfigError
from qbdt.writing import write_text

__all__: list[str] = []


@app.command(epilog="Example:  qbdt inspect analysis.yaml --data /data/ntuples")
def inspect(analysis: AnalysisFile, data: DataFolder = None, as_json: Json = False, quiet: Quiet = False) -> None:
    """Read an analysis and print what is in it: samples, yields, missing values, effects of the sources."""
    from qbdt.config import read_analysis
    from qbdt.loading import load
    from qbdt.tables import show

    summary = load(read_analysis(analysis), data or analysis.parent, bar(quiet)).summary()
    if as_json:
        typer.echo(json.dumps(summary.to_dict(), indent=2))
    else:
        show(summary.tables())


@app.command(epilog="Example:  qbdt init my_analysis.yaml")
def init(
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("analysis.yaml"),
    example: Annotated[str, typer.Option(help="Which one: template, synthetic or tautaugamma.")] = "template",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented analysis file to start from."""
    from qbdt import examples

    if example not in examples.names():
        raise ConfigError(f"--example {example}: there are: {', '.join(examples.names())}")
    write_text(path, examples.text(example), force=force)
    typer.echo(f"wrote {path}; check it with: qbdt inspect {path}")


@app.command(epilog="Example:  qbdt schema > qbdt.schema.json")
def schema() -> None:
    """Print the JSON schema of analysis files, for editors."""
    from qbdt.config import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))
