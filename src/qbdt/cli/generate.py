"""Commands that simulate samples."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from qbdt.cli.app import Json, Quiet, Workflow, app, bar, print_json

generate = typer.Typer(
    cls=Workflow, help="Simulate samples (needs the extra: pip install 'qbdt\\[generate]').", no_args_is_help=True
)
app.add_typer(generate, name="generate")


class Format(StrEnum):
    """File formats of a generated sample."""

    PARQUET = "parquet"
    ROOT = "root"


@generate.callback()
def _group() -> None:
    """Keep `tautaugamma` a subcommand although it is the only one."""


@generate.command(epilog="Example:  qbdt generate tautaugamma --signal 100000 --background 200000 --out sample")
def tautaugamma(
    signal: Annotated[int, typer.Option(help="Selected signal events.")],
    background: Annotated[int, typer.Option(help="Selected background events.")],
    out: Annotated[
        Path, typer.Option("--out", "--output", "-o", help="Folder to write; an interrupted run is continued.")
    ],
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 1,
    workers: Annotated[int, typer.Option(help="Processes; the events do not depend on it.")] = os.cpu_count() or 1,
    tau_decays: Annotated[int, typer.Option(help="Size of the tau library per helicity and decay mode.")] = 100_000,
    format: Annotated[Format, typer.Option(help="root: also write the variables as ROOT trees.")] = Format.PARQUET,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate h → γττ and pp → γττ at 13 TeV, with shower, tau decays, toy detector and selection."""
    from qbdt.studies.generator import GenerateSettings, generate_tautaugamma

    settings = GenerateSettings(seed=seed, tau_decays=tau_decays)
    metadata = generate_tautaugamma(
        out, signal, background, settings, workers=workers, root=format is Format.ROOT, progress=bar(quiet)
    )
    if as_json:
        print_json(metadata)
        return
    for name, entry in metadata["processes"].items():
        typer.echo(
            f"{name}: {entry['selected']:,} selected events, {entry['yield']:,.5g} ± {entry['yield_error']:.2g} "
            f"expected at {metadata['luminosity_fb']:g} fb⁻¹"
        )
    if not quiet:
        typer.echo(f"wrote {out}; load it with: qbdt.data.samples.tautaugamma({str(out)!r})")
