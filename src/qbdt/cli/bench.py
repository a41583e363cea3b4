"""Benchmarks as commands."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import Force, Json, Quiet, app, bar
from qbdt.errors import OutputError

__all__: list[str] = []

bench = typer.Typer(name="bench", help="Benchmarks against other libraries.", no_args_is_help=True)
app.add_typer(bench)

ALL = ("P1", "P2", "P3", "P4")
PUBLIC = {"P2": "cms_htautau", "P3": "tautaugamma"}


@bench.command(epilog="Example:  qbdt bench physics --problem P4 --budget 4 --seeds 1")
def physics(
    problem: Annotated[
        list[str] | None,
        typer.Option("--problem", "-p", help="P1 to P5, or P4/8 alone of P5; P1 to P4 that have their events if none."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder with the public files of P2 and P3, see docs/data.md.")
    ] = None,
    sample: Annotated[
        Path | None, typer.Option("--sample", help="Sample made by qbdt generate for P4; the bundled one by default.")
    ] = None,
    contestant: Annotated[
        list[str] | None, typer.Option("--contestant", "-c", help="By name; all that are installed if none.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Settings that tuning tries for every contestant.")] = 12,
    seeds: Annotated[int | None, typer.Option(help="Divisions into folds; 1, 2, 5, 2 and 10 for P1 to P5.")] = None,
    check: Annotated[
        list[str] | None,
        typer.Option("--check", help="Checks beside the problems: without (sources), noise, times; all if none."),
    ] = None,
    no_checks: Annotated[bool, typer.Option("--no-checks", help="The problems only.")] = False,
    events: Annotated[int, typer.Option(help="Signal, and background, events that P1 trains on.")] = 100_000,
    cache: Annotated[Path, typer.Option(help="Folder that keeps scores, so that nothing is trained twice.")] = Path(
        "qbdt-bench"
    ),
    out: Annotated[Path | None, typer.Option("--out", "--output", "-o", help="File for all numbers (JSON).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="File for all tables (Markdown).")] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare what a fit quotes with scores of this package and of tuned LightGBM, XGBoost, scikit-learn and AdaBoost.

    All are trained and fitted on the same folds and tuned by the same nested procedure, never on events that are
    fitted. A run that is started again goes on where it stopped.
    """
    from qbdt.files import write_text
    from qbdt.studies.benchmark import (
        CHECKS,
        EventFolders,
        Options,
        check_criteria,
        format_markdown,
        make_physics_tables,
        run_physics,
    )
    from qbdt.tables import show

    for path in (out, markdown):
        if path is not None and path.exists() and not force:
            raise OutputError(f"{path} exists; --force overwrites it")
    problems = tuple(problem) if problem else tuple(p for p in ALL if p not in PUBLIC or data is not None)
    if not problem and len(problems) < len(ALL):
        typer.echo("P2 and P3 are left out: --data FOLDER names where their events are", err=True)
    options = Options(
        problems,
        tuple(contestant) if contestant else None,
        budget,
        seeds,
        EventFolders(data, sample),
        cache,
        events,
        () if no_checks else tuple(check or CHECKS),
    )
    found = run_physics(options, bar(quiet))
    content = json.dumps(
        {**found.to_dict(), "criteria": [asdict(criterion) for criterion in check_criteria(found)]}, indent=1
    )
    if out is not None:
        write_text(out, content + "\n")
    if markdown is not None:
        write_text(markdown, format_markdown(found))
    if as_json:
        typer.echo(content)
        return
    show(make_physics_tables(found))
