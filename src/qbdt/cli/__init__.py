"""Commands: parse, one library call, write."""

from qbdt.cli import demo, generate, inspecting, training
from qbdt.cli.app import app, main

__all__ = ["app", "demo", "generate", "inspecting", "main", "training"]
