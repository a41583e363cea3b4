"""Results that are computed once: a folder of files, each named by a digest of everything that it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.data import Dataset
from qbdt.errors import OutputError
from qbdt.files import replace_file, write_text

__all__ = ["Cache", "fingerprint"]

Key: TypeAlias = Mapping[str, Any]


class Cache:
    """A folder of finished pieces of work.

    Parameters
    ----------
    folder
        Where to keep them; made if it is not there.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cache = Cache(Path(folder))
    ...     first = cache.values("sum", {"of": [1, 2]}, lambda: {"sum": 3})
    ...     cache.values("sum", {"of": [1, 2]}, lambda: {"sum": "not computed again"})
    {'sum': 3}
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: {error.strerror or error}") from error

    def values(self, what: str, key: Key, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Plain values: those of an earlier run, or computed now."""
        path = self._path(what, key, "json")
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["result"]
        except (FileNotFoundError, json.JSONDecodeError, KeyError):
            found = json.loads(json.dumps(dict(compute())))
            write_text(path, json.dumps({"what": what, "key": key, "result": found}, indent=1) + "\n")
        return found

    def arrays(
        self, what: str, key: Key, compute: Callable[[], Sequence[NDArray[np.float64]]]
    ) -> list[NDArray[np.float64]]:
        """Arrays of one dimension, in order: those of an earlier run, or computed now."""
        path = self._path(what, key, "npz")
        if not path.exists():
            computed = [np.asarray(array, dtype=np.float64) for array in compute()]
            lengths = np.array([len(array) for array in computed], dtype=np.int64)
            with replace_file(path) as scratch, scratch.open("wb") as file:
                np.savez(file, values=np.concatenate(computed), lengths=lengths)
        with np.load(path) as stored:
            return np.split(stored["values"], np.cumsum(stored["lengths"])[:-1])

    def _path(self, what: str, key: Key, suffix: str) -> Path:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]
        label = "".join(letter if letter.isalnum() else "-" for letter in what.lower())
        return self.folder / f"{label}-{digest}.{suffix}"


def fingerprint(data: Dataset) -> str:
    """Digest of all events of a dataset, nominal and varied."""
    digest = hashlib.sha256()
    events = [sample.events for sample in data.samples]
    for source in data.systematics:
        digest.update(repr(source).encode())
        for direction, _ in source.directions:
            events += data.varied(source.name, direction).values()
    for each in events:
        for name in each.features:
            digest.update(np.ascontiguousarray(each.column(name)).tobytes())
        digest.update(each.weight.tobytes())
    return digest.hexdigest()[:20]
