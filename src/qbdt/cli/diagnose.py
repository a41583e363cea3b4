"""The command that diagnoses the models of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import Json, Quiet, Threads, app, bar, print_json, print_sentence


@app.command(epilog="Example:  qbdt diagnose run --data /data/ntuples")
def diagnose(
    folder: Annotated[Path, typer.Argument(help="Folder that `qbdt run` wrote.")],
    data: Annotated[
        Path | None, typer.Option("--data", help="Folder that the paths of the analysis start from.")
    ] = None,
    sizes: Annotated[bool, typer.Option(help="Train on shares of the events too, for the curve against size.")] = True,
    each_sample: Annotated[
        bool,
        typer.Option("--each-sample", help="Train with a quarter of each sample in turn: which to generate next."),
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Times that a feature is scrambled and shares are drawn.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    threads: Threads = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier diagnosis.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Diagnose the models of a run on held-out events: over-training, features, sources, learning curves.

    Features are ranked by gain, and by the increase of the fit's uncertainty when one is scrambled. Numbers and figures
    go to the folder `diagnosis` of the run, and `qbdt report` shows them.
    """
    from qbdt.analysis import diagnose_run
    from qbdt.tables import show

    found = diagnose_run(
        folder,
        data,
        sizes=sizes,
        each_sample=each_sample,
        repeats=repeats,
        seed=seed,
        force=force,
        n_threads=threads,
        progress=bar(quiet),
    )
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.tables())
        print_sentence(found.left_out)
        typer.echo(f"everything is in {folder / 'diagnosis'}")
