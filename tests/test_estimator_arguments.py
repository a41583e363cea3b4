"""Arguments of estimators that cannot be: one error that names them, and the estimator is as it was before."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from qbdt import CrossTrainedClassifier, QBDTClassifier, QBDTRegressor, Systematic
from qbdt.data import Dataset, ModuloFolds
from qbdt.errors import ConfigError, DataError, ModelFileError, OutputError, QBDTError
from qbdt.estimator.labels import name_strengths


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(6)
    y = np.repeat([0, 1], 100)
    return {"a": rng.normal(y, 1.0), "b": rng.normal(-y, 1.0), "event": np.arange(200)}, y


def classifier(**settings):
    return QBDTClassifier(**{"method": "paper", "n_trees": 2, "n_leaves": 3, "n_threads": 1, **settings})


def crossed(**settings):
    return CrossTrainedClassifier(classifier(**settings), ModuloFolds(2, "event"))


def regressor():
    return QBDTRegressor(n_trees=2, n_threads=1)


@pytest.mark.parametrize("make", [classifier, crossed, regressor])
def test_a_refused_fit_leaves_the_estimator_as_it_was(table, make, tmp_path):
    X, y = table
    model = make()
    others = pd.DataFrame({**X, "c": pd.Categorical(np.where(y, "s", "b"))})
    refused = (others, np.where(y, "s", "b") if make is not regressor else y.astype(float), [Systematic.norm("n", 2.0)])
    with pytest.raises(QBDTError):
        model.fit(refused[0], refused[1], systematics=[*refused[2], *refused[2]])
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    before, predicted = dict(vars(model)), model.predict(X)
    with pytest.raises(QBDTError):
        model.fit(refused[0], refused[1], systematics=[*refused[2], *refused[2]])
    assert vars(model) == before
    assert np.array_equal(model.predict(X), predicted)
    model.save(tmp_path / "model.qbdt")
    assert np.array_equal(type(model).load(tmp_path / "model.qbdt").predict(X), predicted)


def test_a_second_fit_forgets_the_first(table):
    X, y = table
    model = classifier().fit({**X, "c": X["a"]}, y)
    model.fit(np.column_stack([X["a"], X["b"]]), y)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")


def test_an_estimator_goes_on_from_itself(table):
    X, y = table
    model = classifier().fit(X, y)
    assert model.fit(X, y, resume=model).trees_ == classifier().fit(X, y).trees_


def test_none_means_no_sources_and_no_callbacks(table):
    X, y = table
    wanted = classifier().fit(X, y).trees_
    assert classifier(callbacks=None).fit(X, y, systematics=None).trees_ == wanted
    assert classifier().fit(Dataset.from_arrays(X, y, systematics=()), systematics=[]).trees_ == wanted
    crossed(callbacks=None).fit(X, y, systematics=None)
    regressor().fit(X, y, systematics=None)


@pytest.mark.parametrize(
    ("settings", "arguments", "error", "message"),
    [
        ({}, {"systematics": [3]}, DataError, "systematics hold 3: make them with"),
        ({}, {"systematics": "a"}, DataError, "systematics='a': a list of sources is needed"),
        ({}, {"systematics": 3}, DataError, "systematics=3: a list of sources is needed"),
        ({}, {"validation": 3}, DataError, r"validation is a int: \(X, y\) or \(X, y, weight\) is needed"),
        ({}, {"validation": ([[1.0]],)}, DataError, r"validation is a tuple: \(X, y\) or \(X, y, weight\) is needed"),
        ({}, {"checkpoint": 3}, OutputError, "3: the path of a model file is needed"),
        ({}, {"checkpoint": "no/such/m.qbdt"}, OutputError, "there is no folder"),
        ({}, {"checkpoint": "m.qbdt", "checkpoint_every": "a"}, ConfigError, "checkpoint_every='a': must be a whole"),
        ({}, {"resume": 3}, ModelFileError, "3: the path of a model file is needed"),
        ({"callbacks": 1}, {}, ConfigError, "callbacks=1: a list of functions is needed"),
        ({"callbacks": [3]}, {}, ConfigError, r"callbacks=\[3\]: a list of functions is needed"),
        ({"early_stopping": "a"}, {}, ConfigError, "early stopping: patience='a': must be a whole number, at least 1"),
        ({"early_stopping": 1.5}, {}, ConfigError, "early stopping: patience=1.5: must be a whole number"),
    ],
)
def test_arguments_that_cannot_be(table, settings, arguments, error, message):
    X, y = table
    with pytest.raises(error, match=message):
        classifier(**settings).fit(X, y, **arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"folds": "e"}, "folds='e': a rule such as ModuloFolds"),
        ({"folds": 2}, "folds=2: a rule such as ModuloFolds"),
        ({"folds": ModuloFolds(2, "event"), "estimator": LogisticRegression()}, "a QBDTClassifier is needed, or None"),
    ],
)
def test_parameters_of_cross_training_that_cannot_be(table, parameters, message):
    with pytest.raises(ConfigError, match=message):
        CrossTrainedClassifier(**parameters).fit(*table)


def test_paths_that_are_none(table):
    with pytest.raises(OutputError, match="3: the path of a model file is needed"):
        classifier().fit(*table).save(3)
    kinds: list[Any] = [QBDTClassifier, QBDTRegressor, CrossTrainedClassifier]
    for kind in kinds:
        with pytest.raises(ModelFileError, match="3: the path of a model file is needed"):
            kind.load(3)


def test_a_number_is_no_column():
    with pytest.raises(DataError, match="column a is a single value: one for each row is needed"):
        classifier().fit({"a": 1.0}, [0, 1])


def test_numbers_of_numpy_name_signals():
    given = name_strengths({"m": np.int64(1), "n": [np.int64(2)]}, np.array([0, 1, 2]))
    assert given == name_strengths({"m": 1, "n": [2]}, np.array([0, 1, 2])) == {"m": ["signal 1"], "n": ["signal 2"]}


def test_cross_trained_models_know_their_features(table, tmp_path):
    X, y = table
    model = crossed().fit(X, y)
    model.save(tmp_path / "model.qbdt")
    for one in (model, CrossTrainedClassifier.load(tmp_path / "model.qbdt")):
        assert one.n_features_in_ == 2
        assert one.feature_names_in_.tolist() == ["a", "b"]
    assert model.__sklearn_tags__().input_tags.allow_nan
