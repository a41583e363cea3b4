"""Commands: parse, one library call, write."""

from qbdt.cli import diagnosing, fit, generate, inspecting, report, reproduce, running, training, tuning
from qbdt.cli.app import app, main

__all__ = [
    "app",
    "diagnosing",
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
