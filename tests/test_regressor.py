"""`QBDTRegressor`: predictions, sources, losses, files, and refusals."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from qbdt import QBDTClassifier, QBDTRegressor, Systematic
from qbdt.errors import ConfigError, DataError, ModelFileError, QBDTError
from qbdt.training.regression import Loss


@parametrize_with_checks([QBDTRegressor(n_trees=10)])
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # scikit-learn's own
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def make_events(seed, n=2000):
    """A target that two features tell: the first is moved by an energy scale, the second is not."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    X = np.column_stack([y + 0.4 * rng.normal(size=n), y + 0.6 * rng.normal(size=n), rng.normal(size=n)])
    return X, y, np.full(n, 1000 / n)


def moved(X, size):
    return X + np.array([size, 0.0, 0.0])


def make_sources(X, y, weight):
    scale = Systematic.shape("scale", (moved(X, 0.1), y, weight), (moved(X, -0.1), y, weight))
    tilt = 0.1 * np.sign(X[:, 2])
    return [scale, Systematic.weight("tilt", weight * (1 + tilt), weight * (1 - tilt)), Systematic.norm("lumi", 0.02)]


@pytest.fixture(scope="module")
def fitted():
    X, y, weight = make_events(1)
    return QBDTRegressor(n_trees=40).fit(X, y, weight, make_sources(X, y, weight))


@pytest.fixture(scope="module")
def unprofiled():
    return QBDTRegressor(n_trees=40).fit(*make_events(1))


def shift_of_mean(model, X):
    return (model.predict(moved(X, 0.1)).mean() - model.predict(moved(X, -0.1)).mean()) / 2


def test_the_mean_of_new_events_moves_less_and_is_measured_better(fitted, unprofiled):
    X, y, weight = make_events(2)

    def mean_error(model):
        return np.hypot(np.sqrt(np.mean((y - model.predict(X)) ** 2) / weight.sum()), shift_of_mean(model, X))

    assert abs(shift_of_mean(fitted, X)) < 0.35 * abs(shift_of_mean(unprofiled, X))
    assert mean_error(fitted) < 0.7 * mean_error(unprofiled)


def test_what_it_expects_holds_for_new_events(fitted):
    X, y, _ = make_events(2)
    expected = fitted.training_.prediction
    assert [source.name for source in expected.sources] == ["scale", "tilt", "lumi"]
    assert expected.sources[0].profiled == pytest.approx(shift_of_mean(fitted, X), abs=0.01)
    assert expected.profiled == pytest.approx(np.sqrt(np.mean((y - fitted.predict(X)) ** 2)), rel=0.05)
    assert expected.sources[2].unprofiled == pytest.approx(0.0, abs=1e-12)
    assert "shift of the mean, scale" in str(fitted.training_)


def test_a_single_event_keeps_its_resolution(unprofiled):
    X, y, weight = make_events(1)
    single = QBDTRegressor(n_trees=40, n_events=1).fit(X, y, weight, make_sources(X, y, weight))
    X, y, _ = make_events(2)
    rms, best = (np.sqrt(np.mean((y - model.predict(X)) ** 2)) for model in (single, unprofiled))
    assert rms < 1.02 * best


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_quantile_has_its_share_below(share):
    X, y, _ = make_events(1)
    model = QBDTRegressor("quantile", quantile=share, n_trees=30).fit(X, y)
    X, y, _ = make_events(2)
    assert np.mean(y < model.predict(X)) == pytest.approx(share, abs=0.05)  # trees follow residuals of few events


def test_huber_does_not_follow_outliers():
    X, y, _ = make_events(1)
    y = y + np.where(np.arange(len(y)) % 20 == 0, 50.0, 0.0)
    huber, squared = (QBDTRegressor(loss, delta=1.0, n_trees=25).fit(X, y) for loss in ("huber", "squared"))
    X, y, _ = make_events(2)
    assert abs(np.mean(y - huber.predict(X))) < 0.1 < abs(np.mean(y - squared.predict(X)))


@pytest.mark.parametrize("loss", [Loss(), Loss("huber", delta=0.7), Loss("quantile", quantile=0.3)], ids=str)
def test_losses_agree_with_their_derivatives(loss):
    r = np.linspace(-2.03, 2.02, 41)
    step = 1e-6
    np.testing.assert_allclose(loss.gradient(r), (loss.value(r + step) - loss.value(r - step)) / (2 * step), atol=1e-6)
    weight = 1.0 + np.arange(41) % 3
    constant = loss.best_constant(r, weight)
    best, *others = (weight @ loss.value(r - constant - move) for move in (0.0, 0.05, -0.05))
    assert best <= min(others) + 1e-12


def test_threads_change_no_bit(fitted):
    X, y, weight = make_events(1)
    other = clone(fitted).set_params(n_threads=1).fit(X, y, weight, make_sources(X, y, weight))
    assert np.array_equal(other.predict(X), fitted.predict(X))


def test_missing_values_and_categories_are_learnt():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    year = rng.choice(["a", "b", "c"], 600)
    x = np.where(rng.random(600) < 0.3, np.nan, rng.normal(size=600))
    y = np.select([year == "a", year == "b"], [0.0, 5.0], 2.0) + np.where(np.isnan(x), 3.0, 0.0)
    table = pandas.DataFrame({"year": pandas.Categorical(year), "x": x})
    model = QBDTRegressor(n_trees=30).fit(table, y)
    assert model.score(table, y) > 0.95


def test_it_comes_back_from_its_file(fitted, tmp_path):
    X, _, _ = make_events(2)
    fitted.save(tmp_path / "model.qbdt")
    again = QBDTRegressor.load(tmp_path / "model.qbdt")
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert again.training_.prediction == fitted.training_.prediction
    assert again.training_.loss == fitted.training_.loss
    with pytest.raises(ModelFileError, match="a regression, where a classifier is needed"):
        QBDTClassifier.load(tmp_path / "model.qbdt")
    QBDTClassifier(n_trees=2).fit(X[:50], np.arange(50) % 2).save(tmp_path / "classifier.qbdt")
    with pytest.raises(ModelFileError, match="a classifier, where a regression is needed"):
        QBDTRegressor.load(tmp_path / "classifier.qbdt")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "logistic"}, "loss='logistic': must be one of squared, huber, quantile"),
        ({"loss": "huber"}, "delta=None: loss='huber' needs"),
        ({"loss": "huber", "delta": -1.0}, "delta=-1.0"),
        ({"quantile": 1.0}, "quantile=1.0: must be above 0 and below 1"),
        ({"n_events": 0.0}, "n_events=0.0: must be a positive number"),
        ({"n_events": 1e300}, r"n_events=1e\+300: must be a positive number up to 1e\+11"),
        ({"n_events": 1e-300}, "n_events=1e-300: must be a positive number"),
        ({"n_events": True}, "n_events=True: must be a positive number"),
        ({"loss": "huber", "delta": 1e-300}, "delta=1e-300: loss='huber' needs"),
        ({"delta": "wide"}, "delta='wide'"),
        ({"n_leaves": 1}, "n_leaves=1: must be at least 2"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    X, y, _ = make_events(1, 100)
    with pytest.raises(ConfigError, match=message):
        QBDTRegressor(**parameters).fit(X, y)


@pytest.mark.parametrize("n_events", [1e-11, 1e11])
@pytest.mark.parametrize("delta", [1e-100, 1e100])
def test_extreme_parameters_are_no_errors(n_events, delta, tmp_path):
    X, y, weight = make_events(1, 100)
    model = QBDTRegressor(n_events=n_events, loss="huber", delta=delta, n_trees=3)
    model.fit(X, y, weight, make_sources(X, y, weight)).save(tmp_path / "model.qbdt")
    assert np.array_equal(QBDTRegressor.load(tmp_path / "model.qbdt").predict(X), model.predict(X))


def test_numbers_of_numpy_are_saved(tmp_path):
    X, y, _ = make_events(1, 100)
    parameters: Any = [np.float32(0.5), np.float32(0.25), np.int64(50), np.int64(3)]
    model = QBDTRegressor("quantile", *parameters)
    model.fit(X, y).save(tmp_path / "model.qbdt")
    assert QBDTRegressor.load(tmp_path / "model.qbdt").get_params()["n_events"] == 50


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e300])
def test_targets_whose_squares_are_no_numbers_are_refused(size):
    with pytest.raises(DataError, match=r"y has values up to .*: squares of them need 1e-100 to 1e\+100"):
        QBDTRegressor(n_trees=2).fit(np.zeros((50, 1)), np.full(50, size))


def test_times_are_no_targets():
    with pytest.raises(DataError, match=r"y has type datetime64\[s\]: a target is a number"):
        QBDTRegressor(n_trees=2).fit(np.zeros((50, 1)), np.arange(50).astype("M8[s]"))


def test_bad_events_are_refused():
    X, y, weight = make_events(1, 100)
    source = Systematic.norm("lumi", 0.02)
    for arguments, message in [
        ((X, None), "y is None"),
        ((X, y[:-1]), "y has shape"),
        ((X, np.where(np.arange(100) == 3, np.nan, y)), "y\\[3\\]=nan"),
        ((X, y, -weight), "yield"),
        ((X, y, weight, source), "a list of sources is needed"),
        ((X, y, weight, [Systematic.weight("id", weight[:5])]), "systematic id: 5 weights for the 100 rows"),
        ((X, y, weight, [Systematic.shape("tes", (X, y[:5], weight))]), "systematic tes: y has shape"),
    ]:
        with pytest.raises(QBDTError, match=message):
            QBDTRegressor(n_trees=2).fit(*arguments)
    with pytest.raises(DataError, match="loss='quantile' takes no negative weights"):
        QBDTRegressor("quantile").fit(X, y, np.where(np.arange(100) == 7, -0.1, weight))
