"""Commands: parse, one library call, write."""

from qbdt.cli import demo, fit, generate, inspecting, running, training
from qbdt.cli.app import app, main

__all__ = ["app", "demo", "fit", "generate", "inspecting", "main", "running", "training"]
