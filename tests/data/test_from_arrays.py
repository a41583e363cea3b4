import awkward as ak
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from qbdt.data import Dataset
from qbdt.data.columns import as_columns, drop_columns, has_names
from qbdt.data.folds import ModuloFolds
from qbdt.data.systematic import Systematic
from qbdt.errors import DataError

X = np.arange(12.0).reshape(6, 2)
Y = np.array([1, 0, 0, 1, 0, 1])
W = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])


def test_labels_split_rows_without_copying_features():
    data = Dataset.from_arrays(X, Y, W)
    signal, background = data.samples
    np.testing.assert_array_equal(signal.events.column("x0"), X[Y == 1, 0])
    np.testing.assert_array_equal(background.events.weight, W[Y == 0])
    assert np.shares_memory(signal.events._columns["x1"], X)


def test_minus_one_is_background():
    minus = Dataset.from_arrays(X, np.where(Y == 1, 1, -1), W)
    assert minus.total("background") == Dataset.from_arrays(X, Y, W).total("background")


def test_flat_sources_are_bound_to_rows():
    mask = np.array([False, True, False, False, True, False])
    systematics = [
        Systematic.weight("sf", 2 * W, 0.5 * W),
        Systematic.norm("xs", 0.1, where=mask),
        Systematic.norm("lumi", 0.02),
        Systematic.shape("tes", (X[:3] + 1, Y[:3], W[:3]), None),
    ]
    data = Dataset.from_arrays(X, Y, W, systematics)
    np.testing.assert_array_equal(data.varied("sf", "down")["signal"].weight, 0.5 * W[Y == 1])
    np.testing.assert_allclose(data.varied("xs", "up")["background"].weight, [2.2, 3.0, 5.5], rtol=1e-15)
    assert data.systematic("xs").processes == ("background",)
    assert data.varied("lumi", "up")["signal"].total == pytest.approx(1.02 * 11)
    assert data.varied("tes", "up")["background"].n_rows == 2


@pytest.mark.parametrize(
    "wrap", [pd.DataFrame, pa.table, lambda t: t, ak.Array], ids=["pandas", "arrow", "dict", "awkward"]
)
def test_named_tables_of_any_kind(wrap):
    table = wrap({"a": X[:, 0].copy(), "b": X[:, 1].copy()})
    assert Dataset.from_arrays(table, Y).features == ("a", "b")
    np.testing.assert_array_equal(as_columns(table, ["b"])["b"], X[:, 1])
    with pytest.raises(DataError, match="no column c; there are: a, b"):
        as_columns(table, ["c"])


def test_arrow_nulls_are_missing_values():
    column = as_columns(pa.table({"a": [1.0, None]}))["a"]
    np.testing.assert_array_equal(column, [1.0, np.nan])


def test_columns_of_a_variation_are_matched_by_name():
    frame = pd.DataFrame(X, columns=["a", "b"])
    data = Dataset.from_arrays(frame, Y, W, [Systematic.shape("tes", (frame[["b", "a"]], Y, W))])
    np.testing.assert_array_equal(data.varied("tes", "up")["signal"].column("a"), X[Y == 1, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, Y[:3]), "X has 6 rows, y has 3"),
        ((X, Y, W[:2]), r"weights have shape \(2,\), X has 6 rows"),
        ((X, np.ones(6)), "one class only: no background"),
        ((X, np.zeros(6)), "one class only: no signal"),
        ((X, Y + 1), r"y\[0\]=2"),
        ((X, np.array(list("abcdef"))), "y has type"),
        ((X, Y[:, None]), r"y has shape \(6, 1\)"),
        ((X[:, 0], Y), "a table of rows × features"),
        ((X, Y, np.full(6, np.nan)), "weight of row 0 is nan"),
        ((X, Y, np.zeros(6)), "all 3 weights are zero"),
        ((X, Y, W, [Systematic.weight("sf", W[:2])]), "systematic sf: 2 weights for the 6 rows of X"),
        ((X, Y, W, [Systematic.shape("tes", (X[:, :1], Y, W))]), "systematic tes: X has 1 columns"),
        ((X, Y, W, [Systematic.shape("tes", ({"a": W}, Y, W))]), "systematic tes: other columns than X"),
        ((X, Y, W, [Systematic.shape("tes", (X, Y[:2], W))]), "systematic tes: X has 6 rows, y has 2"),
        ((X, Y, W, [Systematic.norm("xs", 0.1, where=W)]), "systematic xs: where has type float64"),
        ((X, Y, W, [Systematic.norm("xs", 0.1, where=Y > 7)]), "systematic xs: where selects no row"),
        ((X, Y, W, [Systematic.norm("xs", 0.1, processes=["a"])]), "systematic xs, up variation: no sample a"),
        ((X, Y, W, [Systematic.weight("sf", {"signal": W[:3]})]), "make them with"),
        ((X, Y, W, (), None, None, ModuloFolds(2, "event")), "X has no column event, which the fold rule needs"),
        ((X, Y, W, (), ["a"]), "X has 2 columns, 1 feature names are given: a"),
        ((pd.DataFrame(X, columns=["a", "a"]), Y), "two columns are named a"),
        ((pd.DataFrame(X, columns=[1, "1"]), Y), "two columns are named 1"),
        ((X, Y, W, (), ["a", "a"]), "two columns are named a"),
        ((pd.Series(W), Y), "X is a Series"),
        ((X, Y, np.ma.masked_array(W, mask=W > 5)), "weight is masked"),
        ((X, np.ma.masked_array(Y, mask=W > 5)), "y is masked"),
        ((X, Y, W, [Systematic.weight("sf", np.ma.masked_array(W, mask=W > 5))]), "sf: weight is masked"),
        ((X, Y, W, [Systematic.shape("tes", (X, Y, None))]), "systematic tes: weights are needed, since X has some"),
        ((X, Y, W, Systematic.norm("xs", 0.1)), "a list of sources is needed"),
        ((X, Y, np.array(list("abcdef"))), "weights have type"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays(*arguments)


def test_masked_features_are_missing():
    masked = np.ma.masked_array(X, mask=X > 10)
    column = Dataset.from_arrays(masked, Y).sample("signal").events.column("x1")
    np.testing.assert_array_equal(column, np.where(X > 10, np.nan, X)[Y == 1, 1])


def test_declarations_that_contradict_themselves():
    with pytest.raises(DataError, match="both be arrays, or both name processes"):
        Systematic.weight("sf", {"a": W}, W)  # type: ignore[call-overload]
    with pytest.raises(DataError, match="where marks rows"):
        Systematic.norm("xs", 0.1, Y > 0, processes=["a"])  # type: ignore[call-overload]
    with pytest.raises(DataError, match=r"size='0\.1': a number is needed"):
        Systematic.norm("xs", "0.1")  # type: ignore[call-overload]
    with pytest.raises(DataError, match="where Events are needed"):
        Systematic.shape("tes", {"a": X})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    "make",
    [
        lambda values: pd.DataFrame({"n": pd.array(values, "Int64")}),
        lambda values: pd.DataFrame({"n": pd.Series(pa.array(values), dtype=pd.ArrowDtype(pa.int64()))}),
        lambda values: pa.table({"n": values}),
        lambda values: ak.Array([{"n": value} for value in values]),
        lambda values: {"n": np.ma.array([one or 0 for one in values], mask=[one is None for one in values])},
    ],
)
def test_whole_numbers_with_missing_ones_are_exact_or_refused(make):
    np.testing.assert_array_equal(as_columns(make([2**53 - 1, None]))["n"], [2.0**53 - 1, np.nan])
    assert as_columns(make([2**53 + 1, 1]))["n"].tolist() == [2**53 + 1, 1]
    with pytest.raises(DataError, match="column n has missing values, and whole numbers that float64 does not hold"):
        as_columns(make([2**53 + 1, None]))


def test_a_shape_variation_is_a_triple():
    with pytest.raises(DataError, match=r"a tuple \(X, y, weight\)"):
        Systematic.shape("tes", (X, Y))  # type: ignore[arg-type]


def test_processes_from_a_column_of_the_table():
    table = {"m": np.arange(6.0), "process": np.array(["h", "z", "t", "h", "z", "z"])}
    y, w = np.array([1, 0, 0, 1, 0, 0]), np.arange(1.0, 7.0)
    shape = Systematic.shape("tes", up=({**table, "m": table["m"] + 1}, y, w))
    norm = Systematic.norm("xs", 0.1, where=table["process"] == "t")
    data = Dataset.from_arrays(table, y, w, [shape, norm], process="process")
    assert [(s.name, str(s.role), s.events.total) for s in data.samples] == [
        ("h", "signal", 5.0),
        ("z", "background", 13.0),
        ("t", "background", 3.0),
    ]
    assert data.features == ("m",)
    assert data.varied("tes", "up")["z"].column("m").tolist() == [2.0, 5.0, 6.0]
    assert data.systematics[1].processes == ("t",)
    given = Dataset.from_arrays({"m": table["m"]}, y, w, [norm], process=table["process"])
    assert [s.name for s in given.samples] == ["h", "z", "t"]


def test_numbers_and_texts_name_the_same_process():
    labels = np.array([1, "1", 2, "2", 2, 10], dtype=object)
    numbered = {"event": np.arange(6), "m": np.arange(6.0)}
    for event_id in (None, "event"):
        data = Dataset.from_arrays(numbered, [1, 1, 0, 0, 0, 0], W, process=labels, event_id=event_id)
        assert {s.name: s.events.total for s in data.samples} == {"1": 3.0, "2": 12.0, "10": 6.0}


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, b"a"])
@pytest.mark.parametrize("options", [{}, {"event_id": "event"}])
def test_rows_without_a_process_are_refused(missing, options):
    table = {"event": np.arange(3), "process": np.array(["a", "b", missing], dtype=object)}
    given = {"event": np.arange(3), "m": np.arange(3.0)}
    for X, process in ((table | given, "process"), (given, table["process"])):
        with pytest.raises(DataError, match=r"process has the value .*: every row needs a name, a text or a number"):
            Dataset.from_arrays(X, [1, 0, 0], process=process, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"process": "none"}, "no column none, which names the process"),
        ({"process": ["a", "b"]}, r"process has shape \(2,\)"),
        ({"process": ["a", "a", "b", "b"]}, "process a: some rows have y = 1 and some 0"),
    ],
)
def test_wrong_processes_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        Dataset.from_arrays({"m": np.arange(4.0)}, [1, 0, 0, 0], **options)


@pytest.mark.parametrize("wrap", [pd.DataFrame, pa.table, dict, ak.Array], ids=["pandas", "arrow", "dict", "awkward"])
def test_columns_of_processes_and_folds_are_no_features(wrap):
    """Names of processes are text in tables of every kind, and identifiers keep all their digits."""
    event = np.arange(6) + 2**60
    table = wrap({"m": np.arange(6.0), "process": ["h", "z", "t", "h", "z", "h"], "event": event})
    source = Systematic.norm("xs", 0.1, processes=["t"])
    shape = Systematic.shape("tes", (table, Y, W))
    data = Dataset.from_arrays(table, Y, W, [source, shape], process="process", folds=ModuloFolds(2, "event"))
    assert data.features == ("m",)
    assert data.sample("z").events.identifier("event").tolist() == [2**60 + 1, 2**60 + 4]
    assert data.fold(0).varied("tes", "up")["z"].column("m").tolist() == [4.0]
    assert data.varied("xs", "up")["t"].total == pytest.approx(3.3)
    left = drop_columns(table, ["process"])
    assert has_names(left)
    assert list(as_columns(left)) == ["m", "event"]
    with pytest.raises(DataError, match="X has no column run; there are: m, process, event"):
        drop_columns(table, ["run"], "X has ")
    with pytest.raises(DataError, match="column process has type"):
        Dataset.from_arrays(table, Y)
