"""Every format gives the same events, and every fault one clear message."""

import struct
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import uproot

from qbdt.data.events import Events
from qbdt.data.expressions import Expression
from qbdt.data.readers.request import Request, read_events, read_request
from qbdt.data.readers.table import Share, expand, open_table
from qbdt.errors import DataError, ExpressionError

N = 100
RANDOM = np.random.default_rng(0)
COLUMNS: dict[str, Any] = {
    "pt": RANDOM.exponential(30, N).astype(np.float32),
    "eta": RANDOM.normal(size=N),
    "n": RANDOM.integers(0, 5, N).astype(np.int32),
    "w": RANDOM.normal(1, 0.5, N),
    "event": np.arange(N, dtype=np.int64),
}


def write(path, columns=COLUMNS):
    if path.suffix == ".root":
        with uproot.recreate(path) as file:
            file.mktree("Events", {name: values.dtype for name, values in columns.items()})
            half = len(columns["pt"]) // 2
            for part in (slice(None, half), slice(half, None)):
                file["Events"].extend({name: values[part] for name, values in columns.items()})
    elif path.suffix == ".rnt":
        path = path.with_suffix(".root")
        with uproot.recreate(path) as file:
            file.mkrntuple("Events", columns)
    elif path.suffix == ".parquet":
        pa.parquet.write_table(pa.table(columns), path, row_group_size=30)
    elif path.suffix == ".feather":
        pa.feather.write_feather(pa.table(columns), path, chunksize=30)
    else:
        pa.csv.write_csv(pa.table(columns), path)
    return str(path)


@pytest.fixture(params=[".root", ".rnt", ".parquet", ".feather", ".csv"])
def path(request, tmp_path):
    return write(tmp_path / f"events{request.param}")


def assert_same(left: Events, right: Events) -> None:
    assert left.features == right.features
    for name in left.features:
        np.testing.assert_allclose(left.column(name), right.column(name), rtol=1e-7)  # CSV holds 9 digits of float32
    np.testing.assert_allclose(left.weight, right.weight, rtol=1e-15)


def test_all_formats_agree_with_memory(path):
    options: dict[str, Any] = {
        "weight": "2 * w",
        "selection": "pt > 20 and n < 4",
        "derived": {"x": "pt * cosh(eta)"},
        "ids": ["event"],
    }
    from_file = read_events(path, ["x", "pt", "n"], **options)
    from_memory = read_events(COLUMNS, ["x", "pt", "n"], **options)
    assert_same(from_file, from_memory)
    kept = (COLUMNS["pt"] > 20) & (COLUMNS["n"] < 4)
    np.testing.assert_array_equal(from_file.identifier("event"), COLUMNS["event"][kept])


def test_chunks_change_nothing(path, monkeypatch):
    whole = read_events(path, ["pt", "eta"], weight="w")
    for module in ("arrow", "root"):
        monkeypatch.setattr(f"qbdt.data.readers.{module}.CHUNK_BYTES", 8000 if path.endswith(".csv") else 200)
    pieces = read_events(path, ["pt", "eta"], weight="w")
    assert_same(whole, pieces)
    assert_same(read_events(path, ["pt"], selection="pt > 30"), read_events(COLUMNS, ["pt"], selection="pt > 30"))


@pytest.mark.parametrize("count", [1, 3, 7])
def test_shares_of_a_file_hold_every_row_once_in_order(path, count):
    name = "event"
    with open_table(path) as whole:
        rows = np.concatenate([chunk[name] for chunk in whole.chunks([name])])
    found = []
    for number in range(count):
        share = Share(Fraction(number, count), Fraction(number + 1, count))
        with open_table(path, None, share) as table:
            own = [np.asarray(chunk[name]) for chunk in table.chunks([name])]
            assert table.n_rows is None or table.n_rows == sum(map(len, own))
        found += own
    assert np.array_equal(np.concatenate(found), rows)


def test_float32_stays_float32_and_native(path):
    column = read_events(path, ["pt"]).column("pt")
    assert column.dtype.isnative
    assert column.dtype == (np.float64 if path.endswith(".csv") else np.float32)


def test_several_files_and_wildcards(tmp_path):
    for i in range(3):
        write(tmp_path / f"part{i}.parquet")
    assert read_events(str(tmp_path / "part*.parquet"), ["pt"]).n_rows == 3 * N
    assert read_events([str(tmp_path / "part0.parquet"), str(tmp_path / "part1.parquet")], ["pt"]).n_rows == 2 * N


@pytest.mark.parametrize("wrap", [pd.DataFrame, pa.table, ak.Array], ids=["pandas", "arrow", "awkward"])
def test_tables_in_memory(wrap):
    assert_same(read_events(wrap(COLUMNS), ["pt", "n"], weight="w"), read_events(COLUMNS, ["pt", "n"], weight="w"))


def test_array_branches(tmp_path):
    jagged = ak.Array([[3.0, 1.0], [], [2.0]])
    with uproot.recreate(tmp_path / "jets.root") as file:
        file.mktree("Events", {"jet_pt": "var * float64", "pt": "float64"})
        file["Events"].extend({"jet_pt": jagged, "pt": np.arange(3.0)})
    pa.parquet.write_table(pa.table({"jet_pt": jagged.to_list(), "pt": np.arange(3.0)}), tmp_path / "jets.parquet")
    for name in ("jets.root", "jets.parquet"):
        file_path = str(tmp_path / name)
        events = read_events(file_path, ["lead", "pt"], derived={"lead": "jet_pt[0]"}, missing=[np.nan])
        np.testing.assert_array_equal(events.column("lead"), [3.0, np.nan, 2.0])
        with pytest.raises(DataError, match=r"jet_pt has several values per event; pick an element"):
            read_events(file_path, ["jet_pt"])


def test_lists_in_features_weights_and_selections(tmp_path):
    jets, tags = [[40.0, 10.0, 60.0], [], [20.0], [35.0, 31.0]], [[0.1, 0.2, 0.9], [], [0.5], [0.3, 0.8]]
    replicas = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    with uproot.recreate(tmp_path / "jets.root") as file:
        file.mktree("Events", {"jet_pt": "var * float64", "jet_tag": "var * float32", "pdf": ("f4", (2,))})
        file["Events"].extend({"jet_pt": ak.Array(jets), "jet_tag": ak.Array(tags), "pdf": replicas})
    table = pa.table({"jet_pt": jets, "jet_tag": tags, "pdf": replicas.tolist()})
    pa.parquet.write_table(table, tmp_path / "jets.parquet")
    in_memory = {"jet_pt": ak.Array(jets), "jet_tag": ak.Array(tags), "pdf": replicas}
    for source in (str(tmp_path / "jets.root"), str(tmp_path / "jets.parquet"), in_memory):
        events = read_events(
            source,
            ["n_hard", "ht", "tagged", "jet_pt[-1]"],
            derived={
                "hard": "jet_pt[jet_pt > 30]",
                "n_hard": "len(hard)",
                "ht": "sum(hard)",
                "tagged": "descending(jet_pt, jet_tag)[0]",
            },
            weight="2 * pdf[1]",
            selection="not any(jet_pt > 55) and len(jet_pt) >= 0",
        )
        assert events.column("n_hard").tolist() == [0, 0, 2]
        assert events.column("ht").tolist() == [0, 0, 66]
        np.testing.assert_array_equal(events.column("tagged"), [np.nan, 20.0, 31.0])
        np.testing.assert_array_equal(events.column("jet_pt[-1]"), [np.nan, 20.0, 31.0])
        assert events.weight.tolist() == [6.0, 10.0, 14.0]


def test_an_element_beyond_the_end_is_missing_or_an_error_where_asked():
    table = {"jet_pt": ak.Array([[40.0, 10.0], [20.0]]), "x": np.ones(2)}
    assert np.isnan(read_events(table, ["jet_pt[1]"]).column("jet_pt[1]")).tolist() == [False, True]
    with pytest.raises(DataError, match=r"weight is NaN in row 1 \(1 rows\)"):
        read_events(table, ["x"], weight="jet_pt[1]")
    with pytest.raises(ExpressionError, match=r"require\(jet_pt\[1\]\)'.* is missing in 1 events, first in event 1"):
        read_events(table, ["second"], derived={"second": "require(jet_pt[1])"})


def test_branches_that_share_a_name_are_told_apart_by_title(paper_files):
    path = str(paper_files / "fhist_atata.root")
    with open_table(path, "NOMINAL") as table:
        assert {"event_number", "trainflag"} <= set(table.names)
        assert "tainflag" not in table.names
    train = read_events(path, ["pt_lep"], tree="NOMINAL_train", ids=["event_number"])
    assert (train.identifier("event_number") % 2 == 1).all()


def test_derived_columns_may_hide_branches_and_use_each_other():
    events = read_events(COLUMNS, ["pt", "twice"], derived={"pt": "pt * 1.02", "twice": "2 * pt"})
    np.testing.assert_allclose(events.column("pt"), COLUMNS["pt"] * np.float32(1.02), rtol=1e-6)
    np.testing.assert_allclose(events.column("twice"), 2 * events.column("pt"), rtol=1e-7)
    with pytest.raises(ExpressionError, match="in a circle: a → b → a"):
        read_events(COLUMNS, ["a"], derived={"a": "b + 1", "b": "a + 1"})


DIRTY = {"a": np.array([1.0, -999.0, 3.0]), "b": np.array([1, -999, 3]), "nan": np.array([1.0, np.nan, 2.0])}


class TestMissingValues:
    def test_placeholders_become_nan_also_through_expressions(self):
        events = read_events(DIRTY, ["a", "b", "c"], derived={"c": "a / 2 + b"}, missing=[-999])
        for name in events.features:
            np.testing.assert_array_equal(np.isnan(events.column(name)), [False, True, False])

    def test_undeclared_nan_is_told_with_row_and_remedy(self):
        message = r"table in memory: feature nan is NaN in row 1 \(1 rows\); declare it with `missing: \[.nan\]`"
        with pytest.raises(DataError, match=message):
            read_events(DIRTY, ["nan"], missing=[-999])
        assert read_events(DIRTY, ["nan"], missing=[np.nan]).n_rows == 3
        assert read_events(DIRTY, ["nan"], selection="nan > 0").n_rows == 2

    def test_nan_that_an_expression_makes_is_told_although_placeholders_are_declared(self):
        with pytest.raises(DataError, match="feature c is NaN in row 2"):
            read_events(DIRTY, ["c"], derived={"c": "sqrt(a - 3.5 + 3 * (a < 2))"}, missing=[-999])

    @pytest.mark.parametrize("value", [np.inf, -np.inf])
    def test_infinities(self, value):
        table = {"a": np.array([1.0, value])}
        with pytest.raises(DataError, match=rf"feature a is {value} in row 1.*missing: \[-?\.inf\]"):
            read_events(table, ["a"])
        np.testing.assert_array_equal(read_events(table, ["a"], missing=[value]).column("a"), [1.0, np.nan])

    def test_row_numbers_are_those_of_the_file(self, tmp_path, monkeypatch):
        monkeypatch.setattr("qbdt.data.readers.table.CHUNK_BYTES", 200)
        columns = {**COLUMNS, "pt": np.where(np.arange(N) == 77, np.nan, 50.0)}
        path = write(tmp_path / "dirty.parquet", columns)
        with pytest.raises(DataError, match="feature pt is NaN in row 77"):
            read_events(path, ["pt"], selection="n >= 0")

    def test_identifiers_that_an_earlier_step_made_are_read_and_not_made_anew(self):
        """As in scored events, where rows are other ones and the columns behind the bits are not kept."""
        table = {"x": np.zeros(2), "phi": np.array([0.5, 0.25]), "position(row)": np.array([7, 9])}
        made = read_events(table, ["x"], ids=["bits(phi)", "position(file)", "position(row)"], selection="phi < 0.3")
        assert made.identifier("position(row)").tolist() == [9]
        assert made.identifier("position(file)").tolist() == [0]
        again = {"x": np.zeros(1), "bits(phi)": made.identifier("bits(phi)")}
        kept = read_events(again, ["x"], ids=["bits(phi)", "position(row)"])
        assert kept.identifier("bits(phi)").tolist() == made.identifier("bits(phi)").tolist()
        assert kept.identifier("position(row)").tolist() == [0]

    def test_large_finite_values_are_fine(self):
        assert read_events({"a": np.full(10, 1e308)}, ["a"]).n_rows == 10

    def test_weights_must_be_finite(self):
        with pytest.raises(DataError, match=r"weight is NaN in row 1.*remove these events"):
            read_events(DIRTY, ["a"], weight="nan", missing=[np.nan])

    def test_placeholders_in_single_precision(self):
        table = {"a": np.array([1.0, -99.9], dtype=np.float32)}
        np.testing.assert_array_equal(np.isnan(read_events(table, ["a"], missing=[-99.9]).column("a")), [False, True])

    def test_a_placeholder_that_is_too_large_for_a_branch_is_not_in_it(self):
        table = {"a": np.array([1.0, np.inf], dtype=np.float32)}
        for missing in ([], [1e39]):
            with pytest.raises(DataError, match="inf"):
                read_events(table, ["a"], missing=missing)
        assert np.isnan(read_events({"a": np.array([1e39])}, ["a"], missing=[1e39]).column("a")[0])

    def test_selection_and_weights_see_placeholders_as_they_are(self):
        events = read_events(DIRTY, ["a"], selection="b != -999", weight="where(b < 0, -1, 2)", missing=[-999, -1])
        assert (events.n_rows, events.total) == (2, 4.0)

    def test_a_placeholder_that_an_expression_makes_is_missing(self):
        events = read_events(DIRTY, ["c"], derived={"c": "where(b > 2, a, -999)"}, missing=[-999])
        np.testing.assert_array_equal(events.column("c"), [np.nan, np.nan, 3.0])

    def test_placeholders_in_array_branches(self):
        jagged = {"j": ak.Array([[1.0, -999.0], [], [5.0, 6.0]])}
        events = read_events(ak.zip(jagged, depth_limit=1), ["x"], derived={"x": "j[1] * 2"}, missing=[-999])
        np.testing.assert_array_equal(events.column("x"), [np.nan, np.nan, 12.0])

    def test_nulls_in_parquet_and_feather(self, tmp_path):
        lists = [None, [1.0, None], [7.0], []]
        table = pa.table(
            {"j": lists, "d": pa.array([3, None, 7, 6]).dictionary_encode(), "b": [True, None, False, True]}
        )
        pa.parquet.write_table(table, tmp_path / "n.parquet")
        pa.feather.write_feather(table, tmp_path / "n.feather")
        for name in ("n.parquet", "n.feather"):
            derived = {"first": "j[0]", "second": "j[1]"}
            events = read_events(tmp_path / name, ["first", "second", "d", "b"], derived=derived, missing=[np.nan])
            expected = {"first": [np.nan, 1, 7, np.nan], "second": [np.nan] * 4, "d": [3, np.nan, 7, 6]}
            for column, values in expected.items():
                np.testing.assert_array_equal(events.column(column), values)
            np.testing.assert_array_equal(events.column("b"), [1, np.nan, 0, 1])

    def test_too_few_elements_need_no_declaration_but_nan_inside_does(self, tmp_path):
        pa.parquet.write_table(
            pa.table({"j": [[1.0], [], [2.0]], "k": [[1.0], [np.nan], [2.0]]}), tmp_path / "j.parquet"
        )
        events = read_events(tmp_path / "j.parquet", ["x"], derived={"x": "j[0]"})
        np.testing.assert_array_equal(events.column("x"), [1, np.nan, 2])
        with pytest.raises(DataError, match="feature y is NaN in row 1"):
            read_events(tmp_path / "j.parquet", ["y"], derived={"y": "k[0]"})


class TestFaults:
    def test_missing_file_tree_branch(self, tmp_path):
        path = write(tmp_path / "events.root")
        with pytest.raises(DataError, match=r"nothing\.root: no such file"):
            read_events(str(tmp_path / "nothing.root"), ["pt"])
        with pytest.raises(DataError, match=r"no file matches .*x\*\.root"):
            read_events(str(tmp_path / "x*.root"), ["pt"])
        with pytest.raises(DataError, match=r"events\.root: no tree nominal; there are: Events"):
            read_events(path, ["pt"], tree="nominal")
        with pytest.raises(DataError, match=r"events\.root:Events: no branch ptt; did you mean pt"):
            read_events(path, ["ptt"])
        with pytest.raises(DataError, match="no branch missing, which the column x needs"):
            read_events(path, ["x"], derived={"x": "missing + 1"})

    def test_unknown_ending(self, tmp_path):
        (tmp_path / "events.h5").write_text("")
        with pytest.raises(DataError, match=r"events\.h5: unknown ending '\.h5'"):
            read_events(str(tmp_path / "events.h5"), ["pt"])

    @pytest.mark.parametrize("ending", [".root", ".parquet", ".feather"])
    @pytest.mark.parametrize("kept", [0.0, 0.3, 0.6, 0.95])
    def test_truncated(self, tmp_path, ending, kept):
        path = write(tmp_path / f"events{ending}")
        with Path(path).open("r+b") as file:
            file.truncate(int(kept * file.seek(0, 2)))
        with pytest.raises(DataError, match=rf"events\{ending}.*truncated or damaged"):
            read_events(path, ["pt", "eta"], weight="w")

    def test_repeated_and_text_columns(self, tmp_path):
        (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
        with pytest.raises(DataError, match=r"twice\.csv: two columns are named a"):
            read_events(str(tmp_path / "twice.csv"), ["a"])
        (tmp_path / "words.csv").write_text("a,b\n1,x\n")
        with pytest.raises(DataError, match=r"words\.csv: column b has type string: numbers are needed"):
            read_events(str(tmp_path / "words.csv"), ["b"])

    def test_columns_with_several_values_or_words(self, tmp_path):
        path = tmp_path / "odd.parquet"
        pa.parquet.write_table(pa.table({"v": [[1.0, 2.0], [3.0, 4.0]], "t": ["a", "b"], "x": [1.0, 2.0]}), path)
        for options in ({"weight": "v"}, {"ids": ["v"]}, {"selection": "v > 1"}):
            with pytest.raises((DataError, ExpressionError), match=r"array branch|several values|pick an element"):
                read_events(path, ["x"], **options)
        with pytest.raises(DataError, match=r"odd\.parquet: column t has type string: numbers are needed"):
            read_events(path, ["x"], weight="t")

    def test_whole_numbers_of_csv_keep_their_bits(self, tmp_path, monkeypatch):
        ids = 10**17 + np.arange(200)
        (tmp_path / "ids.csv").write_text("id,n\n" + "".join(f" {one} ,{one % 3}\n" for one in ids) + "7,\n8,-1.5\n")
        monkeypatch.setattr("qbdt.data.readers.arrow.CHUNK_BYTES", 800)
        events = read_events(tmp_path / "ids.csv", ["n"], ids=["id"], selection="id % 2 == 0", missing=[np.nan])
        assert events.identifier("id").tolist() == [*ids[::2].tolist(), 8]
        assert events.column("n").tolist() == [*(ids[::2] % 3), -1.5]

    def test_tables_in_memory_may_hold_what_nobody_asks_for(self):
        times = pa.array([1, 2], pa.timestamp("s"))
        arrow = pa.table({"x": [1.0, 2.0], "t": times, "s": ["a", "b"]})
        for table in (arrow, arrow.to_pandas(), {"x": np.array([1.0, 2.0]), "t": times, "s": [b"a", b"b"]}):
            assert read_events(table, ["x"]).column("x").tolist() == [1.0, 2.0]
        with pytest.raises(DataError, match=r"column t has type timestamp\[s\]: numbers are needed"):
            read_events(arrow, ["t"])
        with pytest.raises(DataError, match="column a is a single value"):
            read_events({"a": 1.0}, ["a"])

    def test_lists_and_records_of_arrow_tables_in_memory(self, tmp_path):
        columns = {"pt": [[50.0, 30.0], [], [20.0]], "jet": [{"m": 5}, {"m": 6}, {"m": 7}], "x": [1, 2, 3]}
        table = pa.table(columns)
        pa.parquet.write_table(table, tmp_path / "t.parquet")
        for source in (table, tmp_path / "t.parquet"):
            events = read_events(
                source, ["n", "jet.m", "first"], derived={"n": "len(pt)", "first": "sum(pt)"}, selection="x < 3"
            )
            assert [events.column(name).tolist() for name in events.features] == [[2, 0], [5, 6], [80, 0]]

    def test_csv_types_may_change_after_the_first_block(self, tmp_path, monkeypatch):
        monkeypatch.setattr("qbdt.data.readers.table.CHUNK_BYTES", 8 * 100)
        (tmp_path / "late.csv").write_text("a\n" + "1\n" * 100 + "1.5\n")
        assert read_events(tmp_path / "late.csv", ["a"]).column("a")[-1] == 1.5

    def test_unreadable_paths(self, tmp_path):
        for name in ("x" * 300 + ".root", "~nobody_here/x.root", "a\0b.root"):
            with pytest.raises(DataError):
                read_events(name, ["pt"])
        (tmp_path / "b[1]").mkdir()
        write(tmp_path / "b[1]" / "part0.parquet")
        assert expand("part*.parquet", tmp_path / "b[1]") == [str(tmp_path / "b[1]" / "part0.parquet")]

    def test_columns_of_different_length(self):
        with pytest.raises(DataError, match="column b has 1 rows, others have 3"):
            read_events({"a": np.zeros(3), "b": np.zeros(1)}, ["a", "b"])
        with pytest.raises(DataError, match="feature a is asked for twice"):
            read_events({"a": np.zeros(3)}, ["a", "a"])

    def test_several_trees_need_a_name(self, tmp_path):
        with uproot.recreate(tmp_path / "two.root") as file:
            for name in ("a", "b"):
                file.mktree(name, {"x": "float64"})
                file[name].extend({"x": np.zeros(1)})
        with pytest.raises(DataError, match="name one of its trees with `tree`: a, b"):
            read_events(str(tmp_path / "two.root"), ["x"])


def test_only_needed_branches_are_read(path, monkeypatch):
    asked = []

    def watched(*arguments):
        opened = open_table(*arguments)

        @contextmanager
        def spied():
            with opened as table:
                chunks = table.chunks

                def listed(columns):
                    asked.append(columns)
                    return chunks(columns)

                monkeypatch.setattr(table, "chunks", listed)
                yield table

        return spied()

    monkeypatch.setattr("qbdt.data.readers.request.open_table", watched)
    read_events(path, ["pt", "x"], weight="w", derived={"x": "eta + 1", "y": "n + 1"})
    assert asked == [["eta", "pt", "w"]]


@pytest.mark.parametrize("jagged", [False, True])
def test_elements_of_arrays_in_weights_selections_and_features(jagged, tmp_path):
    rows = [[1.0, 3.0], [2.0, 4.0], [5.0, 6.0]]
    array = ak.Array(rows) if jagged else np.array(rows, dtype=np.float32)
    with uproot.recreate(tmp_path / "a.root") as file:
        file["Events"] = {"pdf": array, "other": 2 * array, "w": np.array([1.0, 10.0, 100.0])}

    def read(request):
        return read_request([open_table(str(tmp_path / "a.root"), "Events")], request)

    request = Request(
        ("pdf[0]",),
        Expression("w * pdf[0]"),
        variations={"pdf": Expression("nominal * pdf[1]")},
        selection=Expression("pdf[1] > 3.5"),
    )
    events, weights = read(request)
    assert events.column("pdf[0]").tolist() == [2.0, 5.0]
    assert events.weight.tolist() == [20.0, 500.0]
    assert weights["pdf"].tolist() == [80.0, 3000.0]
    varied = Request(("pdf[1]",), derived={"pdf": Expression("other")})
    assert read(varied)[0].column("pdf[1]").tolist() == [6.0, 8.0, 12.0]
    with pytest.raises((DataError, ExpressionError), match=r"pick an element|several values|pick one"):
        read(Request(("w",), Expression("w * pdf")))


def test_derived_columns_are_computed_once_each_however_they_use_each_other():
    table = {"a": np.arange(3.0)}
    chain = {"c0": "a"} | {f"c{i}": f"c{i - 1} + 1" for i in range(1, 3000)}
    assert read_events(table, ["c2999"], derived=chain).column("c2999").tolist() == [2999, 3000, 3001]
    grid = {"d0": "a", "d1": "a"} | {f"d{i}": f"d{i - 1} + d{i - 2} + a * 0" for i in range(2, 60)}
    assert read_events(table, ["d59"], derived=grid).column("d59")[1] == 1548008755920


@pytest.mark.parametrize(("size", "total"), [(0x3F000180, None), (-2, None), (0x3F000180, 2**57)])
def test_a_basket_that_is_said_to_be_larger_than_it_can_be(tmp_path, size, total):
    """uproot makes room for what the basket says: a file of 20 kB took 1 GB, also where its branch says as much."""
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mktree("t", {"a": np.float64, "b": np.float64}).extend({"a": np.arange(100.0), "b": np.arange(100.0)})
    with uproot.open(tmp_path / "a.root") as file:
        place, known = int(file["t"]["b"].member("fBasketSeek")[0]) + 6, int(file["t"]["b"].uncompressed_bytes)
    content = (tmp_path / "a.root").read_bytes()
    if total is not None:
        assert content.count(struct.pack(">q", known)) >= 1
        content = content.replace(struct.pack(">q", known), struct.pack(">q", total))
    (tmp_path / "a.root").write_bytes(content[:place] + struct.pack(">i", size) + content[place + 4 :])
    assert read_events(str(tmp_path / "a.root"), ["a"]).n_rows == 100
    with pytest.raises(DataError, match="a basket of b has a size it cannot have; is it damaged"):
        read_events(str(tmp_path / "a.root"), ["b"])


@pytest.mark.parametrize("entries", [9, 11, -1, 2**31, 2**62])
def test_a_tree_whose_entries_contradict_its_branches(tmp_path, entries):
    with uproot.recreate(tmp_path / "a.root") as file:
        file.mktree("t", {"a": np.float64}).extend({"a": np.arange(10.0)})
    content = (tmp_path / "a.root").read_bytes()
    place = content.index(struct.pack(">q", 10))  # the first is the tree's own
    (tmp_path / "a.root").write_bytes(content[:place] + struct.pack(">q", entries) + content[place + 8 :])
    with pytest.raises(DataError, match=f"the tree has {entries} entries, its branch a has 10"):
        read_events(str(tmp_path / "a.root"), ["a"])
