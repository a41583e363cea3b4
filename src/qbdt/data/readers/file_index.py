"""Which files a wildcard matches: kept on disk where there are thousands, until a folder that was looked into changes.

To list a folder of many files takes seconds on the file systems of large laboratories, and is asked for again by each
partition and each command. A folder's time of change tells that files came or went.
"""

from __future__ import annotations

import glob
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from qbdt.errors import QBDTError
from qbdt.files import digest, make_folder, write_text

MANY = 1000
"""Files from which on an index is written."""

SETTLED = 2.0
"""Seconds since the last change of a folder after which its time of change tells of the next one."""


def cache_folder() -> Path:
    """Folder of indexes: `QBDT_CACHE`, or `qbdt` in the user's cache."""
    own = os.environ.get("QBDT_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qbdt"


def find_matches(pattern: str) -> tuple[str, ...]:
    """Files that match a wildcard, sorted; from the index where no folder has changed since it was written.

    Only absolute patterns have an index.
    """
    place = cache_folder() / f"files-{digest(pattern)[:16]}.json"
    known = _read(place, pattern)
    if known is not None:
        return known
    matches = glob.glob(pattern, recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
    found = tuple(sorted(match for match in matches if Path(match).is_file()))
    if len(found) >= MANY and Path(pattern).is_absolute():
        _write(place, pattern, found)
    return found


def _read(place: Path, pattern: str) -> tuple[str, ...] | None:
    """Files of an index that still holds; an index that is damaged is none."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        plain = json.loads(place.read_text(encoding="utf-8"))
        folders: Mapping[str, int] = plain["folders"]
        if plain["pattern"] == pattern and all(_time_of_change(name) == when for name, when in folders.items()):
            return tuple(map(str, plain["files"]))
    return None


def _write(place: Path, pattern: str, files: tuple[str, ...]) -> None:
    """Write an index, unless a folder has just changed; where nothing can be written there is none."""
    folders = {name: _time_of_change(name) for name in _list_folders(pattern)}
    if time.time_ns() - max(folders.values(), default=0) < SETTLED * 1e9:
        return
    with suppress(OSError, QBDTError):
        make_folder(place.parent)
        write_text(place, json.dumps({"pattern": pattern, "folders": folders, "files": files}))


def _list_folders(pattern: str) -> Iterator[str]:
    """Folders in which files or folders that match may come or go."""
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    for end in range(first, len(parts)):
        level = str(Path(*parts[:end]))
        for name in glob.glob(level, recursive=True) if glob.has_magic(level) else [level]:  # noqa: PTH207
            if Path(name).is_dir():
                yield name


def _time_of_change(folder: str) -> int:
    """Time of change of a folder in ns."""
    return Path(folder).stat().st_mtime_ns
