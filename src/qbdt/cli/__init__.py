"""Commands: parse, one library call, write."""

from qbdt.cli import (
    bench,
    diagnosing,
    exporting,
    fit,
    generate,
    inspecting,
    report,
    reproduce,
    running,
    training,
    tuning,
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
