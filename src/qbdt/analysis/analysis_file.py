"""A YAML file to an `Analysis`: every complaint with file and line, and a hint where there is one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from qbdt.analysis.schema import Analysis
from qbdt.errors import ConfigError, has_half_character, hint_at
from qbdt.models import is_model_text

LONGEST = 500_000
"""Characters of an analysis file that are read: about 5 000 systematic sources, which take a few seconds."""

KINDS = "weight, shape, norm, replicas, hessian or envelope"
"""Kinds of systematic sources."""

LONGEST_NUMBER = 400
"""Digits of a number: more than any that a double holds."""

MOST_ENTRIES = 100_000
"""Entries of an analysis file, those that aliases repeat included."""


def read_analysis(path: str | Path) -> Analysis:
    """Read and check an analysis file."""
    return _locate_partner(_check(YamlFile.read(Path(path))), Path(path).parent)


def parse_analysis(text: str, label: str = "analysis") -> Analysis:
    """Check the text of an analysis file.

    Examples
    --------
    >>> parse_analysis("dataset: {name: inferno}").training.max_bins
    256
    """
    return _check(YamlFile(text, label))


def _locate_partner(analysis: Analysis, folder: Path) -> Analysis:
    """Return the analysis with the path of the workspace that is fitted beside it from the file's folder."""
    found = analysis.training.partner
    if found is None or found.file is None:
        return analysis
    place = folder / found.file
    with suppress(OSError, RuntimeError):  # links in circles: it is refused where it is read
        place = place.resolve()
    located = found.model_copy(update={"file": str(place)})
    return analysis.model_copy(update={"training": analysis.training.model_copy(update={"with": located})})


def write_yaml(analysis: Analysis) -> str:
    """Return an analysis as the text of an analysis file, as far as it was given."""
    plain = analysis.model_dump(mode="json", exclude_unset=True)
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)


def _check(file: YamlFile) -> Analysis:
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
            reason = f"kind is missing: {KINDS}"
        case "union_tag_invalid":
            reason = f"kind {problem['ctx']['tag']!r}: must be {KINDS}"
        case "dict_type" | "model_type" | "model_attributes_type":
            reason = "a mapping of keys to values is needed"
        case "list_type":
            reason = "a list is needed"
        case "value_error":
            reason = str(problem["ctx"]["error"])
        case _:
            given = f", not {problem['input']!r}" if not isinstance(problem["input"], dict | list) else ""
            reason = problem["msg"][0].lower() + problem["msg"][1:] + given
    # What is found to be wrong of a whole analysis begins with the keys it is about.
    place = file.place(path or reason.partition(":")[0].split("."))
    return f"{place}: {name}{': ' * bool(name)}{reason}"


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


class _Loader(yaml.SafeLoader):
    """YAML without tags, and without numbers that old YAML reads in other ways than people do."""


def _read_number(loader: _Loader, node: yaml.ScalarNode) -> Any:
    """Read a number; one of base 60 (1:30) or with a leading zero (010 is eight there) is refused."""
    text, is_whole = node.value, node.tag.endswith(":int")
    if len(text) > LONGEST_NUMBER:
        raise yaml.constructor.ConstructorError(problem=f"a number of {len(text)} digits", problem_mark=node.start_mark)
    value = loader.construct_yaml_int(node) if is_whole else loader.construct_yaml_float(node)
    if ":" in text or (is_whole and re.fullmatch(r"[-+]?0[0-7_]+", text)):
        problem = f"{text} is read as {value:g}; write that, or put the text in quotes"
        raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
    return value


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _read_number)


class YamlFile:
    """A parsed YAML file: `data`, and the line of each entry. Keys given twice are refused, tags are not executed."""

    def __init__(self, text: str, label: str) -> None:
        self.label = label
        if is_model_text(text):
            raise ConfigError(f"{label}: a trained model; this takes an analysis file (see `qbdt init`)")
        if len(text) > LONGEST:
            raise ConfigError(f"{label}: {len(text)} characters; at most {LONGEST} are read as an analysis file")
        try:
            loader = _Loader(text)
            root = loader.get_single_node()
            if not isinstance(root, yaml.MappingNode):
                raise ConfigError(f"{label}: an analysis file is a mapping of keys to values (see `qbdt init`)")
            self._root = root
            self._refuse_bomb(root)
            self._refuse_repeated_keys(self._root, ())
            self.data: dict[str, Any] = loader.construct_document(self._root)
        except (ValueError, TypeError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise ConfigError(f"{label}: not valid YAML: {reason}") from error
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f":{mark.line + 1}" if mark else ""
            reason = getattr(error, "problem", None) or str(error).splitlines()[0]
            hint = "; quote text that begins with { or holds {…}" if "{" in _line(text, mark) else ""
            raise ConfigError(f"{label}{line}: not valid YAML: {reason}{hint}") from error

    @classmethod
    def read(cls, path: Path) -> YamlFile:
        """Read a file, or say why it cannot be read."""
        try:
            return cls(path.read_text(encoding="utf-8"), str(path))
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: not a text file") from error

    def place(self, keys: Sequence[str | int]) -> str:
        """`file:line` of the entry that a path of keys leads to, or of the deepest one that exists."""
        node: yaml.Node = self._root
        line = node.start_mark.line
        for key in keys:
            entry = _child(node, key)
            if entry is not None:
                line, node = entry
        return f"{self.label}:{line + 1}"

    def _refuse_bomb(self, root: yaml.Node) -> None:
        """Refuse aliases that stand for more entries than anybody writes, or for themselves; and half characters."""
        sizes: dict[int, int] = {}

        def measure(node: yaml.Node) -> int:
            if id(node) in sizes:
                if not sizes[id(node)]:
                    raise ConfigError(f"{self.label}:{node.start_mark.line + 1}: an alias stands for itself")
                return sizes[id(node)]
            sizes[id(node)] = 0  # not known yet
            self._refuse_half_characters(node)
            parts = node.value if isinstance(node, yaml.CollectionNode) else ()
            inner = (one for part in parts for one in (part if isinstance(part, tuple) else (part,)))
            sizes[id(node)] = 1 + sum(measure(one) for one in inner)
            return sizes[id(node)]

        if (entries := measure(root)) > MOST_ENTRIES:
            raise ConfigError(f"{self.label}: {entries:.6g} entries with all aliases; at most {MOST_ENTRIES} are read")

    def _refuse_half_characters(self, node: yaml.Node) -> None:
        """Refuse surrogates, which escapes in quotes can make: they can be neither written nor shown."""
        if isinstance(node, yaml.ScalarNode) and has_half_character(node.value):
            line = node.start_mark.line + 1
            raise ConfigError(f"{self.label}:{line}: {node.value[:40]!a}: half of a character; write it as it is")

    def _refuse_repeated_keys(self, node: yaml.Node, path: tuple[str, ...]) -> None:
        if isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                self._refuse_repeated_keys(item, (*path, str(i)))
        if not isinstance(node, yaml.MappingNode):
            return
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.tag != "tag:yaml.org,2002:str":
                kind = key.tag.rpartition(":")[2]
                shown = f"the name {key.value}" if isinstance(key, yaml.ScalarNode) else "the name of this entry"
                raise ConfigError(f"{self.label}:{line}: {shown} is read as {kind}; put it in quotes")
            if key.value in seen:
                inside = f" under {'.'.join(path)}" if path else ""
                raise ConfigError(
                    f"{self.label}:{line}: {key.value} is given twice{inside} (first in line {seen[key.value]})"
                )
            seen[str(key.value)] = line
            self._refuse_repeated_keys(value, (*path, str(key.value)))


def _line(text: str, mark: Any) -> str:
    return text.splitlines()[mark.line] if mark and mark.line < len(text.splitlines()) else ""


def _child(node: yaml.Node, key: str | int) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == str(key):
                return name.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        item = node.value[key]
        return item.start_mark.line, item
    return None
