"""Records: JSON files that are read again, each with a checksum, so that damage is not taken for other numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qbdt.files.provenance import digest
from qbdt.files.whole_files import write_text

CHECKSUM = "checksum"


def write_record(path: Path, content: Mapping[str, Any], indent: int | None = None) -> dict[str, Any]:
    """Write plain data with their checksum, and return them as they will be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.json"
    ...     plain = write_record(path, {"events": (1, 2)})
    ...     read_record(path) == plain == {"events": [1, 2]}
    True
    """
    plain: dict[str, Any] = json.loads(json.dumps(content))
    write_text(path, json.dumps({**plain, CHECKSUM: digest(plain)}, indent=indent) + "\n")
    return plain


def read_record(path: Path) -> dict[str, Any]:
    """Read plain data back; those of an earlier version may have no checksum.

    Raises `OSError`, and `ValueError` for a file that is damaged, or was edited by hand.
    """
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        given = found.pop(CHECKSUM, None) if isinstance(found, dict) else ""
        if given not in (None, digest(found)):
            raise ValueError(f"its {CHECKSUM} does not match; without that entry it is taken as it is")
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return dict(found)
