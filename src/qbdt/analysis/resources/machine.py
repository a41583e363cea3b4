"""Memory that this process may use, and sizes of memory as people write them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from qbdt.arrays import BINS, FEATURES_PER_WORD
from qbdt.errors import ConfigError
from qbdt.trees.kernels import add_rows

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Where Linux shows the limits of control groups."""

UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30, "ti": 2.0**40}
"""Bytes of each unit."""

KERNEL_ROWS = 50_000
"""Rows of the kernel that is timed: less than a millisecond."""


def read_size(text: str) -> int:
    """Bytes that a size with a unit stands for.

    Examples
    --------
    >>> read_size("4GB"), read_size("1.5 GiB")
    (4000000000, 1610612736)
    """
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([kmgt]i?)b?", text.strip().lower())
    if found is None or not (size := int(float(found[1]) * UNITS[found[2]])):
        raise ConfigError(f"memory={text}: a size with its unit is needed, such as 4GB or 500MB")
    return size


def format_size(n_bytes: float) -> str:
    """Write a size with two digits.

    Examples
    --------
    >>> format_size(1.234e9), format_size(346e6), format_size(123e9)
    ('1.2 GB', '350 MB', '120 GB')
    """
    size, unit = (n_bytes / 1e9, "GB") if n_bytes >= 0.995e9 else (n_bytes / 1e6, "MB")
    return f"{float(f'{size:.2g}'):g} {unit}"


def find_memory() -> int:
    """Bytes that this process may use: free memory of the machine, or less where a control group allows less."""
    return min(_find_free(), *_list_limits(), 2**62)


def _find_free() -> int:
    """Memory of the machine that nobody uses, or all of it where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _list_limits(groups: Path = CONTROL_GROUPS, own: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """Limits of this process's control group, and of those that it is in."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            root, file = (groups, "memory.max") if not controllers else (groups / "memory", "memory.limit_in_bytes")
            if controllers in ("", "memory"):
                place = root / name.lstrip("/")
                for folder in (place, *place.parents):
                    with suppress(OSError, ValueError):
                        yield int((folder / file).read_text())
                    if folder == root:
                        break


def time_kernel() -> float:
    """Nanoseconds that the kernel of histograms takes for one row and feature on this machine, now."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**63, (1, KERNEL_ROWS), dtype=np.uint64)
    weights, out = np.ones(KERNEL_ROWS, dtype=np.int64), np.zeros(BINS * FEATURES_PER_WORD, dtype=np.int64)
    rows, share = np.arange(KERNEL_ROWS, dtype=np.int32), np.array([[0, 0, KERNEL_ROWS]])
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        add_rows(words, weights, FEATURES_PER_WORD, rows, True, share, out)
        times.append(time.perf_counter() - begin)
    return 1e9 * float(np.median(times)) / (KERNEL_ROWS * FEATURES_PER_WORD)
