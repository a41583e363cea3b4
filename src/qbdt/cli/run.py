"""The command that runs an analysis from its files to results."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import (
    AnalysisFile,
    DataFolder,
    Device,
    Json,
    Memory,
    Quiet,
    Threads,
    Unblind,
    app,
    bar,
    note,
    origin,
    print_json,
    read_memory,
)
from qbdt.errors import ConfigError


@app.command(epilog="Example:  qbdt run analysis.yaml --out results")
def run(
    analysis: AnalysisFile,
    out: Annotated[
        Path, typer.Option("--out", "--output", "-o", help="Folder for everything that the run makes.")
    ] = Path("run"),
    data: DataFolder = None,
    at: Annotated[
        Path | None,
        typer.Option(
            exists=True, help="Folder of an earlier run or fit: train where its fit to recorded data put the sources."
        ),
    ] = None,
    threads: Threads = None,
    memory: Memory = None,
    device: Device = None,
    figures: Annotated[bool, typer.Option(help="Draw figures into the folder.")] = True,
    dask: Annotated[bool, typer.Option("--dask", help="Run on a Dask cluster; on this machine by default.")] = False,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Which cluster: a scheduler's address, a scheduler file (.json), or MODULE:CLASS of one that Dask's "
            "configuration describes, such as dask_jobqueue:SLURMCluster."
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Workers to start with --dask; one per core by default.")] = None,
    partitions: Annotated[
        int | None, typer.Option(help="Partitions of the events with --dask; two for each thread by default.")
    ] = None,
    unblind: Unblind = False,
    force: Annotated[bool, typer.Option("--force", help="Start anew, whatever the folder holds.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read, train by folds, score, make templates, fit, draw: everything into one folder.

    A run that was interrupted goes on where it stopped. With other settings under `fit:` only the fit is made anew, and
    the earlier one is set aside as fit-DIGEST. Numbers for machines are in result.json, which --json prints. With
    recorded data results are blind, until --unblind; that trains nothing again. Events that do not fit into memory are
    read in partitions, and what training needs of them is kept on disk.
    """
    from qbdt.analysis import ClusterRun, read_analysis, run_analysis
    from qbdt.tables import show
    from qbdt.training.partitions.dask import connect

    if not dask and (scheduler or workers or partitions):
        raise ConfigError("--scheduler, --workers and --partitions are for --dask")
    with connect(scheduler or "local", workers) if dask else nullcontext() as client:
        done = run_analysis(
            read_analysis(analysis),
            data or analysis.parent,
            out,
            n_threads=threads,
            memory=read_memory(memory),
            device=None if dask else device,
            at=at,
            figures=figures,
            unblind=unblind,
            force=force,
            origin=origin(analysis=analysis),
            progress=bar(quiet),
            say=note(quiet),
            cluster=None if client is None else ClusterRun(client, partitions, device),
        )
    if as_json:
        print_json(done.result)
        return
    show(done.tables)
    if not quiet:
        typer.echo(f"everything is in {done.folder}")
