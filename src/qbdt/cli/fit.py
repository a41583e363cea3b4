"""The command from scores to an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import AnalysisFile, DataFolder, Force, Json, Quiet, app, bar, origin, print_json
from qbdt.data import Dataset
from qbdt.errors import ConfigError, OutputError

__all__: list[str] = []


@app.command(epilog="Example:  qbdt fit scored.yaml --out fit --score bdt")
def fit(
    analysis: AnalysisFile,
    data: DataFolder = None,
    out: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="Folder for results, workspaces and figures.")
    ] = None,
    score: Annotated[str | None, typer.Option(help="Feature that is the score; the only one by default.")] = None,
    figures: Annotated[bool, typer.Option(help="Draw figures into the folder.")] = True,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit events that already have a score: templates, workspaces, significance; settings under `fit:` in the file."""
    from qbdt.analysis import load, read_analysis, write_fit_folder
    from qbdt.inference import run_fit
    from qbdt.tables import show

    if out is not None and (out / "fit.json").exists() and not force:
        raise OutputError(f"{out / 'fit.json'} exists; --force overwrites it")
    settings = read_analysis(analysis)
    scored = _scored(load(settings, data or analysis.parent, bar(quiet)), score)
    result = run_fit(scored, settings.fit, progress=bar(quiet))
    if out is not None:
        source = origin(analysis=analysis, data=data or analysis.parent)
        write_fit_folder(result, out, source, figures=figures, labels=settings.figure_labels())
    if as_json:
        print_json(result.to_dict())
    else:
        show(result.tables())


def _scored(dataset: Dataset, score: str | None) -> Dataset:
    if score is None and len(dataset.features) > 1:
        raise ConfigError(f"which feature is the score? --score NAME, one of: {', '.join(dataset.features)}")
    return dataset if score is None else dataset.with_features([score])
