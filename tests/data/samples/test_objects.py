import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbdt.data.samples.objects import METADATA, Objects, ObjectsWriter, read_folder, round_mantissa
from qbdt.errors import DataError
from qbdt.files import digest_file
from tests.data.samples.test_reconstruction import random_objects


@given(st.floats(min_value=2.0**-100, max_value=2.0**100, width=32), st.booleans())
def test_rounding_keeps_fourteen_bits(value, negative):
    value = -value if negative else value
    rounded = float(round_mantissa(np.array([value]))[0])
    assert abs(rounded - value) <= 2.0**-15 * abs(value)
    assert float(round_mantissa(np.array([rounded]))[0]) == rounded


def write_sample(folder, n=300):
    entries = {}
    for name in ("signal", "background"):
        path = folder / f"{name}.parquet"
        with ObjectsWriter(path, rows_per_group=100) as writer:
            writer.write(random_objects(n))
        entries[name] = {"file": path.name, "sha256": digest_file(path), "weight": 0.25}
    (folder / METADATA).write_text(json.dumps({"format": 1, "processes": entries}))


def test_round_trip(tmp_path):
    write_sample(tmp_path)
    expected = random_objects(300)
    for name, objects, weight in read_folder(tmp_path):
        assert name in ("signal", "background")
        assert weight == 0.25
        for column in Objects.__slots__:
            assert np.array_equal(getattr(objects, column), getattr(expected, column))
            assert getattr(objects, column).dtype == getattr(expected, column).dtype


def test_pieces_become_row_groups_of_one_size(tmp_path):
    path = tmp_path / "x.parquet"
    objects = random_objects(250)
    with ObjectsWriter(path, rows_per_group=100) as writer:
        for start in range(0, 250, 30):
            writer.write(objects[start : start + 30])
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [100, 100, 50]
    assert np.array_equal(Objects.from_table(file.read()).tau_pt, objects.tau_pt)


def test_a_damaged_file_is_refused(tmp_path):
    write_sample(tmp_path)
    path = tmp_path / "background.parquet"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"background\.parquet: the checksum differs"):
        list(read_folder(tmp_path))


def test_what_is_not_a_sample_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no metadata\.json"):
        list(read_folder(tmp_path))
    write_sample(tmp_path)
    (tmp_path / "signal.parquet").unlink()
    with pytest.raises(DataError, match=r"signal\.parquet: the file is named in metadata\.json but absent"):
        list(read_folder(tmp_path))
    (tmp_path / METADATA).write_text('{"format": 99}')
    with pytest.raises(DataError, match="format 99: this version of qbdt reads format 1"):
        list(read_folder(tmp_path))
    (tmp_path / METADATA).write_text("{")
    with pytest.raises(DataError, match="not valid JSON"):
        list(read_folder(tmp_path))
    with pytest.raises(DataError, match="no column event_number, lepton_flavour"):
        Objects.from_table(pa.table({"x": [1]}))
