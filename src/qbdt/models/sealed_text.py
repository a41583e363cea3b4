"""The text of a model file: JSON that a person can read and diff, with a version and a checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from qbdt.errors import ModelFileError

__all__ = ["FORMAT_VERSION", "checksum", "parsed", "sealed"]

FORMAT = "qbdt model"
FORMAT_VERSION = 3
"""1: the paper's models. 2: also those of the profiled method, and cross-trained ones. 3: also categorical features."""

TREES = ("trees", "shift_trees")


def sealed(content: Mapping[str, Any]) -> str:
    """Text of a model file with these contents."""
    whole = {"format": FORMAT, "version": FORMAT_VERSION, "qbdt": version("qbdt"), **content}
    try:
        return _formatted({**whole, "checksum": checksum(whole)}) + "\n"
    except ValueError as error:
        raise ModelFileError("the model holds a number that is not finite: it cannot be written") from error


def parsed(path: Path) -> dict[str, Any]:
    """Contents of a model file, with format, version and checksum checked."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{path}: not a model file: it is not text") from error
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        kind = "a damaged or truncated model file" if FORMAT in text[:200] else "not a model file"
        raise ModelFileError(f"{path}: {kind}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError(f"{path}: not a model file: it does not say format: {FORMAT!r}")
    found = content.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ModelFileError(f"{path}: version {found!r} is not a version of the model file")
    if found > FORMAT_VERSION:
        raise ModelFileError(
            f"{path}: written in version {found} of the format by qbdt {content.get('qbdt')}; "
            f"this qbdt {version('qbdt')} reads up to version {FORMAT_VERSION}: update qbdt"
        )
    if content.pop("checksum", None) != checksum(content):
        raise ModelFileError(f"{path}: damaged or edited: its checksum does not match")
    return content


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of the contents, whatever their order and spacing."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of a model file")


def _formatted(content: Mapping[str, Any]) -> str:
    """JSON with one line per node, list of edges and setting."""
    lines = []
    for key, value in content.items():
        if key in TREES:
            body = ",\n".join(_formatted_tree(tree) for tree in value)
            lines.append(f"{json.dumps(key)}: [\n{body}\n]")
        elif key == "trainings":
            body = ",\n".join(_formatted(training) for training in value)
            lines.append(f"{json.dumps(key)}: [\n{body}\n]")
        elif isinstance(value, dict) and value:
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in value.items())
            lines.append(f"{json.dumps(key)}: {{\n{inner}\n}}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def _formatted_tree(tree: Mapping[str, Any]) -> str:
    nodes = ",\n".join(f"    {json.dumps(node, allow_nan=False)}" for node in tree["nodes"])
    return f'  {{"weight": {json.dumps(tree["weight"], allow_nan=False)}, "nodes": [\n{nodes}\n  ]}}'
