"""The text of a model file: JSON that a person can read and diff, with a version, a checksum, and typed values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from qbdt.errors import ModelFileError, has_half_character, is_number

FORMAT = "qbdt model"
FORMAT_VERSION = 3
"""1: the paper's models. 2: also those of the profiled method, and cross-trained ones. 3: also categorical features."""

LARGEST_YIELD, LARGEST_OUTPUT = 1e250, 1e50
"""Sizes of the numbers of nodes, and of outputs and weights of trees, whose products stay below 1e308."""

TREES = ("trees", "shift_trees")


def format_text(content: Mapping[str, Any]) -> str:
    """Text of a model file with these contents."""
    whole = {"format": FORMAT, "version": FORMAT_VERSION, "qbdt": version("qbdt"), **content}
    try:
        text = _format({**whole, "checksum": checksum(whole)}) + "\n"
    except ValueError as error:
        raise ModelFileError("the model holds a number that is not finite: it cannot be written") from error
    _require_whole_characters(text, whole, "the model")
    return text


def is_model_text(text: str) -> bool:
    """Whether a text begins as a model file does."""
    return FORMAT in text[:200]


def parse_text(path: Path) -> dict[str, Any]:
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
        kind = "a damaged or truncated model file" if is_model_text(text) else "not a model file"
        raise ModelFileError(f"{path}: {kind}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError(f"{path}: not a model file: it does not say format: {FORMAT!r}")
    _require_version(path, content)
    _require_checksum(path, content)
    _require_whole_characters(text, content, str(path))
    return content


def _require_whole_characters(text: str, content: Mapping[str, Any], what: str) -> None:
    """Refuse names with half of a character, which no export could write; most texts have no escape of one."""
    if ("\\ud" in text or "\\uD" in text) and has_half_character(json.dumps(content, ensure_ascii=False)):
        raise ModelFileError(f"{what}: half of a character in a name or label")


def _require_checksum(path: Path, content: dict[str, Any]) -> None:
    """Take the checksum out of the contents and compare it; what JSON reads as infinity, such as 1e999, has none."""
    given = content.pop("checksum", None)
    try:
        right = given == checksum(content)
    except (ValueError, RecursionError):
        right = False
    if not right:
        raise ModelFileError(f"{path}: damaged or edited: its checksum does not match")


def _require_version(path: Path, content: Mapping[str, Any]) -> None:
    found = content.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ModelFileError(f"{path}: version {found!r} is not a version of the model file")
    if found > FORMAT_VERSION:
        raise ModelFileError(
            f"{path}: written in version {found} of the format by qbdt {content.get('qbdt')}; "
            f"this qbdt {version('qbdt')} reads up to version {FORMAT_VERSION}: update qbdt"
        )


def checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of the contents, whatever their order and spacing; only finite numbers have one."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def get(content: Mapping[str, Any], key: str, kind: type) -> Any:
    """Return the value of a key; refused where it is missing or of another type."""
    value = content.get(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelFileError(f"{key}: {'missing' if key not in content else 'wrong type'}")
    return value


def number(value: Any, what: str, most: float = math.inf) -> float:
    """Return a finite number, of a size that can be computed with where `most` is given."""
    if not is_number(value):
        raise ModelFileError(f"{what}: {repr(value)[:40]} is not a finite number")
    if abs(value) > most:
        raise ModelFileError(f"{what}: {value} is larger than {most:g}")
    return float(value)


def numbers(content: Mapping[str, Any], key: str) -> tuple[float, ...]:
    """Return a list of finite numbers."""
    return tuple(number(value, key) for value in get(content, key, list))


def names(content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of different names."""
    found = tuple(get(content, key, list))
    if not all(isinstance(name, str) for name in found) or len(set(found)) < len(found):
        raise ModelFileError(f"{key}: different names are needed")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of a model file")


def _format(content: Mapping[str, Any]) -> str:
    """JSON with one line per node, list of edges and setting."""
    lines = []
    for key, value in content.items():
        if key in TREES:
            body = ",\n".join(_format_tree(tree) for tree in value)
            lines.append(f"{json.dumps(key)}: [\n{body}\n]")
        elif key == "trainings":
            body = ",\n".join(_format(training) for training in value)
            lines.append(f"{json.dumps(key)}: [\n{body}\n]")
        elif isinstance(value, dict) and value:
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items())
            lines.append(f"{json.dumps(key)}: {{\n{inner}\n}}")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def _format_tree(tree: Mapping[str, Any]) -> str:
    nodes = ",\n".join(f"    {json.dumps(node)}" for node in tree["nodes"])
    return f'  {{"weight": {json.dumps(tree["weight"])}, "nodes": [\n{nodes}\n  ]}}'
