"""The demonstration that needs nothing but the package."""

from __future__ import annotations

import typer

from qbdt.cli.app import Quiet, app

__all__: list[str] = []


@app.command(epilog="Example:  qbdt demo")
def demo(quiet: Quiet = False) -> None:
    """Run the bundled synthetic example."""
    from qbdt import examples
    from qbdt.config import parse_analysis
    from qbdt.loading import load
    from qbdt.tables import show

    analysis = parse_analysis(examples.text("synthetic"), "synthetic.yaml")
    typer.echo(f"{analysis.name}: the dataset that `qbdt init --example synthetic` writes an analysis for\n")
    show(load(analysis).summary().tables())
