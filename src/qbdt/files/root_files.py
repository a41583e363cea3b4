"""ROOT files whose bytes depend on their content alone: no time of day, no random identifier, no scratch name."""

from __future__ import annotations

import datetime
import hashlib
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

PLACEHOLDER = UUID("5d1c9f1e-2a63-4c0b-9f0e-71e8b4d0a6c3")
"""Stands in a file for its identifier while it is written (any number)."""

EPOCH = datetime.datetime(1995, 1, 1)
"""Time that ROOT files say they were written at: ROOT counts local time from here."""

STOPPED = SimpleNamespace(datetime=SimpleNamespace(now=lambda: EPOCH))
"""Stands for the module `datetime` where uproot asks for the time, which it offers no option for."""


@contextmanager
def recreate_root(path: Path) -> Iterator[Any]:
    """Yield a new ROOT file to write into; as `uproot.recreate`, with the same bytes for the same content."""
    import uproot

    with stable_root_files(path), path.open("w+b") as stream, uproot.recreate(stream) as file:
        yield file


@contextmanager
def stable_root_files(path: Path) -> Iterator[None]:
    """Make ROOT files that are written in the block, to a path or below a folder, depend on their content alone."""
    from unittest.mock import patch

    from uproot.writing import _cascade, _cascadetree, writable

    with (
        patch.object(_cascade, "datetime", STOPPED),
        patch.object(_cascadetree, "datetime", STOPPED),
        patch.dict(writable.create.defaults, {"uuid_function": lambda: PLACEHOLDER}),
    ):
        yield
    for file in [path] if path.is_file() else sorted(path.rglob("*.root")):
        _name_by_content(file)


def _name_by_content(path: Path) -> None:
    """Replace the placeholder by a digest of the file: readers take files with one identifier for the same."""
    with path.open("r+b") as stream:
        content = hashlib.file_digest(stream, "sha256").digest()[:16]
        with mmap.mmap(stream.fileno(), 0) as memory:
            place = memory.find(PLACEHOLDER.bytes)
            while place >= 0:
                memory[place : place + 16] = UUID(bytes=content, version=4).bytes
                place = memory.find(PLACEHOLDER.bytes, place)
            memory.flush()
