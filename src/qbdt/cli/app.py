"""The command line: the application, options that commands share, and the end of errors.

Exit codes: 0 done, 2 something the user can mend (one message, no traceback), 130 interrupted, 1 a bug in qbdt.
They are documented in docs/command-line.md and do not change.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import shlex
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from qbdt.errors import QBDTError
from qbdt.files import provenance
from qbdt.progress import Progress, silent, visible

ORDER = (
    "demo",
    "init",
    "ntuples",
    "inspect",
    "plot",
    "compare",
    "run",
    "report",
    "diagnose",
    "tune",
    "train",
    "score",
    "export",
    "fit",
)
"""Commands in the order in which a newcomer meets them; the others follow by name."""


class Workflow(TyperGroup):
    """Lists commands in the order of an analysis, and fills the lines of their help."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands."""
        names = sorted(super().list_commands(ctx))
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; lines of a paragraph of its help are one, which the terminal wraps."""
        found = super().get_command(ctx, cmd_name)
        if found is not None and found.help:
            found.help = re.sub(r"(?<!\n)\n(?!\n)", " ", found.help)
        return found


app = typer.Typer(
    name="qbdt",
    cls=Workflow,
    help="Boosted decision trees trained on the expected significance, with systematic uncertainties inside training.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""Error that a wrong option raises; newer releases of typer bring click along under a private name."""

INTERRUPTED = 130

RESUMABLE = ("bench", "compare", "demo", "generate", "reproduce", "run", "tune")
"""Commands that keep what is done."""

FLAGS = {
    "force=True": "--force",
    "resume=True": "--resume",
    "fold_columns=[NAME]": "--fold-column NAME",
    "fold_columns": "--fold-column",
    "as data": "with --data",
    "address=": "--scheduler ",
    "n_threads=": "--threads ",
}
"""Arguments in messages of the library, and the options of the command line that set them."""

VALUES = (
    *("average", "budget", "column", "data", "folds", "halves", "inner", "jobs", "memory", "repeat", "score", "seed"),
    *("to", "trees"),
)
"""Arguments that messages show with their value, and whose options have the same name: folds=3 is --folds 3."""

AnalysisFile = Annotated[Path, typer.Argument(help="Analysis file (YAML); `qbdt init` writes one to start from.")]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder that the paths start from; the analysis file's own by default.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no notes: results and errors only.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
Unblind = Annotated[bool, typer.Option("--unblind", help="Show results on recorded data, and all of these.")]
Threads = Annotated[int | None, typer.Option("--threads", "-j", help="Threads; all cores by default.")]
Memory = Annotated[
    str | None,
    typer.Option("--memory", help="Memory to use, such as 4GB; by default what is free. More events: out of core."),
]
Device = Annotated[str | None, typer.Option("--device", help="cuda: work on a GPU; results are the same.")]


def bar(quiet: bool) -> Progress:
    """Progress on the terminal, or now and then as a line of a log, unless told not to."""
    return silent if quiet else visible()


def note(quiet: bool) -> Callable[[str], None]:
    """Prints notes to standard error, unless told not to."""
    return lambda text: None if quiet else typer.echo(text, err=True)


def read_memory(text: str | None) -> int | None:
    """Bytes that --memory allows."""
    from qbdt.analysis.resources import read_size

    return None if text is None else read_size(text)


def origin(**paths: Path | None) -> dict[str, Any]:
    """Provenance of a file that a command writes: the command, versions and input paths."""
    return provenance(shlex.join(["qbdt", *sys.argv[1:]]), **paths)


def print_json(content: Any) -> None:
    """Print plain data as JSON; what is not a number becomes null, which every reader of JSON understands."""
    typer.echo(json.dumps(_finite(content), indent=2))


def print_sentence(text: str) -> None:
    """Print a sentence below tables, in lines of 80 columns; nothing where it is empty."""
    if text:
        typer.echo(textwrap.fill(text, 80))


def _finite(content: Any) -> Any:
    match content:
        case dict():
            return {key: _finite(value) for key, value in content.items()}
        case list() | tuple():
            return [_finite(value) for value in content]
        case float() if not math.isfinite(content):
            return None
    return content


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        from qbdt import __version__

        typer.echo(f"qbdt {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; what a user can cause ends in one message and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    os.environ["MPLBACKEND"] = "agg"  # nothing is shown in windows; notebooks set what only they can load
    code = _run() if _count_addresses() >= LEAST_ADDRESSES else _refused_for_memory()
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the interpreter takes a moment to end, and has no message for it
    sys.exit(code)


def _run() -> int:
    if not re.fullmatch("|[1-9][0-9]{0,5}", threads := os.environ.get("NUMBA_NUM_THREADS", "")):
        return _refused(f"NUMBA_NUM_THREADS={threads}: numba needs a whole number above 0 here, or nothing")
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except QBDTError as error:
        return _refused(str(error))
    except USAGE_ERROR as error:
        error.show()
        return int(error.exit_code)
    except (KeyboardInterrupt, typer.Abort) as error:
        if _is_of_cache(error):  # an empty file in it looks like the end of the input
            return _refused(DAMAGED_CACHE)
        code = INTERRUPTED
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # the reader has gone: click and rich end with 1
            return 0
        return end.code if isinstance(end.code, int) else 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return 0
    except OSError as error:
        return _refused(f"{error.filename or 'output'}: {error.strerror or error}")
    except MemoryError:
        return _refused_for_memory()
    except Exception as error:
        if isinstance(error, ImportError | SystemError | RuntimeError) and _count_addresses() < math.inf:
            return _refused_for_memory()  # libraries cannot be mapped then, or threads not be started
        if _is_of_cache(error):
            return _refused(DAMAGED_CACHE)
        raise
    if code == INTERRUPTED:  # newer releases of typer turn Ctrl-C into this code themselves
        typer.echo(f"qbdt: interrupted{_say_how_to_go_on(sys.argv[1:2])}", err=True)
    return code if isinstance(code, int) else 0


LEAST_ADDRESSES = 3e9
"""Bytes below which libraries fail in ways that no program can catch: a run on two cores maps 2.1 GB, and uses 0.4."""


def _count_addresses() -> float:
    """Bytes of virtual memory that this process may map: infinitely many, unless `ulimit -v` set a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


def _refused_for_memory() -> int:
    if (limit := _count_addresses()) < math.inf:
        return _refused(
            f"ulimit -v allows {limit / 1e9:.2g} GB of virtual memory, which is too little: libraries and their "
            "threads map more than they use; raise it, and bound what events take with --memory"
        )
    return _refused("there is not enough memory; qbdt run and qbdt train stay within what --memory allows")


def _say_how_to_go_on(command: list[str]) -> str:
    match command:
        case ["train"]:
            return "; with --resume the same command goes on where it stopped"
        case [name] if name in RESUMABLE:
            return "; the same command goes on where it stopped"
    return ""


DAMAGED_CACHE = (
    "numba's cache of compiled functions is damaged: remove the folder that NUMBA_CACHE_DIR names, "
    "or else the folders __pycache__ of qbdt; they are made again"
)


def _is_of_cache(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, was raised where numba reads its cache of compiled functions."""
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        if any(Path(frame.filename).parts[-3:] == ("numba", "core", "caching.py") for frame in frames):
            return True
        error = error.__context__
    return False


def _refused(message: str) -> int:
    with suppress(OSError):  # a full disk, where messages go to a file
        typer.echo(f"qbdt: {_with_options(message)}", err=True)
    return 2


def _with_options(message: str) -> str:
    """Replace arguments of the library by options; what looks like an argument inside of a call stays."""
    for argument, option in FLAGS.items():
        message = re.sub(rf"(?<!\w){re.escape(argument)}", option, message)
    return re.sub(rf"(?<![\w(])(?<!, )({'|'.join(VALUES)})=", r"--\1 ", message)
