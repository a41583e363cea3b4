"""YAML text to plain data, remembering on which line each entry stands, so that messages can say where to look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from qbdt.errors import ConfigError

__all__ = ["YamlFile"]


class YamlFile:
    """A parsed YAML file: `data`, and the line of each entry. Keys given twice are refused, tags are not executed."""

    def __init__(self, text: str, label: str) -> None:
        self.label = label
        try:
            loader = yaml.SafeLoader(text)
            root = loader.get_single_node()
            if not isinstance(root, yaml.MappingNode):
                raise ConfigError(f"{label}: an analysis file is a mapping of keys to values (see `qbdt init`)")
            self._root = root
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
                raise ConfigError(f"{self.label}:{line}: the name {key.value} is read as {kind}; put it in quotes")
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
