"""Where numbers come from: settings, versions, machine, checksums of files, timings."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from typing import Any

from qbdt.files import versions
from qbdt.tables import Table

__all__ = ["provenance_tables"]


def provenance_tables(
    settings: Mapping[str, Any], files: Mapping[str, str], seconds: Mapping[str, float]
) -> Iterator[Table]:
    """Tables of settings, versions, checksums and timings.

    Parameters
    ----------
    settings
        Name to value.
    files
        File name to SHA-256.
    seconds
        Stage to seconds.
    """
    yield Table("Settings", ("setting", "value"), tuple((name, str(value)) for name, value in settings.items()))
    machine = ("machine", f"{platform.machine()}, {os.cpu_count()} cores")
    yield Table("Versions", ("what", "version"), (machine, *versions().items()))
    if files:
        yield Table("Files", ("file", "SHA-256"), tuple(files.items()))
    if seconds:
        yield Table("Time spent in this run", ("stage", "seconds"), tuple((s, f"{t:.1f}") for s, t in seconds.items()))
