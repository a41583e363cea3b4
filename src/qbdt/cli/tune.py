"""The command that searches for training settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import (
    AnalysisFile,
    DataFolder,
    Device,
    Json,
    Quiet,
    Threads,
    app,
    bar,
    note,
    print_json,
    print_sentence,
)
from qbdt.errors import require


@app.command(epilog="Example:  qbdt tune analysis.yaml --trials 50 --out tuning")
def tune(
    analysis: AnalysisFile,
    data: DataFolder = None,
    out: Annotated[
        Path,
        typer.Option("--out", "--output", "-o", help="Folder for the study and its results; a study there goes on."),
    ] = Path("tuning"),
    trials: Annotated[int, typer.Option(min=1, help="Trials in all, those of earlier calls included.")] = 50,
    inner: Annotated[int, typer.Option(min=2, help="Inner folds, in which settings are judged.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search.")] = 0,
    threads: Threads = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search for training settings with the smallest expected uncertainty of the fit, all sources included.

    Settings are judged by inner folds among the events outside of each fold of the analysis, so that the estimate at
    the end comes from events that took no part in the choice. Writes best.yaml with a ready training section,
    tuning.json and tuning.png. Ctrl-C loses one trial at most; the same command goes on. Needs the extra `tune`.
    """
    from qbdt.analysis import load, read_analysis
    from qbdt.analysis.tuning import tune as search
    from qbdt.analysis.tuning import write_tuning
    from qbdt.files import FolderLock
    from qbdt.tables import show
    from qbdt.trees.device import open_device

    require("optuna", "qbdt tune")  # said before events are read
    open_device(device)
    settings = read_analysis(analysis)
    settings.require_one_strength("a search")
    with FolderLock(out):
        found = search(
            load(settings, data or analysis.parent, bar(quiet)),
            settings,
            out,
            n_trials=trials,
            inner=inner,
            seed=seed,
            n_threads=threads,
            device=device,
            progress=bar(quiet),
            say=note(quiet),
        )
        paths = write_tuning(found, settings, out)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.tables())
        print_sentence(settings.beside_the_score)
        typer.echo(f"wrote {', '.join(map(str, paths))}")
