"""A folder of work that is done once, and goes on where it stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qbdt.errors import ConfigError, OutputError
from qbdt.files.records import read_record, write_record
from qbdt.files.whole_files import make_folder


class StepFolder:
    """A folder of work that is done once, and goes on where it stopped.

    It remembers the settings it was made with and refuses others; finished steps stay in it as JSON files.

    Parameters
    ----------
    path
        The folder; made if it is not there.
    settings
        Everything that the results depend on, as plain data; None where the name of each step says all it depends on
        (see `digest`), so that any run may use the folder.
    content
        What the folder holds, with its article, for messages: "a study".
    force
        Drop what an earlier run left; None where the caller offers no such option.
    owned
        Patterns of the files and folders that a run makes here: what `force` removes.
    record
        File that holds the settings.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     steps = StepFolder(Path(folder), {"seed": 1})
    ...     first = steps.get("sum", lambda: {"sum": 3})
    ...     StepFolder(Path(folder), {"seed": 1}).get("sum", lambda: {"sum": "not computed again"})
    {'sum': 3}
    """

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any] | None,
        content: str = "a run",
        *,
        force: bool | None = False,
        owned: Sequence[str] = ("*.json",),
        record: str = "settings.json",
    ) -> None:
        self.path, self._record = make_folder(path), path / record
        if force:
            self.clear(record, *owned)
        if settings is not None:
            plain = json.loads(json.dumps(settings))
            earlier = _find_record(path / record)
            if earlier is not None and earlier != plain:
                raise ConfigError(_refusal(path, content, earlier, plain, offer_force=force is not None))
            write_record(path / record, plain, indent=1)

    def require_own(self, *names: str) -> None:
        """Refuse to replace what has these names and is not of a run, since no run has left its record here."""
        there = [name for name in names if (self.path / name).exists()]
        if there and not self._record.exists():
            raise OutputError(
                f"{self.path}: {', '.join(there)} would be replaced, and no {self._record.name} says that it is of a "
                "run; choose another folder, or force=True to replace it"
            )

    def has(self, name: str) -> bool:
        """Whether a step is finished."""
        return _find_record(self._file(name)) is not None

    def find(self, name: str) -> dict[str, Any]:
        """Return the result of a finished step; empty where it is not finished."""
        return _find_record(self._file(name)) or {}

    def get(self, name: str, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return the result of a finished step, or do it now."""
        found = _find_record(self._file(name))
        return self.put(name, compute()) if found is None else found

    def put(self, name: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the result of a step, and return it as it will be read."""
        return write_record(self._file(name), result)

    def update(self, name: str, **values: Any) -> dict[str, Any]:
        """Add values to the result of a step, or replace some."""
        return self.put(name, {**self.find(name), **values})

    def clear(self, *patterns: str) -> None:
        """Remove the files and folders that match, and nothing else."""
        for found in [path for pattern in patterns for path in self.path.glob(pattern)]:
            if found.is_dir():
                shutil.rmtree(found, ignore_errors=True)
            else:
                found.unlink(missing_ok=True)

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.json"


def _find_record(path: Path) -> dict[str, Any] | None:
    """Content of a file; None where it is absent, or damaged."""
    try:
        return read_record(path)
    except (FileNotFoundError, ValueError):
        return None
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from error


def _refusal(
    path: Path, content: str, earlier: Mapping[str, Any], wanted: Mapping[str, Any], *, offer_force: bool
) -> str:
    names = sorted(name for name in {*earlier, *wanted} if earlier.get(name) != wanted.get(name))
    hint = ", or force=True to replace it" if offer_force else ""
    return f"{path} holds {content} with another {', '.join(names)}: choose another folder{hint}"
