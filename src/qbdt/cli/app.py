"""The command line: the application, what all commands share, and how errors end.

Exit codes: 0 done, 2 something the user can mend (one message, no traceback), 130 interrupted, 1 a bug in qbdt.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from qbdt.errors import QBDTError
from qbdt.progress import Progress, silent, terminal

__all__ = ["AnalysisFile", "DataFolder", "Json", "Quiet", "app", "bar", "main"]

app = typer.Typer(
    name="qbdt",
    help="Boosted decision trees trained on the expected significance, with systematic uncertainties inside training.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AnalysisFile = Annotated[Path, typer.Argument(help="Analysis file (YAML); `qbdt init` writes one to start from.")]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder that the paths start from; the analysis file's own by default.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars.")]


def bar(quiet: bool) -> Progress:
    """Progress on the terminal, unless told not to or there is no terminal."""
    return silent if quiet or not sys.stderr.isatty() else terminal


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from qbdt import __version__

        typer.echo(f"qbdt {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; what a user can cause ends in one message and exit code 2."""
    try:
        app()
    except QBDTError as error:
        typer.echo(f"qbdt: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("qbdt: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
