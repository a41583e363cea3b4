"""An analysis file to an `Analysis`: every complaint with file and line, and a hint where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from qbdt.analysis.schema import Analysis
from qbdt.analysis.yaml_file import YamlFile
from qbdt.errors import ConfigError, hint_at

__all__ = ["json_schema", "parse_analysis", "read_analysis"]


def read_analysis(path: str | Path) -> Analysis:
    """Read and check an analysis file."""
    return _checked(YamlFile.read(Path(path)))


def parse_analysis(text: str, label: str = "analysis") -> Analysis:
    """Check the text of an analysis file.

    Examples
    --------
    >>> parse_analysis("dataset: {name: inferno}").training.max_bins
    256
    """
    return _checked(YamlFile(text, label))


def json_schema() -> dict[str, Any]:
    """JSON schema of an analysis file, for editors that complete and check while typing."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Analysis.model_json_schema()}


def _checked(file: YamlFile) -> Analysis:
    try:
        return Analysis.model_validate(file.data)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        misspelt = {problem["loc"][:-1] for problem in problems if problem["type"] == "extra_forbidden"}
        told = [p for p in problems if not (p["type"] == "missing" and p["loc"][:-1] in misspelt)]
        first = {tuple(_path_in_file(file.data, problem)): problem for problem in reversed(told)}  # one of each union
        raise ConfigError("\n".join(_message(file, first[path]) for path in reversed(first))) from error


def _message(file: YamlFile, problem: Any) -> str:
    path = _path_in_file(file.data, problem)
    name = ".".join(str(key) for key in path)
    match problem["type"]:
        case "extra_forbidden":
            known = _keys_at(Analysis, problem["loc"][:-1])
            reason = f"unknown key; {hint_at(str(path[-1]), known)}"
        case "missing":
            reason = "is missing"
        case "union_tag_not_found":
            reason = "kind is missing: weight, shape or norm"
        case "union_tag_invalid":
            reason = f"kind {problem['ctx']['tag']!r}: must be weight, shape or norm"
        case "dict_type" | "model_type" | "model_attributes_type":
            reason = "a mapping of keys to values is needed"
        case "list_type":
            reason = "a list is needed"
        case "value_error":
            reason = str(problem["ctx"]["error"])
        case _:
            given = f", not {problem['input']!r}" if not isinstance(problem["input"], dict | list) else ""
            reason = problem["msg"][0].lower() + problem["msg"][1:] + given
    return f"{file.place(path)}: {name}{': ' * bool(name)}{reason}"


def _path_in_file(data: Any, problem: Any) -> list[str | int]:
    """Keys that lead to the problem; what pydantic adds for unions and validators is left out."""
    path: list[str | int] = []
    for key in problem["loc"]:
        inside: Any = dict(enumerate(data)) if isinstance(data, list) else data
        if isinstance(inside, dict) and key in inside:
            data = inside[key]
            path.append(key)
    return [*path, problem["loc"][-1]] if problem["type"] == "missing" else path


def _keys_at(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """Keys that the schema knows where an unknown one was found."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    found = schema
    for key in loc:
        found = _descend(found, key, definitions)
    return list(found.get("properties", {}))


def _descend(schema: dict[str, Any], key: str | int, definitions: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = schema.get("properties", {}).get(key) or schema.get("additionalProperties") or {}
    mapping = schema.get("discriminator", {}).get("mapping", {})
    if key in mapping:
        inner = {"$ref": mapping[key]}
    for option in inner.get("anyOf", ()):
        if "$ref" in option:
            inner = option
    reference = inner.get("$ref")
    return definitions[reference.rpartition("/")[2]] if reference else inner
