"""Steps that are done once: each writes one JSON file, and a run that is started again takes what it finds.

The folder remembers what it was made with. Another seed, another number of trees or other events are another study.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from qbdt.errors import ConfigError, OutputError
from qbdt.files import write_text

__all__ = ["Steps", "fingerprint"]


class Steps:
    """Folder of finished steps.

    Parameters
    ----------
    folder
        Where to write; made if it is not there.
    settings
        Everything the numbers depend on.
    force
        Drop what an earlier run left.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], force: bool = False) -> None:
        self._folder = folder / "steps"
        plain = json.loads(json.dumps(settings))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for path in self._folder.glob("*.json") if force else ():
                path.unlink()
            earlier = self._read("settings")
            if earlier is not None and earlier != plain:
                raise ConfigError(_refusal(folder, earlier, plain))
            self._write("settings", plain)
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror or error}") from error

    def has(self, name: str) -> bool:
        """Whether a step is finished."""
        return self._read(name) is not None

    def get(self, name: str, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return a finished step, or do it now."""
        found = self._read(name)
        if found is None:
            self._write(name, compute())
            found = self._read(name)
        assert found is not None
        return found

    def put(self, name: str, result: Mapping[str, Any]) -> None:
        """Keep the result of a step that was done elsewhere."""
        self._write(name, result)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _read(self, name: str) -> dict[str, Any] | None:
        """Content of a step; None where it is absent or was not written to its end."""
        try:
            found: dict[str, Any] = json.loads(self._path(name).read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return found

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        write_text(self._path(name), json.dumps(content) + "\n")


def fingerprint(path: Path) -> str:
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _refusal(folder: Path, earlier: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    names = sorted(name for name in {*earlier, *wanted} if earlier.get(name) != wanted.get(name))
    return f"{folder} holds a study with another {', '.join(names)}: choose another --out, or --force to replace it"
