"""The paper's study in one command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import Json, Quiet, app, bar, print_json

StartAnew = Annotated[bool, typer.Option("--force", help="Start anew, whatever the folder holds.")]


@app.command(epilog="Example:  qbdt reproduce --data ../shared/data/tautaugamma --out paper")
def reproduce(
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder with the paper's files; the bundled sample by default.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "--output", "-o", help="Folder for everything.")] = Path(
        "qbdt-reproduction"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the random halves and of every training.")] = 1,
    halves: Annotated[int, typer.Option(help="Random divisions; each is used with both of its sides.")] = 10,
    trees: Annotated[
        int,
        typer.Option(help="Trees of QBDT0; the others keep the paper's proportions: 2 × for QBDT7, 10 × for GradBDT."),
    ] = 100,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes for the random halves.")] = 2,
    force: StartAnew = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the paper's h → γττ study and write a report with every table and figure next to the paper's numbers.

    Interrupted and started again it goes on where it stopped; twice with the same seed it writes the same numbers.
    """
    from qbdt.report import write_report
    from qbdt.studies.paper import METHODS, StudyOptions, make_document, make_main_table, make_statements
    from qbdt.studies.paper import reproduce as run_study
    from qbdt.tables import show

    study = run_study(StudyOptions(data, trees, halves, seed, jobs), out, bar(quiet), force, METHODS)
    page = write_report(make_document(study, bar(quiet)), out, bar(quiet))
    if as_json:
        print_json({**study.to_dict(), "report": str(page.resolve())})
        return
    show([make_main_table(study)])
    typer.echo("")
    for statement in make_statements(study):
        typer.echo(f"[{statement.verdict}] {statement.claim}")
    typer.echo(f"\nReport: {page.resolve()}")
