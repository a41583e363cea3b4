"""Ways to store tables: friends, nested Parquet, packed CSV, folders, and files on a server."""

import fnmatch
import functools
import gc
import gzip
import http.server
import json
import os
import threading
import zipfile
from pathlib import Path

import awkward as ak
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import uproot

from qbdt.data.readers import Friend, Request, Share, expand, file_index, open_with_friends, read_events, read_request
from qbdt.errors import DataError

N = 1000
COLUMNS = {"x": np.arange(N, dtype=np.float64), "event": np.arange(N)[::-1] + 7}


def write_root(path, **trees):
    with uproot.recreate(path) as file:
        for name, columns in trees.items():
            file[name] = columns


class TestFriends:
    @pytest.fixture
    def folder(self, tmp_path):
        jets = ak.unflatten(np.arange(2.0 * N), np.full(N, 2))
        write_root(tmp_path / "main.root", Events=COLUMNS, Weights={"w": np.arange(N) * 2.0})
        order = np.random.default_rng(1).permutation(N)
        friend = {"event": COLUMNS["event"][order], "score": COLUMNS["x"][order] / 10}
        pa.parquet.write_table(pa.table({**friend, "jets": jets[order].tolist()}), tmp_path / "friend.parquet")
        pa.parquet.write_table(pa.table({"score": COLUMNS["x"] / 10}), tmp_path / "ordered.parquet", row_group_size=77)
        return tmp_path

    def read(self, folder, features, *friends, share=None, **options):
        tables = [open_with_friends(str(folder / "main.root"), "Events", share or Share(), friends)]
        return read_request(tables, Request(features=features, **options))[0]

    def test_another_tree_of_the_file_by_position(self, folder):
        events = self.read(folder, ("x", "w"), Friend(str(folder / "main.root"), "Weights"))
        np.testing.assert_array_equal(events.column("w"), 2 * events.column("x"))

    def test_another_file_by_identifiers(self, folder):
        friend = Friend(str(folder / "friend.parquet"), by=("event",))
        events = self.read(folder, ("x", "score", "jets[1]"), friend)
        np.testing.assert_allclose(events.column("score"), events.column("x") / 10)
        np.testing.assert_allclose(events.column("jets[1]"), 2 * events.column("x") + 1)

    def test_shares_by_position(self, folder):
        friend = Friend(str(folder / "ordered.parquet"))
        thirds = [Share(*(type(Share().end)(i + j, 3) for j in (0, 1))) for i in range(3)]
        found = [self.read(folder, ("x", "score"), friend, share=share) for share in thirds]
        np.testing.assert_allclose(np.concatenate([e.column("score") for e in found]), COLUMNS["x"] / 10)

    def test_other_rows_are_refused(self, folder):
        pa.parquet.write_table(pa.table({"score": np.zeros(5), "event": np.arange(5)}), folder / "short.parquet")
        with pytest.raises(DataError, match=r"friend .*short.parquet has 5 rows, .*main.root:Events has 1000"):
            self.read(folder, ("x", "score"), Friend(str(folder / "short.parquet")))
        with pytest.raises(DataError, match=r"short.parquet has no row for 1000 events of .*, first event = 1006"):
            self.read(folder, ("x", "score"), Friend(str(folder / "short.parquet"), by=("event",)))
        pa.parquet.write_table(pa.table({"score": np.zeros(5), "event": np.ones(5)}), folder / "twice.parquet")
        with pytest.raises(DataError, match=r"twice.parquet: 4 rows have the event of another one"):
            self.read(folder, ("x", "score"), Friend(str(folder / "twice.parquet"), by=("event",)))
        pa.parquet.write_table(pa.table({"score": np.zeros(0), "event": np.arange(0)}), folder / "none.parquet")
        with pytest.raises(DataError, match=r"friend .*none.parquet has no rows"):
            self.read(folder, ("x", "score"), Friend(str(folder / "none.parquet"), by=("event",)))
        with pytest.raises(DataError, match=r"ordered.parquet: no column event, by which friends are matched"):
            self.read(folder, ("x", "score"), Friend(str(folder / "ordered.parquet"), by=("event",)))


def test_fields_of_records_in_parquet_and_feather(tmp_path):
    jets = ak.Array([[{"pt": 1.0, "eta": 2.0}, {"pt": 3.0, "eta": 4.0}], [], [{"pt": 5.0, "eta": 6.0}]])
    nested = ak.zip({"jet": jets, "mu": ak.zip({"pt": [7.0, 8.0, 9.0]}), "x": [1, 2, 3]}, depth_limit=1)
    ak.to_parquet(nested, tmp_path / "nested.parquet")
    pa.feather.write_feather(pa.parquet.read_table(tmp_path / "nested.parquet"), tmp_path / "nested.feather")
    for name in ("nested.parquet", "nested.feather"):
        derived = {"ht": "sum(jet.pt[jet.eta > 2])", "mu_pt": "mu.pt"}
        events = read_events(tmp_path / name, ["ht", "mu_pt", "x"], derived=derived)
        assert events.column("ht").tolist() == [3, 0, 5]
        assert events.column("mu_pt").tolist() == [7, 8, 9]


@pytest.mark.parametrize("ending", ["gz", "zip"])
def test_packed_csv(tmp_path, ending):
    text = "x,y\n" + "".join(f"{i},{i / 2}\n" for i in range(50))
    path = tmp_path / f"table.csv.{ending}"
    if ending == "gz":
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner/table.csv", text)
    events = read_events(path, ["x", "y"])
    np.testing.assert_allclose(events.column("y"), events.column("x") / 2)


def test_bad_archives(tmp_path):
    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        archive.writestr("a.csv", "x\n1\n")
        archive.writestr("b.csv", "x\n1\n")
    with pytest.raises(DataError, match=r"two.csv.zip: 2 CSV files are in it: one is needed"):
        read_events(tmp_path / "two.csv.zip", ["x"])
    (tmp_path / "bad.csv.zip").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"bad.csv.zip: cannot be read as ZIP"):
        read_events(tmp_path / "bad.csv.zip", ["x"])


def test_a_folder_of_parts(tmp_path):
    for i in range(3):
        pa.parquet.write_table(pa.table({"x": np.full(4, i)}), tmp_path / f"part{i}.parquet")
    (tmp_path / "_metadata").write_bytes(b"notes of the writer")
    assert read_events(tmp_path, ["x"]).column("x").tolist() == [0] * 4 + [1] * 4 + [2] * 4
    write_root(tmp_path / "other.root", Events=COLUMNS)
    with pytest.raises(DataError, match=r"files of several formats \(.parquet, .root\); use a wildcard"):
        read_events(tmp_path, ["x"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is a folder without tables"):
        read_events(tmp_path / "empty", ["x"])


def test_an_index_of_many_files_is_kept_on_disk(tmp_path, monkeypatch):
    folder, cache = tmp_path / "files", tmp_path / "cache"
    monkeypatch.setenv("QBDT_CACHE", str(cache))
    monkeypatch.setattr(file_index, "MANY", 3)
    for name in ("a/x1.csv", "a/x2.csv", "b/x3.csv", "b/y.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    names = [str(folder / name) for name in ("a/x1.csv", "a/x2.csv", "b/x3.csv")]
    wildcard = str(folder / "*" / "x*.csv")
    assert list(file_index.find_matches(wildcard)) == names
    assert not cache.exists()  # folders that have just changed may change again without a new time
    for one in (folder, folder / "a", folder / "b"):
        os.utime(one, (1e9, 1e9))
    assert list(file_index.find_matches(wildcard)) == names
    (written,) = cache.iterdir()
    plain = json.loads(written.read_text())
    assert set(plain["folders"]) == {str(folder), str(folder / "a"), str(folder / "b")}
    written.write_text(json.dumps({**plain, "files": names[:1]}))
    assert list(file_index.find_matches(wildcard)) == names[:1]  # nothing is listed again
    (folder / "b" / "x4.csv").touch()
    assert len(file_index.find_matches(wildcard)) == 4
    written.write_text("damaged")
    assert len(file_index.find_matches(wildcard)) == 4
    assert list(file_index.find_matches(str(folder / "**" / "x3.csv"))) == names[2:]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("root://eos.cern.ch//eos/a.root", "XRootD's client is not installed: pip install fsspec-xrootd"),
        ("root://eos.cern.ch//eos/a.parquet", "only ROOT files are read over root://"),
    ],
)
def test_xrootd_without_its_client(path, message, monkeypatch):
    monkeypatch.setattr("qbdt.data.readers.table.find_spec", lambda name: None)
    with pytest.raises(DataError, match=message):
        read_events(path, ["x"])


class Listing:
    """What fsspec-xrootd answers of a server with two files."""

    def glob(self, path):
        return [name for name in ("/d/b.root", "/d/a.root") if fnmatch.fnmatch(name, path)]

    def unstrip_protocol(self, path):
        return f"root://here/{path}"


def test_an_xrootd_server_lists_what_a_wildcard_stands_for(monkeypatch):
    monkeypatch.setattr("qbdt.data.readers.table.find_spec", lambda name: name)
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda address: (Listing(), address.removeprefix("root://here/")))
    assert expand("root://here//d/*.root") == ["root://here//d/a.root", "root://here//d/b.root"]
    assert expand("root://here//d/a.root") == ["root://here//d/a.root"]
    with pytest.raises(DataError, match="no file matches root://here//d/x"):
        expand("root://here//d/x*.root")
    with pytest.raises(DataError, match="wildcards work in paths and over root:// only"):
        expand("https://here/d/*.root")


def test_wildcards_see_new_files(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text("x\n1\n")
        assert len(expand("*.csv", tmp_path)) == i + 1


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files of a folder, and ranges of bytes of them, as servers of data do."""

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        content, ranges = (Path(self.directory) / self.path.lstrip("/")), self.headers.get("Range")
        if ranges is None or not content.is_file():
            super().do_GET()
            return
        begin, end = map(int, ranges.split(",")[0].removeprefix("bytes=").split("-"))
        body = content.read_bytes()
        piece = body[begin : end + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{begin + len(piece) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(piece)))
        self.end_headers()
        self.wfile.write(piece)


@pytest.fixture
def server(tmp_path):
    write_root(tmp_path / "events.root", Events=COLUMNS)
    pa.parquet.write_table(pa.table(COLUMNS), tmp_path / "events.parquet")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(tmp_path))) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore:.*unclosed.*:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_files_on_a_server(server):
    for name in ("events.root", "events.parquet"):
        assert read_events(f"{server}/{name}", ["x"]).column("x").tolist() == COLUMNS["x"].tolist()
    with pytest.raises(DataError, match=r"absent.parquet: cannot be fetched"):
        read_events(f"{server}/absent.parquet", ["x"])
    with pytest.raises(DataError, match=r"absent.root"):
        read_events(f"{server}/absent.root", ["x"])
    gc.collect()  # uproot leaves sockets to the garbage collector, which complains about them here and not later


def test_repeated_recursion_is_looked_through_once(tmp_path):
    """A tree that is 24 folders deep: `**/**` of all its levels took for ever."""
    deep = tmp_path.joinpath(*map(str, range(24)))
    deep.mkdir(parents=True)
    files = [deep / "b.csv", tmp_path / "0" / "1" / "a.csv", tmp_path / "c.csv"]
    for file in files:
        file.write_text("x\n1\n")
    expected = sorted(map(str, files))
    assert expand("**/**/**/**/**/**/**/**/**/**/**/**/*.csv", tmp_path) == expand("**/*.csv", tmp_path) == expected
    assert expand(f"{tmp_path}/**/**", None) == expand(f"{tmp_path}/**") == expected
    assert expand("**/?/**/*.csv", tmp_path) == expected[:-1]  # found in many ways, and named once
    with pytest.raises(DataError, match=r"\*\*/1/\*\*/\*/\*\*/\*/\*\*/b.csv: \*\* stands 4 times in it; at most 3"):
        expand("**/1/**/*/**/*/**/b.csv", tmp_path)
