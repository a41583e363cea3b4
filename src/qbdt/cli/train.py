"""Commands that train and score: train, score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qbdt.cli.app import (
    AnalysisFile,
    DataFolder,
    Device,
    Force,
    Json,
    Memory,
    Quiet,
    Threads,
    app,
    bar,
    note,
    print_json,
    read_memory,
)
from qbdt.errors import OutputError
from qbdt.files import require_place

if TYPE_CHECKING:
    from qbdt.analysis import Analysis
    from qbdt.training import AnyTrainedModel
    from qbdt.training.partitions import OutOfCore


@app.command(epilog="Example:  qbdt train analysis.yaml --folds 5 --out higgs.qbdt")
def train(
    analysis: AnalysisFile,
    out: Annotated[Path, typer.Option("--out", "--output", "-o", help="Model file to write.")] = Path("model.qbdt"),
    data: DataFolder = None,
    folds: Annotated[
        int | None, typer.Option(min=1, help="Number of folds instead of the analysis's; 1: one model on all events.")
    ] = None,
    fold_column: Annotated[
        list[str] | None, typer.Option(help="Identifier column that divides the folds (several: by their hash).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the model file that is there.")] = False,
    force: Force = False,
    threads: Threads = None,
    memory: Memory = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train on the events of an analysis.

    Where there are folds, one model is trained for each, without its events and their shifted copies; all go into one
    file with the rule that divides the events. The file is also written during training, and on Ctrl-C. Events that do
    not fit into memory are kept on disk beside it.
    """
    from qbdt.analysis import load_for_training, read_analysis, training_settings
    from qbdt.analysis.resources import ResourcePlan
    from qbdt.models import require_writable, train_into
    from qbdt.trees.device import open_device

    open_device(device)  # says what is missing before events are read
    require_writable(out, resume=resume, force=force)
    require_place(out, [analysis])
    allowed, folder, plain = read_memory(memory), data or analysis.parent, read_analysis(analysis)

    def spread(chosen: Analysis) -> OutOfCore | None:
        return ResourcePlan(chosen, folder, allowed, threads, device).spread(out.parent, note(quiet))

    done = train_into(
        out,
        load_for_training(plain, folder, folds, fold_column or (), bar(quiet), spread, out),
        training_settings(plain),
        resume=resume,
        force=force,
        extra={"analysis": str(analysis), "data": str(data or analysis.parent)},
        n_threads=threads,
        device=device,
        progress=bar(quiet),
        say=note(quiet),
    )
    _report(out, done, as_json)
    if not done.complete:
        raise KeyboardInterrupt


@app.command(epilog="Example:  qbdt score analysis.yaml --model higgs.qbdt --out scores.root")
def score(
    analysis: AnalysisFile,
    model: Annotated[Path, typer.Option("--model", "-m", help="Model file.")] = Path("model.qbdt"),
    out: Annotated[
        Path,
        typer.Option("--out", "--output", "-o", help="ROOT file (a tree for each), or a folder for Parquet files."),
    ] = Path("scores.root"),
    column: Annotated[
        str, typer.Option(help="Name of the new column; a parameter's behind it where there are several.")
    ] = "score",
    average: Annotated[
        list[str] | None,
        typer.Option(help="Sample that took no part in the training (wildcards allowed): average of all models."),
    ] = None,
    data: DataFolder = None,
    force: Force = False,
    threads: Threads = None,
    device: Device = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add the score to the events of an analysis: to nominal samples and to every variation.

    A cross-trained model brings its rule: every event, of whatever sample, is scored by the model that did not see it.
    Trees (or files) are named PROCESS and PROCESS__SOURCE_up or _down; they hold the features, the identifiers, the
    weight and the score, or one for each parameter that the model is trained for.
    """
    from qbdt.analysis import read_analysis, score_tables, training_samples
    from qbdt.data.readers import write_tables
    from qbdt.models import read_any_model

    if not force and (out.is_file() or (out.is_dir() and any(out.iterdir()))):
        raise OutputError(f"{out} exists; --force overwrites what is there")
    if out.suffix in (".csv", ".parquet", ".feather"):
        raise OutputError(
            f"{out}: scored events are written to a .root file, or to a folder of Parquet files; name one"
        )
    is_file = out.suffix == ".root"
    require_place(out, folder=not is_file)
    training = read_any_model(model)[0]
    tables = score_tables(
        read_analysis(analysis),
        data or analysis.parent,
        training,
        column,
        average=average or (),
        replaced=[out] if is_file else list(out.glob("*.parquet")),
        n_threads=threads,
        device=device,
        progress=bar(quiet),
    )
    names = write_tables(out, tables)
    if as_json:
        print_json({"output": str(out), "model": str(model), "tables": names})
    else:
        typer.echo(f"wrote {out}: {', '.join(names)}")
    if not quiet and (seen := [name for name in training_samples(training) if name in names]):
        typer.echo(
            f"note: this model was trained on {', '.join(seen)}: it has seen these events; "
            "models of `qbdt train --folds` score what they have not seen",
            err=True,
        )


def _report(path: Path, done: AnyTrainedModel, as_json: bool) -> None:
    from qbdt.statistics import Expectation

    crossed = done.folds is not None
    trees = [len(training.ensemble.trees) for training in done.trainings]
    stopped = [training.stopped for training in done.trainings]
    if as_json:
        rule = None if done.folds is None else done.folds.to_dict()
        expectation = [None if t.expectation is None else t.expectation.to_dict() for t in done.trainings]
        print_json({"model": str(path), "trees": trees, "stopped": stopped, "folds": rule, "expectation": expectation})
        return
    typer.echo(f"wrote {path}: {f'{len(trees)} models, ' * crossed}{' + '.join(map(str, trees))} trees")
    for fold, reason in enumerate(stopped):
        if reason:
            typer.echo(f"  {f'fold {fold}: ' * crossed}{reason}")
    expected = [training.expectation for training in done.trainings if training.expectation is not None]
    if expected:
        typer.echo(f"\n{Expectation.mean(expected).tables()[0]}")
