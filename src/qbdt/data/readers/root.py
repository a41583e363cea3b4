"""ROOT files: TTrees and RNTuples through uproot, only the branches asked for, in chunks."""

from __future__ import annotations

import os
import re
import struct
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data.readers.table import CHUNK_BYTES, Share, TableFile, each_readable, readable
from qbdt.errors import DataError, hint_at

BRANCH_BYTES = CHUNK_BYTES // 4
"""Size of one branch in a chunk, at most: lists of a hundred weights are large, and are copied on the way."""

BASKET = struct.Struct(">ihiIhh")
"""Begin of a basket: bytes in the file, version, bytes unpacked, date, length of the key, cycle."""

SLACK = 2**20
"""Bytes by which a basket may exceed what its branch says that all have, or what it may hold."""

MOST_PACKED = 2**17
"""Bytes that one byte of a packed basket may stand for: the extreme is 128 kB of equal bytes in a block of four."""


@contextmanager
def open_root(path: str, tree: str | None, share: Share) -> Iterator[TableFile]:
    """Open one tree of a ROOT file."""
    import uproot

    with readable(path, "ROOT"):
        # Without aiohttp, which uproot would look for, ranges of the file are asked for with the standard library.
        by_range = {"handler": uproot.HTTPSource} if path.startswith(("http://", "https://")) else {}
        file = uproot.open(path, array_cache=None, object_cache=None, **by_range)
    with file:
        with readable(path, "ROOT"):
            found = file[_tree_name(path, file, tree)]
            opened: TableFile = (
                _NTuple(path, found, share) if hasattr(found, "field_names") else _Tree(path, found, share)
            )
        yield opened


def read_histogram(path: str, name: str) -> Floats:
    """Contents of the bins of a histogram in a ROOT file, without under- and overflow."""
    import uproot

    with readable(path, "ROOT"), uproot.open(path) as file:
        if name not in file:
            known = [key for key, kind in file.classnames(cycle=False).items() if kind.startswith("TH")]
            raise DataError(f"{path}: no histogram {name}; {hint_at(name, known)}")
        found = file[name]
        if not hasattr(found, "values") or not hasattr(found, "axes"):
            raise DataError(f"{path}: {name} is a {found.classname}, not a histogram")
        return np.asarray(found.values(), dtype=np.float64).ravel()


def _tree_name(path: str, file: Any, tree: str | None) -> str:
    classes = file.classnames(recursive=True, cycle=False)
    trees: list[str] = sorted(
        {name for name, kind in classes.items() if kind in ("TTree", "TNtuple", "TNtupleD", "ROOT::RNTuple")}
    )
    if tree is not None:
        if tree in trees:
            return tree
        raise DataError(f"{path}: no tree {tree}; there are: {', '.join(trees) or 'none'}")
    if len(trees) == 1:
        return trees[0]
    raise DataError(f"{path}: name one of its trees with `tree`: {', '.join(trees) or 'it has none'}")


class _RootTable(ABC):
    """A TTree or RNTuple of a file; both have a name and a number of entries."""

    def __init__(self, path: str, tree: Any, share: Share) -> None:
        self.label = f"{path}:{tree.name}"
        self._path, self._tree = path, tree
        self._entries = share.of(int(tree.num_entries))
        self.n_rows: int | None = len(self._entries)
        self.first_row = self._entries.start

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""

    @abstractmethod
    def _chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Consecutive pieces with these columns."""

    def chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        return each_readable(self._path, "ROOT", self._chunks(columns))


class _Tree(_RootTable):
    """A TTree. Branches that share a name are addressed by their titles."""

    @cached_property
    def _branches(self) -> dict[str, Any]:
        by_name = defaultdict(list)
        for branch in _leaves(self._tree):
            by_name[branch.name].append(branch)
        addressed = {name: found[0] for name, found in by_name.items() if len(found) == 1}
        for name, found in by_name.items():
            if len(found) > 1:
                for branch in found:
                    title = re.split(r"[/\[:]", branch.title)[0].strip() or name
                    addressed[title] = None if title in addressed else branch  # None: titles do not tell them apart
        return addressed

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._branches)

    def _chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        branches = {name: self._branches[name] for name in columns}
        for name, branch in branches.items():
            if branch is None:
                raise DataError(f"{self.label}: two branches are named {name}, and titles do not tell them apart")
            if int(branch.num_entries) != int(self._tree.num_entries):
                raise DataError(
                    f"{self.label}: the tree has {self._tree.num_entries} entries, its branch {name} has "
                    f"{branch.num_entries}; is it damaged?"
                )
        self._require_sizes(branches)
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as threads:
            for start, stop in _steps(self._tree, self._entries, list(branches.values())):
                arrays = {name: threads.submit(self._read, name, start, stop) for name in branches}
                yield {name: arrays.pop(name).result() for name in list(branches)}

    def _require_sizes(self, branches: Mapping[str, Any]) -> None:
        """Refuse a local file with a basket that says that it is far larger than its branch: uproot would make room."""
        if "://" in self._path:
            return
        length = Path(self._path).stat().st_size
        with Path(self._path).open("rb") as file:
            for name, branch in branches.items():
                seeks = branch.member("fBasketSeek")[: branch.member("fWriteBasket")]
                for seek in seeks[seeks > 0].tolist():
                    file.seek(seek)
                    if len(header := file.read(BASKET.size)) < BASKET.size:
                        continue  # uproot says so
                    packed, _, unpacked, *_ = BASKET.unpack(header)
                    most = min(int(branch.uncompressed_bytes), MOST_PACKED * min(max(packed, 0), length)) + SLACK
                    if not 0 <= unpacked <= most:
                        raise DataError(f"{self.label}: a basket of {name} has a size it cannot have; is it damaged?")

    def _read(self, name: str, start: int, stop: int) -> Any:
        branch = self._branches[name]
        flat = type(branch.interpretation).__name__ == "AsDtype"
        return branch.array(entry_start=start, entry_stop=stop, library="np" if flat else "ak", array_cache=None)


def _leaves(parent: Any) -> Iterator[Any]:
    for branch in parent.branches:
        if branch.branches:
            yield from _leaves(branch)
        else:
            yield branch


def _steps(tree: Any, entries: range, branches: list[Any]) -> Iterator[tuple[int, int]]:
    """Ranges of entries of about `CHUNK_BYTES` that end, where possible, where all baskets end."""
    n_rows = int(tree.num_entries)
    sizes = [max(branch.uncompressed_bytes, 1) / max(n_rows, 1) for branch in branches]
    step = max(1, int(min(CHUNK_BYTES / max(sum(sizes), 1e-9), BRANCH_BYTES / max(*sizes, 1e-9))))
    common = np.asarray(tree.common_entry_offsets(filter_branch=lambda branch: branch in branches))
    start = entries.start
    while start < entries.stop:
        ends = common[(common > start) & (common <= min(start + step, entries.stop))]
        stop = int(ends[-1]) if ends.size and ends[-1] > start + step // 4 else min(entries.stop, start + step)
        yield start, stop
        start = stop


class _NTuple(_RootTable):
    """An RNTuple."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tree.keys(recursive=False))

    def _chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        step = max(1, CHUNK_BYTES // (8 * max(len(columns), 1)))
        wanted = list(columns)
        for start in self._entries[::step]:
            stop = min(start + step, self._entries.stop)
            array = self._tree.arrays(filter_name=wanted, entry_start=start, entry_stop=stop, library="ak")
            yield {name: _flat_or_jagged(array[name]) for name in columns}


def _flat_or_jagged(array: Any) -> Any:
    import awkward as ak

    return ak.to_numpy(array) if array.ndim == 1 else array
