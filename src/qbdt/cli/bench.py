"""Benchmarks as commands."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qbdt.cli.app import Device, Force, Json, Quiet, Workflow, app, bar
from qbdt.errors import OutputError

if TYPE_CHECKING:
    from qbdt.studies.benchmark import PhysicsResults

bench = typer.Typer(name="bench", cls=Workflow, help="Benchmarks against other libraries.", no_args_is_help=True)
app.add_typer(bench)

ALL = ("P1", "P2", "P3", "P4")
PUBLIC = {"P2": "cms_htautau", "P3": "tautaugamma"}

Names = list[str] | None
Problems = Annotated[Names, typer.Option("--problem", "-p", help="P1 … P4; all that have their events if none.")]
Data = Annotated[Path | None, typer.Option(help="Folder with the public files of P2 and P3, see docs/data.md.")]
Sample = Annotated[Path | None, typer.Option(help="Sample of qbdt generate for P4; the bundled one by default.")]
Contestants = Annotated[Names, typer.Option("--contestant", "-c", help="By name; all that are installed if none.")]
Checks = Annotated[
    Names, typer.Option("--check", help="Beside the problems: without (sources), noise, times; all if none.")
]
Cache = Annotated[Path, typer.Option(help="Folder that keeps scores, so that nothing is trained twice.")]


@bench.command(epilog="Example:  qbdt bench physics --problem P4 --budget 4 --seeds 1")
def physics(
    problem: Problems = None,
    data: Data = None,
    sample: Sample = None,
    contestant: Contestants = None,
    budget: Annotated[int, typer.Option(help="Settings that tuning tries for every contestant.")] = 12,
    seeds: Annotated[int | None, typer.Option(help="Divisions into folds; 1, 2, 5, 2 and 10 for P1 to P5.")] = None,
    check: Checks = None,
    no_checks: Annotated[bool, typer.Option("--no-checks", help="The problems only.")] = False,
    events: Annotated[int, typer.Option(help="Signal, and background, events that P1 trains on.")] = 100_000,
    cache: Cache = Path("qbdt-bench"),
    out: Annotated[Path | None, typer.Option("--out", "--output", "-o", help="File for all numbers (JSON).")] = None,
    markdown: Annotated[Path | None, typer.Option(help="File for all tables (Markdown).")] = None,
    device: Device = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; P1 takes one.")] = 1,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare fits with scores of this package and of tuned LightGBM, XGBoost, scikit-learn and AdaBoost.

    All are trained and fitted on the same folds and tuned by the same nested procedure, never on events that are
    fitted. A run that is started again goes on where it stopped.
    """
    from qbdt.studies.benchmark import CHECKS, BenchmarkOptions, EventFolders, make_physics_tables, run_physics
    from qbdt.tables import show

    for path in (out, markdown):
        if path is not None and path.exists() and not force:
            raise OutputError(f"{path} exists; --force overwrites it")
    problems = tuple(problem) if problem else tuple(p for p in ALL if p not in PUBLIC or data is not None)
    if not problem and len(problems) < len(ALL):
        typer.echo("P2 and P3 are left out: --data FOLDER names where their events are", err=True)
    options = BenchmarkOptions(
        problems,
        tuple(contestant) if contestant else None,
        budget,
        seeds,
        EventFolders(data, sample),
        cache,
        events,
        () if no_checks else tuple(check or CHECKS),
        device,
        jobs,
    )
    found = run_physics(options, bar(quiet))
    content = _write(found, out, markdown)
    if as_json:
        typer.echo(content)
        return
    show(make_physics_tables(found))


def _write(found: PhysicsResults, out: Path | None, markdown: Path | None) -> str:
    """Write all numbers and all tables where they are wanted; return the numbers."""
    from qbdt.files import write_text
    from qbdt.studies.benchmark import check_criteria, format_markdown

    criteria = [asdict(criterion) for criterion in check_criteria(found)]
    content = json.dumps({**found.to_dict(), "criteria": criteria}, indent=1)
    if out is not None:
        write_text(out, content + "\n")
    if markdown is not None:
        write_text(markdown, format_markdown(found))
    return content
