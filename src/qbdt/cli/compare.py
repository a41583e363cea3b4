"""The commands that compare methods: on the events of an analysis, and the demonstration on the bundled sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qbdt.cli.app import AnalysisFile, DataFolder, Device, Json, Quiet, app, bar, origin, print_json, print_sentence
from qbdt.report import PAGE

if TYPE_CHECKING:
    from qbdt.studies.comparison import Plan

Out = Annotated[Path, typer.Option("--out", "--output", "-o", help="Folder for everything.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Processes; one for each core by default.")]
StartAnew = Annotated[bool, typer.Option("--force", help="Replace what the folder holds.")]


@app.command(epilog="Example:  qbdt compare analysis.yaml --with sklearn.ensemble.RandomForestClassifier --repeat 3")
def compare(
    analysis: AnalysisFile,
    data: DataFolder = None,
    out: Out = Path("comparison"),
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Only these, by name; all that are installed if none.")
    ] = None,
    others: Annotated[
        list[str] | None, typer.Option("--with", "-w", help="One more: the import path of a scikit-learn classifier.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Settings that tuning tries for every peer.")] = 4,
    repeat: Annotated[int, typer.Option(help="Divisions into folds: the analysis's own, then random ones.")] = 1,
    jobs: Jobs = None,
    device: Device = None,
    force: StartAnew = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare the profiled method, the paper's and other libraries on your events, by a fit with each score.

    All have the same folds, the same rule of bins and the same fit; peers are tuned inside of the training folds, by
    the rule of the physics benchmark. Interrupted and started again it goes on where it stopped.
    """
    from qbdt.analysis import read_analysis
    from qbdt.studies.comparison import Plan

    plan = Plan(read_analysis(analysis), data or analysis.parent, tuple(method or ()), budget, repeat, device)
    _run(plan.with_others(others or ()), out, jobs, force, as_json, quiet)


@app.command(epilog="Example:  qbdt demo")
def demo(
    out: Out = Path("qbdt-demo"),
    jobs: Jobs = None,
    force: StartAnew = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods on the bundled h → γττ sample, then fit with the best: two minutes, then a report to open.

    In a folder that holds a finished demonstration it redoes nothing but the fit and the report.
    """
    from qbdt.analysis import parse_analysis
    from qbdt.analysis.examples import example_text
    from qbdt.studies.comparison import Plan

    _run(Plan(parse_analysis(example_text("demo"), "demo.yaml"), Path(), budget=2), out, jobs, force, as_json, quiet)


def _run(plan: Plan, out: Path, jobs: int | None, force: bool, as_json: bool, quiet: bool) -> None:
    from qbdt.studies.comparison import make_comparison_tables, make_sentence, run_comparison
    from qbdt.tables import show

    found = run_comparison(plan, out, n_jobs=jobs, force=force, origin=origin(), progress=bar(quiet))
    if as_json:
        print_json({**found.to_dict(), "report": str((out / PAGE).resolve())})
        return
    show(make_comparison_tables(found))
    print_sentence(make_sentence(found))
    print_sentence(plan.analysis.beside_the_score)
    typer.echo(f"\nReport: {(out / PAGE).resolve()}")
