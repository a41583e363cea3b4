"""Commands that train and score: train, score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qbdt.cli.app import AnalysisFile, DataFolder, Quiet, app, bar
from qbdt.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qbdt.dataset import Dataset, Events, FoldRule
    from qbdt.ensemble import Ensemble, FoldedEnsemble, ProfiledEnsemble

__all__: list[str] = []

Threads = Annotated[int | None, typer.Option("--threads", "-j", help="Threads; all cores by default.")]


@app.command(epilog="Example:  qbdt train analysis.yaml --output higgs.qbdt")
def train(
    analysis: AnalysisFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write.")] = Path("model.qbdt"),
    data: DataFolder = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the model file that is there.")] = False,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Train on the events of an analysis.

    Where the analysis has folds, one model is trained for each, without its events, and written as NAME.fold0.qbdt,
    NAME.fold1.qbdt and so on. The model file is also written during training, every ten trees, and on Ctrl-C.
    """
    from qbdt.config import read_analysis
    from qbdt.loading import load
    from qbdt.model_io import read_model, write_model
    from qbdt.running import training_settings
    from qbdt.training import train as run

    plan = read_analysis(analysis)
    settings = training_settings(plan)
    dataset = load(plan, data or analysis.parent, bar(quiet))
    if plan.training.systematics is not None:
        dataset = dataset.with_systematics(plan.training.systematics)
    for path, part in _parts(dataset, output):
        earlier = read_model(path)[0] if resume and path.exists() else None

        def checkpoint(training: Any, path: Path = path) -> None:
            if len(training.ensemble.trees) % 10 == 0:
                write_model(path, training)

        done = run(part, settings, n_threads=threads, progress=bar(quiet), resume=earlier, checkpoint=checkpoint)
        write_model(path, done)
        reason = f" ({done.stopped})" if done.stopped else ""
        typer.echo(f"wrote {path}: {len(done.ensemble.trees)} trees{reason}")
        if done.stopped and "interrupted" in done.stopped:
            raise KeyboardInterrupt


@app.command(epilog="Example:  qbdt score analysis.yaml --model higgs.qbdt --output scores.root")
def score(
    analysis: AnalysisFile,
    model: Annotated[Path, typer.Option("--model", "-m", help="Model file, as given to `qbdt train --output`.")] = Path(
        "model.qbdt"
    ),
    output: Annotated[
        Path, typer.Option("--output", "-o", help="ROOT file (a tree for each), or a folder for Parquet files.")
    ] = Path("scores.root"),
    column: Annotated[str, typer.Option(help="Name of the new column.")] = "score",
    data: DataFolder = None,
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Add the score to the events of an analysis: to nominal samples and to every variation.

    Trees (or files) are named PROCESS and PROCESS__SOURCE_up or _down; they hold the features, the identifiers, the
    weight and the score.
    """
    from qbdt.config import read_analysis
    from qbdt.io.write import write_tables
    from qbdt.loading import load

    plan = read_analysis(analysis)
    dataset = load(plan, data or analysis.parent, bar(quiet))
    trained = _models(dataset.folds, model)
    if column in (*dataset.features, "weight"):
        raise ConfigError(f"--column {column}: the events have a column of this name")
    names = write_tables(output, _scored(dataset, trained, column, threads))
    typer.echo(f"wrote {output}: {', '.join(names)}")


def _fold_path(path: Path, fold: int) -> Path:
    return path.with_name(f"{path.stem}.fold{fold}{path.suffix}")


def _parts(dataset: Dataset, output: Path) -> Iterator[tuple[Path, Dataset]]:
    """Model files to write, with the events to train each on."""
    if dataset.folds is None:
        yield output, dataset
        return
    for fold in range(dataset.folds.k):
        yield _fold_path(output, fold), dataset.without_fold(fold)


def _models(rule: FoldRule | None, path: Path) -> Ensemble | ProfiledEnsemble | FoldedEnsemble:
    from qbdt.ensemble import FoldedEnsemble
    from qbdt.model_io import read_model

    if rule is None:
        return read_model(path)[0].ensemble
    return FoldedEnsemble(tuple(read_model(_fold_path(path, fold))[0].ensemble for fold in range(rule.k)), rule)


def _scored(
    dataset: Dataset, trained: Ensemble | ProfiledEnsemble | FoldedEnsemble, column: str, threads: int | None
) -> Iterator[tuple[str, Mapping[str, NDArray[Any]]]]:
    def table(events: Events) -> dict[str, NDArray[Any]]:
        columns = {name: events.column(name) for name in events.features}
        identifiers = {name: events.identifier(name) for name in events.id_names}
        return {**columns, **identifiers, "weight": events.weight, column: trained.score(events, threads)}

    for sample in dataset.samples:
        yield sample.name, table(sample.events)
    for source in dataset.systematics:
        for direction, _ in source.directions:
            for process, events in dataset.varied(source.name, direction).items():
                yield f"{process}__{source.name}_{direction}", table(events)
