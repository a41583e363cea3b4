"""The command line: each module holds the commands of its name; a command parses, calls the library once and prints.

Importing the modules adds their commands to the application.
"""

from qbdt.cli import (
    bench,
    cite,
    compare,
    diagnose,
    export,
    fit,
    generate,
    inspect,
    plot,
    report,
    reproduce,
    run,
    train,
    tune,
)
from qbdt.cli.app import main

__all__ = [
    "bench",
    "cite",
    "compare",
    "diagnose",
    "export",
    "fit",
    "generate",
    "inspect",
    "main",
    "plot",
    "report",
    "reproduce",
    "run",
    "train",
    "tune",
]
