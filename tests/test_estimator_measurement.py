"""The scikit-learn face for measurements of several strengths, and of parameters that are none."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from qbdt import CrossTrainedClassifier, Dataset, Events, ModuloFolds, QBDTClassifier, Systematic
from qbdt.errors import ConfigError, DataError
from qbdt.training.methods import train
from qbdt.training.partitions.events import PartitionedEvents, divide_dataset
from qbdt.training.partner import Partner
from qbdt.training.settings import Settings

N = 1200
CENTRES = {0: (0.0, 0.0), 1: (2.0, 0.0), 2: (0.0, 2.0)}
OPTIONS: dict[str, Any] = {"n_trees": 12, "n_leaves": 5, "n_threads": 1}
STRENGTHS = {"mu_right": [1], "mu_up": [2]}


def table(shift=0.0, seed=3):
    """Return two signals over a background that moves."""
    rng = np.random.default_rng(seed)
    y = np.repeat(list(CENTRES), N)
    X = np.array([CENTRES[label] for label in y]) + rng.normal(size=(len(y), 2)) * (1 + 0.5 * (y == 0))[:, None]
    X[y == 0] += shift
    return X, y, np.where(y == 0, 900.0, 60.0) / N


@pytest.fixture(scope="module")
def trained():
    X, y, weight = table()
    up, down = table(0.2), table(-0.2)
    source = Systematic.shape("scale", (up[0], up[1], up[2]), (down[0], down[1], down[2]))
    return QBDTClassifier(strengths=STRENGTHS, **OPTIONS).fit(X, y, weight, [source])


def test_there_is_a_score_for_each_strength(trained):
    X, y, _ = table(seed=4)
    scores = trained.decision_function(X)
    assert scores.shape == (len(X), 2)
    for column, label in enumerate((1, 2)):
        means = [scores[y == other, column].mean() for other in CENTRES]
        assert int(np.argmax(means)) == label
    assert [one.parameter for one in trained.training_.expectations] == ["mu_right", "mu_up"]
    assert trained.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    assert trained.score(X, y) > 0.7
    assert len(list(trained.staged_decision_function(X[:3]))) > 2


def test_a_score_does_not_depend_on_where_an_event_stands(trained):
    rng, X = np.random.default_rng(8), table(seed=6)[0]
    X = X[rng.permutation(len(X))]
    model = replace(trained.training_.ensemble, ratio_coefficients=rng.normal(size=(2, 2)))

    def score(rows):
        events = Events({"x0": rows[:, 0], "x1": rows[:, 1]}, np.ones(len(rows)))
        return np.column_stack([model.score(events), *(model.of_parameter(i).terms(events)[0] for i in range(2))])

    whole = score(X)
    for first in (*range(len(X) - 40, len(X)), 0):  # the last few of many come last of few
        assert np.array_equal(score(X[first:]), whole[first:])


def test_a_score_does_not_depend_on_the_layout_of_its_coefficients(trained):
    """A trained model has them column by column, a model read from its file row by row: the last bit differed."""
    model, X = trained.training_.ensemble, table(seed=6)[0]
    events = Events({"x0": X[:, 0], "x1": X[:, 1]}, np.ones(len(X)))
    three = {"ratios": (*model.ratios, model.ratios[0]), "log_odds": (-2.1, -3.3, -1.7), "strengths": ("a", "b", "c")}
    for seed in range(20):
        drawn = np.random.default_rng(seed).normal(size=(2, 3))
        rows, columns = (
            replace(model, **three, ratio_coefficients=order(drawn))
            for order in (np.ascontiguousarray, np.asfortranarray)
        )
        assert np.array_equal(rows.score(events), columns.score(events))


def test_a_cross_trained_model_predicts_one_label_for_each_row():
    X, y, weight = table()
    rows = {"x": X[:, 0], "y": X[:, 1], "event": np.arange(len(y))}
    model = CrossTrainedClassifier(QBDTClassifier(strengths=STRENGTHS, **OPTIONS), ModuloFolds(2, "event"))
    model.fit(rows, y, weight)
    probabilities = model.predict_proba(rows)
    assert probabilities.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(model.predict(rows), model.classes_[np.argmax(probabilities, axis=1)])
    assert model.score(rows, y) > 0.7
    other = model.ensemble_.members[1].probabilities(model._make_events(rows)[rows["event"] % 2 == 1])
    assert np.array_equal(probabilities[1::2], other)


def test_each_tree_of_the_table_names_its_sum(trained):
    pytest.importorskip("pandas")
    assert set(trained.to_frame()["sum"]) == {"ratio of mu_right", "ratio of mu_up", "shift"}


def test_the_model_file_keeps_every_bit(trained, tmp_path):
    X = table(seed=5)[0]
    trained.save(tmp_path / "model.qbdt")
    again = QBDTClassifier.load(tmp_path / "model.qbdt")
    assert np.array_equal(again.decision_function(X), trained.decision_function(X))
    assert np.array_equal(again.predict(X), trained.predict(X))
    assert again.training_.expectations == trained.training_.expectations
    assert again.strengths == {"mu_right": ("signal 1",), "mu_up": ("signal 2",)}


def test_a_finished_training_resumes_to_the_same_model(trained):
    X, y, weight = table()
    up, down = table(0.2), table(-0.2)
    source = Systematic.shape("scale", up, down)
    again = QBDTClassifier(strengths=STRENGTHS, **OPTIONS).fit(X, y, weight, [source], resume=trained)
    assert np.array_equal(again.decision_function(X), trained.decision_function(X))


def test_more_information_lowers_the_expected_uncertainty():
    X, y, weight = table()
    X, y, weight = X[y < 2], y[y < 2], weight[y < 2]
    up = np.where(y == 0, weight * (1 + 0.2 * np.tanh(X[:, 0])), weight)
    source = Systematic.weight("tilt", up)
    alone, helped = (
        QBDTClassifier(partner=partner, **OPTIONS).fit(X, y, weight, [source]).training_.expectation
        for partner in (None, Partner(("tilt",), ((100.0,),)))
    )
    assert alone is not None
    assert helped is not None
    assert helped.sigma_stat == pytest.approx(alone.sigma_stat, rel=1e-5)  # a free parameter has a weak constraint
    assert alone.sigma_stat < helped.sigma_full < alone.sigma_full


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"y has 3 classes; for several signals name the strength of each label"),
        ({"strengths": [1, 2]}, r"strengths=\[1, 2\]: must say which signals each strength scales"),
        ({"strengths": {"mu": None}}, "must say which signals each strength scales"),
        ({"strengths": {"mu": [1]}}, "strengths: signal process signal 2 has no strength; each needs one"),
        ({"strengths": {"a": [1, 2], "b": [2]}}, "signal process signal 2 has more than one strength"),
        ({"strengths": {"a": [1], "b": [3]}}, "strengths: b: .*names of signal processes are needed"),
        (
            {"strengths": STRENGTHS, "of_interest": ["mass"]},
            "of_interest: no strength or source mass; there are: mu_right",
        ),
        ({"strengths": STRENGTHS, "free": ["ttbar"]}, "free: no background process ttbar; there are: background"),
        (
            {"strengths": STRENGTHS, "partner": Partner(("x",), ((1.0,),))},
            "partner: none of its parameters x is one of",
        ),
        ({"strengths": STRENGTHS, "method": "paper"}, "strengths: a setting of method='profile'"),
        ({"strengths": STRENGTHS, "at": {"tes": 0.5}}, "at: no source tes; there are: none"),
        ({"strengths": STRENGTHS, "at": {"tes": "up"}}, "at: tes: 'up': must be a number of standard deviations"),
        ({"strengths": STRENGTHS, "at": 0.5}, "at=0.5: must say for some sources which value they have"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises((ConfigError, DataError), match=message):
        QBDTClassifier(**{**OPTIONS, **options}).fit(*table())


def test_two_parameters_that_cannot_be_told_apart_are_named():
    X, y, weight = table()
    same = np.where(y == 0, 0, 1 + np.arange(len(y)) % 2)  # labels 1 and 2 at random
    with pytest.raises(DataError, match=r"mu_right and mu_up cannot be told apart: their correlation is -0\.99"):
        QBDTClassifier(strengths=STRENGTHS, **OPTIONS).fit(X, same, weight)


def test_a_source_of_interest_without_effect_is_named():
    """Where all events are in memory it is said before a tree is grown, otherwise when nothing is learned of it."""
    X, y, weight = table()
    X, y, weight = X[y < 2], y[y < 2], weight[y < 2]
    model = QBDTClassifier(of_interest=["mass"], **OPTIONS)
    early = clone(model).set_params(callbacks=[refuse_trees])
    with pytest.raises(DataError, match="source mass is to be measured, but has no effect: its events"):
        early.fit(X, y, weight, [Systematic.weight("mass", weight)])
    events = Dataset.from_arrays(X, y, weight, [Systematic.weight("mass", weight)])
    with pytest.raises(DataError, match="source mass has no constraint, and no effect on the events of a fold"):
        train(PartitionedEvents(divide_dataset(events, 2)), Settings(of_interest=["mass"], n_trees=2, n_leaves=4))


def test_two_sources_of_interest_with_the_same_events_are_named():
    X, y, weight = table()
    X, y, weight = X[y < 2], y[y < 2], weight[y < 2]
    sides = [(X + np.array([shift, 0.0]), y, weight) for shift in (0.1, -0.1)]
    sources = [Systematic.shape(name, *sides) for name in ("mass", "width")]
    with pytest.raises(
        DataError, match=r"mass and width cannot be told apart: up and down have the same .* is -1; measure"
    ):
        QBDTClassifier(of_interest=["mass", "width"], callbacks=[refuse_trees], **OPTIONS).fit(X, y, weight, sources)
    other = Systematic.shape("width", *sides[::-1])  # the other way round is known when the first fold is trained
    with pytest.raises(DataError, match=r"mass and width cannot be told apart: their correlation is \+1\.0"):
        QBDTClassifier(of_interest=["mass", "width"], **OPTIONS).fit(X, y, weight, [sources[0], other])


def refuse_trees(report):
    raise AssertionError("a tree was grown")


def test_threads_change_no_bit(trained):
    X, y, weight = table()
    source = Systematic.shape("scale", table(0.2), table(-0.2))
    again = QBDTClassifier(strengths=STRENGTHS, **{**OPTIONS, "n_threads": 2}).fit(X, y, weight, [source])
    assert np.array_equal(again.decision_function(X), trained.decision_function(X))


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        ({"strengths": {"one": ["s1"], "two": ["s2"]}, "of_interest": ["one", "tilt"], "free": ["b"]}, ["one", "tilt"]),
        ({"strengths": {"one": ["s1"], "two": ["s2"], "three": ["s3"]}}, ["one", "two", "three"]),
        ({"of_interest": ["tilt"], "free": ["b"], "partner": Partner(["norm_b"], [[900.0]], [0.0])}, ["tilt"]),
        ({"partner": Partner(["mu", "tilt"], [[4.0, 1.0], [1.0, 9.0]], [0.0, 1.0])}, ["mu"]),
        ({"at": {"tilt": 0.7}}, ["mu"]),
    ],
)
def test_threads_and_partitions_change_no_bit(options, parameters):
    X, y, weight = table()
    process = np.where(y == 2, np.resize(["s2", "s3"], len(y)), np.array(["b", "s1", "s2"])[y])
    process = process if len(parameters) == 3 else np.where(process == "s3", "s2", process)
    X[process == "s3"] -= [2.0, 4.0]
    bump = 0.2 * np.tanh(X[:, 0])
    source = Systematic.weight("tilt", *(np.where(y == 0, weight * (1 + one), weight) for one in (bump, -bump / 2)))
    dataset = Dataset.from_arrays(X, y > 0, weight, [source], process=process)
    settings = Settings(**options, n_trees=4, n_leaves=4)
    events = dataset.sample("b").events
    whole = train(dataset, settings, n_threads=1)
    scores = whole.ensemble.score(events)
    assert scores.shape == ((events.n_rows, len(parameters)) if len(parameters) > 1 else (events.n_rows,))
    assert [one.parameter for one in whole.expectations] == parameters
    parts = PartitionedEvents(divide_dataset(dataset, 3))
    for other in (train(dataset, settings, n_threads=3), train(parts, settings, n_threads=2)):
        assert np.array_equal(other.ensemble.score(events), scores)
        assert other.expectations == whole.expectations


def test_training_at_a_working_point_is_training_on_the_events_there(tmp_path):
    X, y, weight = table()
    X, y, weight = X[y < 2], y[y < 2], weight[y < 2]
    up, down = (np.where(y == 0, weight * (1 + sign * 0.2 * np.tanh(X[:, 0])), weight) for sign in (1, -1))
    moved = QBDTClassifier(at={"tilt": 1}, **OPTIONS).fit(X, y, weight, [Systematic.weight("tilt", up, down)])
    there = QBDTClassifier(**OPTIONS).fit(X, y, up, [Systematic.weight("tilt", 2 * up - weight, weight)])
    assert moved.decision_function(X) == pytest.approx(there.decision_function(X), abs=1e-9)
    moved.save(tmp_path / "model.qbdt")
    assert QBDTClassifier.load(tmp_path / "model.qbdt").at == {"tilt": 1.0}
