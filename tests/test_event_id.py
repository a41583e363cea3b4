"""Identifiers of events: with them, tables with their rows in any order give the same model, bit for bit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies

from qbdt import CrossTrainedClassifier, QBDTClassifier, QBDTRegressor, Systematic
from qbdt.data import Dataset, ModuloFolds
from qbdt.errors import DataError

N = 600


def make_tables(seed=1):
    """Nominal events, and shifted copies of those that pass a cut: other rows, with identifiers of their own."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], N // 2)
    nominal = pd.DataFrame({"m": rng.normal(y, 1.0), "eta": rng.normal(-y, 1.0), "process": np.where(y, "h", "z")})
    nominal["process"] = np.where(y == 1, np.where(rng.random(N) < 0.5, "h", "h2"), "z")
    nominal = nominal.assign(y=y, w=rng.uniform(0.5, 1.5, N), event=rng.permutation(10 * N)[:N])
    shifted = nominal.assign(m=nominal.m + 0.2)
    return nominal, shifted[shifted.m > -2.0], shifted.assign(m=nominal.m - 0.2)


def shuffle(tables, seed):
    rng = np.random.default_rng(seed)
    return [table.iloc[rng.permutation(len(table))] for table in tables]


def split(table, *apart):
    return table[["m", "eta", *apart]], table.y, table.w


def train(tables, given_as="array", **options):
    nominal, up, down = tables
    apart = ["event"] * (given_as == "column")
    if given_as == "array":
        sources = [Systematic.shape("scale", split(up), split(down), event_id=(up.event, down.event))]
    else:
        sources = [Systematic.shape("scale", split(up, *apart), split(down, *apart))]
    sources.append(Systematic.weight("tag", nominal.w * (1 + 0.1 * (nominal.eta > 0))))
    X, y, w = split(nominal, *apart)
    model = QBDTClassifier(n_trees=2, n_leaves=3, n_threads=1, **options)
    return model.fit(X, y, w, sources, event_id=nominal.event if given_as == "array" else "event")


def content(model):
    return model.to_frame().to_csv()


@pytest.mark.parametrize("method", ["profile", "paper"])
@settings(max_examples=2)
@given(seed=strategies.integers(0, 2**32), given_as=strategies.sampled_from(["array", "column"]))
def test_any_order_of_rows_gives_the_same_model(method, seed, given_as):
    tables = make_tables()
    options = {"method": method, "row_fraction": 0.7}
    assert content(train(shuffle(tables, seed), given_as, **options)) == content(train(tables, **options))


@pytest.mark.parametrize("given_as", ["array", "column"])
def test_any_order_of_rows_gives_the_same_regression(given_as):
    tables = make_tables()

    def fit(tables):
        nominal, up, down = tables
        apart = ["event"] * (given_as == "column")
        inputs = [(one[["eta", *apart]], one.m, one.w) for one in tables]
        ids = {"event_id": (up.event, down.event)} if given_as == "array" else {}
        sources = [Systematic.shape("scale", inputs[1], inputs[2], **ids)]
        sources.append(Systematic.weight("tag", nominal.w * (1 + 0.1 * (nominal.eta > 0))))
        model = QBDTRegressor(n_trees=3, n_leaves=3, n_threads=1, row_fraction=0.7)
        return model.fit(*inputs[0], sources, event_id="event" if apart else nominal.event)

    model = fit(tables)
    assert content(model) == content(fit(shuffle(tables, 4)))
    assert model.feature_names_in_.tolist() == ["eta"]


def test_a_regression_refuses_identifiers_that_tell_nothing_apart():
    nominal, *_ = make_tables()
    with pytest.raises(DataError, match="event_id has 1 values in 600 rows: it must tell events apart"):
        QBDTRegressor().fit(nominal[["eta"]], nominal.m, event_id=np.zeros(N))


def test_processes_come_in_any_order():
    nominal, *_ = make_tables()

    def describe(table):
        X, y, w = split(table, "process")
        norm = Systematic.norm("xs", {"h2": 0.1})
        model = QBDTClassifier(n_trees=2, n_threads=1)
        return model.fit(X, y, w, [norm], process="process", event_id=table.event).training_

    first, second = describe(nominal), describe(nominal[::-1])
    assert first.data == second.data
    assert content(first.ensemble) == content(second.ensemble)


def test_cross_training_takes_identifiers_beside_those_of_its_rule():
    nominal, *_ = make_tables()
    nominal = nominal.assign(fold=nominal.event % 2)
    rule = ModuloFolds(2, "fold")

    def scores(table):
        X, y, w = split(table, "fold")
        model = CrossTrainedClassifier(QBDTClassifier(n_trees=2, row_fraction=0.5, n_threads=1), rule)
        return model.fit(X, y, w, event_id=table.event).decision_function(nominal[["m", "eta", "fold"]])

    assert np.array_equal(scores(nominal), scores(nominal[::-1]))


def test_content_tells_events_apart():
    nominal, up, _ = make_tables()
    X, y, w = split(nominal)
    source = Systematic.shape("scale", split(up), event_id=up[["eta"]])
    data = Dataset.from_arrays(X, y, w, [source], event_id=nominal[["eta"]])
    varied = data.varied("scale", "up")["signal"]
    eta = dict(zip(varied.hash_identifiers(), varied.column("eta"), strict=True))
    events = data.sample("signal").events
    known = [eta.get(row) for row in events.hash_identifiers()]
    assert all(value in (None, own) for value, own in zip(known, events.column("eta"), strict=True))
    assert sum(value is not None for value in known) == varied.n_rows


def test_rows_with_one_identifier_are_ordered_by_content():
    nominal, *_ = make_tables()
    nominal["event"] //= 2

    def scores(table):
        X, y, w = split(table)
        return content(QBDTClassifier(n_trees=2, row_fraction=0.5, n_threads=1).fit(X, y, w, event_id=table.event))

    assert scores(nominal) == scores(nominal[::-1])


@pytest.mark.parametrize(
    ("event_id", "of_source", "message"),
    [
        (np.arange(3), None, r"event_id has shape \(3,\): each of the 600 rows needs an identifier"),
        (np.zeros(N), None, "event_id has 1 values in 300 rows: it must tell events apart"),
        (np.where(np.arange(N) == 4, np.nan, 1.0), None, r"event_id\(0\) has the value nan in row 4"),
        (np.array(["a"] * N), None, "whole numbers are needed"),
        ("number", None, "no column number; there are: m, eta"),
        (np.arange(N), None, "systematic scale: event_id is needed, since X has some"),
        (None, np.arange(N), "systematic scale: event_id is given, and X has none"),
        (np.arange(N), np.arange(5), r"systematic scale: event_id has shape \(5,\)"),
        (np.arange(N), (np.arange(N),), r"systematic scale: event_id is a tuple of 1: \(of up, of down\)"),
    ],
)
def test_refusals(event_id, of_source, message):
    nominal, _, down = make_tables()
    X, y, w = split(nominal)

    def train():
        source = Systematic.shape("scale", split(down), event_id=of_source)
        QBDTClassifier().fit(X, y, w, [source], event_id=event_id)

    with pytest.raises(DataError, match=message):
        train()


def test_events_have_their_own_identifiers():
    data = Dataset.from_arrays({"x": [1.0, 2.0]}, [0, 1], event_id=[3, 4])
    with pytest.raises(DataError, match="X is a Dataset"):
        QBDTClassifier().fit(data, event_id=[3, 4])
    with pytest.raises(DataError, match="Events have their identifiers as `ids`"):
        Systematic.shape("s", {"signal": data.sample("signal").events}, event_id=[4])  # type: ignore[call-overload]
