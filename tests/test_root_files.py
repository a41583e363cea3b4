"""ROOT files have the same bytes for the same content, and another identifier for another."""

import datetime

import numpy as np
import uproot

from qbdt.data.readers import write_tables
from qbdt.files import root_files


def write(path, values):
    write_tables(path, [("t", {"x": np.array(values)}), ("inner/u", {"n": np.arange(3)})])
    return path.read_bytes()


def test_the_same_content_gives_the_same_bytes(tmp_path, monkeypatch):
    first = write(tmp_path / "a.root", [1.0, 2.0])
    monkeypatch.setattr(datetime, "datetime", None)  # no clock is asked
    assert write(tmp_path / "another.root", [1.0, 2.0]) == first


def test_files_with_other_content_have_other_identifiers(tmp_path):
    for name, value in (("a", 1.0), ("b", 2.0)):
        assert root_files.PLACEHOLDER.bytes not in write(tmp_path / f"{name}.root", [value])
    with uproot.open(tmp_path / "a.root") as a, uproot.open(tmp_path / "b.root") as b:
        assert a.file.uuid != b.file.uuid
        assert (a["t"]["x"].array(library="np")[0], b["t"]["x"].array(library="np")[0]) == (1.0, 2.0)
        assert a["inner/u"].num_entries == 3


def test_other_writers_keep_their_clock(tmp_path):
    write(tmp_path / "a.root", [1.0])
    from uproot.writing import _cascade

    assert _cascade.datetime is datetime
