"""Tables in files: the protocol of all readers, how a path finds its reader, and how tables are written."""

from __future__ import annotations

import errno
import glob
import math
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from numpy.typing import NDArray

from qbdt.data.readers.file_index import find_matches
from qbdt.errors import DataError, QBDTError
from qbdt.files import make_folder, recreate_root, replace_file, replace_folder

Item = TypeVar("Item")

NamedTables: TypeAlias = Iterable[tuple[str, Mapping[str, NDArray[Any]]]]

PACKED = (".gz", ".bz2", ".zst", ".zip")
"""Endings of packed files."""

MOST_RECURSIONS = 3
"""Times that `**` may stand in a wildcard: each multiplies the work by the depth of the tree."""

TIMEOUT = 60.0
"""Seconds that a server may take to answer."""

CHUNK_BYTES = 64 * 2**20
"""Size of the pieces that are read at a time: large enough for the disk, small against the arrays that are kept."""


class Share(NamedTuple):
    """A range of a file, in fractions of its length: shares that follow each other hold every row once, in order.

    Examples
    --------
    >>> [list(Share(Fraction(i, 3), Fraction(i + 1, 3)).of(5)) for i in range(3)]
    [[0], [1, 2], [3, 4]]
    """

    begin: Fraction = Fraction(0)
    end: Fraction = Fraction(1)

    def of(self, n_pieces: int) -> range:
        """Return which of so many pieces of a file belong to it."""
        return range(math.floor(n_pieces * self.begin), math.floor(n_pieces * self.end))


WHOLE = Share()
"""All of a file."""


class TableFile(Protocol):
    """Columns of one file or in-memory table, read in chunks."""

    @property
    def label(self) -> str:
        """Name in messages: the path, with the tree."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows, or None where the format does not say."""

    @property
    def first_row(self) -> int:
        """Position in the whole file of the first row that is read."""

    def chunks(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Consecutive pieces with these columns: numpy arrays, or awkward ones for array branches."""


@contextmanager
def readable(path: str, format_name: str) -> Iterator[None]:
    """Turn whatever a reading library raises on a damaged file into a message that names the file."""
    try:
        yield
    except QBDTError:
        raise
    except ImportError as error:
        raise DataError(f"{path}: {error}") from error
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.EMFILE):
            raise DataError(f"{path}: {error.strerror}") from error
        raise DataError(f"{path}: cannot be read as {format_name} ({error}); is it truncated or damaged?") from error
    except Exception as error:
        reason = str(error).strip().splitlines()
        detail = reason[0] if reason else type(error).__name__
        raise DataError(f"{path}: cannot be read as {format_name} ({detail}); is it truncated or damaged?") from error


def each_readable(path: str, format_name: str, items: Iterator[Item]) -> Iterator[Item]:
    """Items as they come; only errors of making them, and not of the caller's block, are turned by `readable`."""
    while True:
        with readable(path, format_name):
            item = next(items, None)
        if item is None:
            return
        yield item
        del item  # not two chunks in memory at a time


def expand(pattern: str, folder: Path | None = None) -> list[str]:
    """Files that a path or wildcard (`*`, `?`, `[…]`, `**`) stands for, sorted; relative paths start in `folder`.

    Of remote addresses only `root://` takes wildcards.
    """
    pattern = _join_repeated(pattern)
    if "://" in pattern:
        return _expand_remote(pattern)
    try:
        path = Path(pattern).expanduser()
        full = path if path.is_absolute() or folder is None else folder / path
        if full.is_file():
            return [str(full)]
        is_other, is_folder = full.exists() and not full.is_dir(), full.is_dir() and pattern != ""
        found = list(dict.fromkeys(_matches(path, folder))) if glob.has_magic(pattern) else []  # ** finds some twice
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"{pattern}: {reason}") from error
    if is_other:
        raise DataError(f"{pattern}: neither a file nor a folder")
    if found:
        return found
    if is_folder:
        return _list_folder(full)
    start = "" if folder is None or path.is_absolute() else f" (relative paths start from {folder})"
    what = f"no file matches {full}" if glob.has_magic(pattern) else f"{full}: no such file"
    raise DataError(f"{what}{start}")


def _join_repeated(pattern: str) -> str:
    """Write `**/**` as `**`, which means the same but is looked through once; refuse patterns that take for ever."""
    joined = re.sub(r"(?<![^/])\*\*(/+\*\*)+(?![^/])", "**", pattern)
    if (times := joined.split("/").count("**")) > MOST_RECURSIONS:
        raise DataError(f"{pattern}: ** stands {times} times in it; at most {MOST_RECURSIONS} are looked through")
    return joined


def _expand_remote(address: str) -> list[str]:
    """Addresses that one with `*` stands for: an XRootD server can list its files, a web server cannot."""
    if "*" not in address:
        return [address]
    if not address.startswith("root://"):
        raise DataError(f"{address}: wildcards work in paths and over root:// only; name the files")
    _require_client(address, _ending(address))
    from fsspec.core import url_to_fs

    try:
        server, path = url_to_fs(address)
        found = sorted(server.unstrip_protocol(one) for one in server.glob(path))
    except OSError as error:
        raise DataError(f"{address}: {error}") from error
    if not found:
        raise DataError(f"no file matches {address}")
    return found


def _matches(path: Path, folder: Path | None) -> list[str]:
    """Files that match; kept in memory as long as the folder does not change, where only names in it are open."""
    start = "" if path.is_absolute() or folder is None else glob.escape(str(folder)) + "/"
    parent = Path(f"{start}{path}").parent
    if glob.has_magic(str(parent)):
        return list(find_matches(f"{start}{path}"))
    changed = parent.stat().st_mtime_ns if parent.is_dir() else 0
    return list(_index(f"{start}{path}", changed))


@lru_cache(maxsize=1000)
def _index(pattern: str, changed: int) -> tuple[str, ...]:
    return find_matches(pattern)


def _list_folder(folder: Path) -> list[str]:
    """Tables in a folder as coffea and RDataFrame write them: files of one format; _names are notes."""
    from qbdt.data.readers.arrow import OPENERS

    known = (".root", *OPENERS)
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith(("_", ".")))
    tables = [str(path) for path in files if _ending(str(path)) in known]
    if not tables:
        raise DataError(
            f"{folder}: is a folder without tables; files are told apart by their ending: {', '.join(known)}"
        )
    if len(endings := sorted({_ending(path) for path in tables})) > 1:
        raise DataError(f"{folder}: is a folder with files of several formats ({', '.join(endings)}); use a wildcard")
    return tables


def open_table(path: str, tree: str | None = None, share: Share = WHOLE) -> AbstractContextManager[TableFile]:
    """Open a file by its ending: .root, .parquet, .feather (.arrow) or .csv, also packed (.csv.gz, .csv.zip).

    Parameters
    ----------
    path
        File or remote address (`root://` where its client is installed, `https://`).
    tree
        Name of the TTree or RNTuple; not needed where the file has one only. Other formats have none.
    share
        Which share of it: entries of a tree, row groups of Parquet, batches of Feather; CSV is not divided.
    """
    from qbdt.data.readers.arrow import OPENERS
    from qbdt.data.readers.root import open_root

    ending = _ending(path)
    if path.startswith("root://"):
        _require_client(path, ending)
    if ending == ".root":
        return open_root(path, tree, share)
    if ending not in OPENERS:
        known = ", ".join([".root", *OPENERS])
        raise DataError(f"{path}: unknown ending {ending!r}; files are told apart by it: {known}")
    if path.startswith(("http://", "https://")):
        return _open_fetched(path, share, OPENERS[ending])
    return OPENERS[ending](path, share)


def _ending(path: str) -> str:
    """Ending of a file, both of them where it is packed: .csv.gz."""
    name = Path(path.partition("?")[0])
    ending = name.suffix.lower()
    return Path(name.stem).suffix.lower() + ending if ending in PACKED else ending


def _require_client(path: str, ending: str) -> None:
    """Refuse what cannot be read from an XRootD server."""
    if ending != ".root":
        raise DataError(f"{path}: only ROOT files are read over root://; fetch it first, or take https://")
    if find_spec("fsspec_xrootd") is None:
        raise DataError(f"{path}: XRootD's client is not installed: pip install fsspec-xrootd, or take https://")


@contextmanager
def _open_fetched(
    path: str, share: Share, opener: Callable[[str, Share], AbstractContextManager[TableFile]]
) -> Iterator[TableFile]:
    """Fetch a file from a server and open it; of ROOT files, only the parts that are needed are asked for instead."""
    from urllib.request import urlopen

    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder) / f"fetched{_ending(path)}"
        try:
            with urlopen(path, timeout=TIMEOUT) as answer, local.open("wb") as target:
                shutil.copyfileobj(answer, target)
        except OSError as error:
            raise DataError(f"{path}: cannot be fetched: {getattr(error, 'reason', None) or error}") from error
        with opener(str(local), share) as table:
            table.label = path  # type: ignore[misc]  # what messages call it
            yield table


def write_tables(path: str | Path, tables: NamedTables) -> list[str]:
    """Write pairs of a name and its columns as they come; returns the names.

    The path is a file that ends in .root, or a folder, made if absent, for Parquet files: those of an earlier writing
    are all replaced, other files in it stay.
    """
    target = Path(path)
    return _write_root(target, tables) if target.suffix == ".root" else _write_parquet(target, tables)


def _write_root(path: Path, tables: NamedTables) -> list[str]:
    names = []
    with replace_file(path) as scratch, recreate_root(scratch) as file:
        for name, columns in tables:
            file.mktree(name, {key: values.dtype for key, values in columns.items()}).extend(dict(columns))
            names.append(name)
    return names


def _write_parquet(folder: Path, tables: NamedTables) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    make_folder(folder.parent)
    names = []
    with replace_folder(folder.resolve(), ["*.parquet"]) as scratch:
        for name, columns in tables:
            pq.write_table(pa.table(dict(columns)), scratch / f"{name}.parquet", write_page_checksum=True)
            names.append(name)
    return names
