"""Commands: parse, one library call, write."""

from qbdt.cli import exporting, fit, generate, inspecting, report, reproduce, running, training
from qbdt.cli.app import app, main

__all__ = ["app", "exporting", "fit", "generate", "inspecting", "main", "report", "reproduce", "running", "training"]
