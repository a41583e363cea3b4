"""Commands: parse, one library call, write."""

from qbdt.cli import (
    bench,
    fit,
    generate,
    report,
    reproduce,
)
from qbdt.cli import (
    diagnose as diagnosing,
)
from qbdt.cli import (
    export as exporting,
)
from qbdt.cli import (
    inspect as inspecting,
)
from qbdt.cli import (
    run as running,
)
from qbdt.cli import (
    train as training,
)
from qbdt.cli import (
    tune as tuning,
)
from qbdt.cli.app import app, main

__all__ = [
    "app",
    "bench",
    "diagnosing",
    "exporting",
    "fit",
    "generate",
    "inspecting",
    "main",
    "report",
    "reproduce",
    "running",
    "training",
    "tuning",
]
