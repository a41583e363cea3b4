"""From arrays to σ_μ, by one import."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import qbdt
from qbdt.errors import DataError

RNG = np.random.default_rng(2)
Y = np.repeat([1, 0], 1500)
X = RNG.normal(size=(3000, 2)) + 0.8 * Y[:, None]
WEIGHT = np.where(Y == 1, 0.01, 0.1)
SETTINGS = {"bins": 5, "scan": False, "transform": "none", "binning": "equal_signal"}


def sources(table=X):
    return [
        qbdt.Systematic.norm("xs", 0.1, where=Y == 0),
        qbdt.Systematic.shape("scale", up=(1.05 * table, Y, WEIGHT), down=(0.95 * table, Y, WEIGHT)),
    ]


@pytest.mark.parametrize("kind", [np.asarray, lambda x: pd.DataFrame(x, columns=["a", "b"])])
def test_any_classifier_is_fitted(kind):
    table = kind(X)
    model = LogisticRegression().fit(table, Y)
    settings = qbdt.FitSettings(**SETTINGS)
    fitted = [
        qbdt.fit_scores(one, table, Y, WEIGHT, sources(table), settings=settings).expected
        for one in (model, model.decision_function)
    ]
    assert fitted[0].sigma_mu == fitted[1].sigma_mu
    assert {p.name for p in fitted[0].sources} == {"xs", "scale"}
    assert fitted[0].z_stat > fitted[0].z > 0


def test_a_classifier_of_a_pandas_table_is_given_its_columns():
    rng = np.random.default_rng(3)
    y = np.repeat([1, 0], 500)
    table = pd.DataFrame({"event": np.arange(1000), "b": rng.normal(y), "a": rng.normal(-y)})
    w, model = np.where(y == 1, 0.1, 1.0), LogisticRegression().fit(table[["a", "b"]], y)
    expected = qbdt.fit_scores(model, table[["a", "b"]], y, w).expected
    assert qbdt.fit_scores(model, table, y, w).expected.sigma_mu == expected.sigma_mu


def test_scores_may_be_a_column_or_come_with_a_dataset():
    settings = qbdt.FitSettings(**SETTINGS)
    table = {"score": X[:, 0], "process": np.where(Y == 1, "higgs", "ttbar")}
    shape = qbdt.Systematic.shape("scale", up=({**table, "score": 1.05 * X[:, 0]}, Y, WEIGHT))
    norm = qbdt.Systematic.norm("xs", 0.1, processes=["ttbar"])
    by_column = qbdt.fit_scores("score", table, Y, WEIGHT, [shape, norm], process="process", settings=settings)
    dataset = qbdt.Dataset.from_arrays(table, Y, WEIGHT, [shape, norm], process="process")
    for model in ("score", lambda rows: rows[:, 0]):
        assert qbdt.fit_scores(model, dataset, settings=settings).expected.sigma_mu == by_column.expected.sigma_mu
    with pytest.raises(DataError, match="no column other; there are: score"):
        qbdt.fit_scores("other", table, Y, process="process")
    bad = qbdt.Systematic.shape("scale", up=({"m": X[:, 0]}, Y, WEIGHT))
    with pytest.raises(DataError, match="systematic scale: no column score"):
        qbdt.fit_scores("score", table, Y, WEIGHT, [bad])
    with pytest.raises(DataError, match="X is a Dataset"):
        qbdt.fit_scores("score", dataset, Y)
    with pytest.raises(DataError, match="y is missing"):
        qbdt.fit_scores("score", table)


def test_what_gives_no_scores_is_refused():
    with pytest.raises(DataError, match="model=3: a fitted classifier"):
        qbdt.fit_scores(3, X, Y)
    with pytest.raises(DataError, match="scores of shape"):
        qbdt.fit_scores(lambda table: table[:5, 0], X, Y)


def test_everything_of_a_notebook_is_there_by_one_import():
    for name in qbdt.__all__:
        assert getattr(qbdt, name) is not None
        assert name in dir(qbdt)
    with pytest.raises(AttributeError, match="no attribute 'none'"):
        _ = qbdt.none
