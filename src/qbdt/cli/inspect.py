"""Commands that come before anything is trained: init, ntuples, inspect, schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import AnalysisFile, DataFolder, Force, Json, Memory, Quiet, app, bar, print_json, read_memory
from qbdt.errors import ConfigError
from qbdt.files import write_text


def _examples() -> list[str]:
    from qbdt.analysis.examples import example_names

    return list(example_names())


@app.command(epilog="Example:  qbdt inspect analysis.yaml --data /data/ntuples")
def inspect(
    analysis: AnalysisFile,
    data: DataFolder = None,
    memory: Memory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read an analysis and print what is in it: samples, yields, missing values, effects of the sources.

    The last line says what training on it will take.
    """
    from qbdt.analysis import read_analysis, training_settings
    from qbdt.analysis.inputs import inspect_inputs
    from qbdt.analysis.resources import ResourcePlan
    from qbdt.tables import show

    plain, folder = read_analysis(analysis), data or analysis.parent
    plan = ResourcePlan(plain, folder, read_memory(memory))
    plan.require_room()
    if plain.training.partner_file is not None:
        training_settings(plain)  # refuses a workspace that cannot be used
    found = inspect_inputs(plain, folder, bar(quiet))
    if as_json:
        print_json({**found.to_dict(), "training": {"memory": plan.estimate.memory, "seconds": plan.seconds}})
        return
    show(found.tables())
    typer.echo(f"training takes {plan.describe()}")


@app.command(epilog="Example:  qbdt init my_analysis.yaml")
def init(
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("analysis.yaml"),
    example: Annotated[
        str, typer.Option(help="Which one: template, synthetic or tautaugamma.", autocompletion=_examples)
    ] = "template",
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a commented analysis file to start from."""
    from qbdt.analysis.examples import example_names, example_text

    if example not in example_names():
        raise ConfigError(f"--example {example}: there are: {', '.join(example_names())}")
    write_text(path, example_text(example), force=force)
    if as_json:
        print_json({"file": str(path)})
    elif not quiet:
        typer.echo(f"wrote {path}; check it with: qbdt inspect {path}")


@app.command(epilog="Example:  qbdt ntuples data")
def ntuples(
    folder: Annotated[Path, typer.Argument(help="Folder to write to; made if it is not there.")],
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the bundled h → γττ sample as ROOT files, to try things out as with files of your own.

    signal.root and background.root have a tree `nominal` with the variables, a weight, and weights for efficiencies
    moved up and down; and a tree for each energy scale or resolution moved up or down: tes_up, tes_down, and so on.
    """
    from qbdt.data.samples import write_bundled_ntuples

    paths = write_bundled_ntuples(folder, force=force, progress=bar(quiet))
    if as_json:
        print_json({"files": [str(path) for path in paths]})
    elif not quiet:
        typer.echo(f"wrote {', '.join(map(str, paths))}")


@app.command(epilog="Example:  qbdt schema > qbdt.schema.json")
def schema() -> None:
    """Print the JSON schema of analysis files, for editors."""
    from qbdt.analysis import Analysis

    print_json(Analysis.describe())
