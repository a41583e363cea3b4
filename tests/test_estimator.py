"""The scikit-learn face."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from qbdt import QBDTClassifier, QBDTRegressor, Systematic
from qbdt.errors import ConfigError, DataError, QBDTError

# Before 1.7 this check called another class the first one after shuffling: its two samples had other labels.
FAULTY = {"check_sample_weight_equivalence_on_dense_data": "labels depend on the order of rows in scikit-learn 1.6"}


@parametrize_with_checks(
    [QBDTClassifier(n_trees=10), QBDTClassifier(method="paper", n_trees=10)],
    expected_failed_checks=lambda _: FAULTY if sklearn.__version__.startswith("1.6.") else {},
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # scikit-learn's own
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], 400)
    X = rng.normal(size=(800, 3))
    X[y == 1] += 0.8
    order = rng.permutation(800)
    return X[order], y[order], rng.uniform(0.5, 1.5, 800)


@pytest.fixture(scope="module")
def fitted(problem):
    X, y, w = problem
    return QBDTClassifier(method="paper", n_trees=5).fit(X, y, w)


def sources(X, y, w):
    return [
        Systematic.shape("tes", up=(X * 1.1, y, w), down=(X * 0.9, y, w)),
        Systematic.weight("tau_id", up=w * (1 + 0.1 * (X[:, 0] > 0)), down=None),
        Systematic.norm("ttbar", 0.10, where=X[:, 1] > 0),
    ]


def test_the_published_interface(problem, tmp_path):
    X, y, w = problem
    model = QBDTClassifier(
        method="paper",
        n_trees=4,
        n_leaves=7,
        max_bins=256,
        binning="quantile",
        growth="leaves",
        mc_stat=False,
        learning_rate=1.0,
        n_threads=None,
        random_state=None,
    )
    model.fit(X, y, sample_weight=w, systematics=sources(X, y, w))
    score = model.decision_function(X)
    assert score[y == 1].mean() > score[y == 0].mean()
    assert model.tree_weights_.shape == (4,)
    assert np.all(model.trees_[0].nodes["sigma2"] > 0)
    model.save(tmp_path / "model.qbdt")
    assert np.array_equal(QBDTClassifier.load(tmp_path / "model.qbdt").decision_function(X), score)


def test_a_bare_shape_tuple_may_have_the_background_only(problem):
    X, y, w = problem
    bkg = y == 0
    some = [Systematic.shape("s", up=(X[bkg] + 0.1, y[bkg], w[bkg]))]
    full = [Systematic.shape("s", up=(X + 0.1, y, w))]
    assert (
        QBDTClassifier(method="paper", n_trees=2).fit(X, y, w, some).trees_
        == QBDTClassifier(method="paper", n_trees=2).fit(X, y, w, full).trees_
    )


def test_minus_one_is_background(problem, fitted):
    X, y, w = problem
    other = QBDTClassifier(method="paper", n_trees=5).fit(X, np.where(y == 1, 1, -1), w)
    assert other.trees_ == fitted.trees_
    assert set(other.predict(X)) == {-1, 1}


def test_probabilities_follow_the_score(problem, fitted):
    X, _, _ = problem
    score, probability = fitted.decision_function(X), fitted.predict_proba(X)
    assert np.allclose(probability[:, 1], 1 / (1 + np.exp(-score)))
    assert np.allclose(probability.sum(axis=1), 1)
    assert np.array_equal(fitted.predict(X), (score > 0).astype(int))


def test_stages_end_with_the_score_where_a_sum_has_no_trees(problem):
    X, y, w = problem
    model = QBDTClassifier(n_trees=20).fit(X, y, w)
    assert any(not one.trees for one in model.ensemble_.components.values())
    *_, last = model.staged_decision_function(X)
    assert np.array_equal(last, model.decision_function(X))


def test_numbers_of_numpy_as_parameters_are_saved(problem, tmp_path):
    X, y, w = problem
    model = QBDTClassifier("paper").set_params(n_trees=np.int64(3), n_leaves=np.int64(4))
    model.set_params(learning_rate=np.float32(0.5), random_state=np.int64(3), mc_stat=np.True_)
    model.fit(X, y, w, checkpoint=tmp_path / "checkpoint.qbdt", checkpoint_every=1).save(tmp_path / "model.qbdt")
    assert QBDTClassifier.load(tmp_path / "checkpoint.qbdt").trees_ == model.trees_
    assert QBDTClassifier.load(tmp_path / "model.qbdt").get_params()["n_leaves"] == 4


def test_stages_leaves_and_importances(problem, fitted):
    X, _, _ = problem
    stages = list(fitted.staged_decision_function(X))
    assert len(stages) == 5
    assert np.array_equal(stages[-1], fitted.decision_function(X))
    leaves = fitted.apply(X)
    sums = sum(tree.outputs[leaves[:, i]] for i, tree in enumerate(fitted.trees_))
    assert np.allclose(sums, stages[-1])
    assert fitted.feature_importances_.sum() == pytest.approx(1)
    assert np.all(fitted.feature_importances_ > 0)


def test_nodes_as_a_table(fitted):
    frame = fitted.to_frame()
    assert len(frame) == sum(len(tree.nodes) for tree in fitted.trees_)
    leaves = frame[frame.leaf]
    assert np.allclose(leaves.groupby("tree").q.sum(), fitted.tree_weights_)
    assert np.allclose(leaves.groupby("tree").s.sum(), 1)
    assert leaves.iloc[0].cuts.startswith("x")


def test_tables_by_name(problem, fitted):
    X, y, w = problem
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = QBDTClassifier(method="paper", n_trees=5).fit(frame, y, w)
    assert np.array_equal(model.decision_function(frame), fitted.decision_function(X))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(model.decision_function(frame[["c", "a", "b"]]), fitted.decision_function(X))
    assert np.array_equal(model.decision_function(pa.Table.from_pandas(frame)), fitted.decision_function(X))
    with pytest.raises(DataError, match="no column c; there are: a, b, d"):
        model.predict(frame.rename(columns={"c": "d"}))
    arrow = QBDTClassifier(method="paper", n_trees=5).fit(pa.Table.from_pandas(frame), y, w)
    assert arrow.trees_ == model.trees_


def test_single_precision_and_fortran_order(problem):
    X, y, w = problem
    single = X.astype(np.float32)
    models = [
        QBDTClassifier(method="paper", n_trees=2).fit(table, y, w)
        for table in (single, np.asfortranarray(single), single[:, :])
    ]
    assert models[0].trees_ == models[1].trees_
    assert models[0].trees_ == QBDTClassifier(method="paper", n_trees=2).fit(single.astype(np.float64), y, w).trees_


def test_composition(problem):
    X, y, w = problem
    model = QBDTClassifier(method="paper", n_trees=3)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y, qbdtclassifier__sample_weight=w)
    assert pipeline.score(X, y) > 0.7
    out_of_fold = cross_val_predict(model, X, y, cv=3, method="decision_function", params={"sample_weight": w})
    assert out_of_fold[y == 1].mean() > out_of_fold[y == 0].mean()
    search = GridSearchCV(model, {"n_leaves": [3, 5], "learning_rate": [0.5, 1.0]}, cv=2).fit(X, y)
    assert set(search.best_params_) == {"n_leaves", "learning_rate"}
    assert clone(model).get_params() == model.get_params()


def test_pickle(problem, fitted):
    X, _, _ = problem
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(X), fitted.decision_function(X))


def test_checkpoint_and_resume(problem, tmp_path):
    X, y, w = problem
    path = tmp_path / "model.qbdt"

    def interrupt(report):
        if report.index == 4:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"n_trees": 8, "row_fraction": 0.8}
    whole = QBDTClassifier(method="paper", **options).fit(X, y, w)
    stopped = QBDTClassifier(method="paper", **options, callbacks=[interrupt]).fit(
        X, y, w, checkpoint=path, checkpoint_every=2
    )
    assert len(stopped.trees_) == 5
    assert len(QBDTClassifier.load(path).trees_) == 4
    for earlier in (path, stopped):
        assert QBDTClassifier(method="paper", **options).fit(X, y, w, resume=earlier).trees_ == whole.trees_


def test_early_stopping(problem):
    X, y, w = problem
    model = QBDTClassifier(method="paper", n_trees=80, early_stopping=2)
    model.fit(X[:200], y[:200], w[:200], validation=(X[200:], y[200:], w[200:]))
    history = model.training_.history
    assert len(history) < 80
    assert len(model.trees_) == np.argmax(history) + 1


def test_progress_bar(problem, capsys):
    X, y, w = problem
    QBDTClassifier(method="paper", n_trees=2, verbose=True).fit(X, y, w)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "training: 2 of 2 (100%)" in printed.err


def bad(**changes):
    def fit(X, y, w):
        arguments = {"X": X, "y": y, "sample_weight": w, "systematics": (), "options": {}}
        arguments.update({key: change(X, y, w) for key, change in changes.items()})
        options = arguments.pop("options")
        return QBDTClassifier(**{"method": "paper", "n_trees": 2, **options}).fit(**arguments)

    return fit


def with_nan(w):
    w = w.copy()
    w[3] = np.nan
    return w


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (bad(y=lambda X, y, w: y[:-1]), "800 rows.*799"),
        (bad(sample_weight=lambda X, y, w: with_nan(w)), "weight of row 3 is nan"),
        (bad(sample_weight=lambda X, y, w: w * 0), "all weights of class"),
        (bad(sample_weight=lambda X, y, w: -w), "positive expected yield"),
        (bad(sample_weight=lambda X, y, w: w[1:]), "800 rows"),
        (bad(y=lambda X, y, w: np.ones(800)), "one class"),
        (bad(y=lambda X, y, w: np.arange(800) % 3), "3 classes"),
        (bad(systematics=lambda X, y, w: [Systematic.shape("t", (X[:, :2], y, w))]), "systematic t.*2 columns"),
        (bad(systematics=lambda X, y, w: [Systematic.weight("t", w[1:])]), "systematic t: 799 weights for the 800"),
        (bad(systematics=lambda X, y, w: [Systematic.shape("t", (X, y + 5, w))]), "t: y has the label"),
        (bad(options=lambda X, y, w: {"n_leaves": 1}), "n_leaves=1: must be at least 2"),
        (bad(options=lambda X, y, w: {"n_trees": 0}), "n_trees=0: must be at least 1"),
        (
            bad(options=lambda X, y, w: {"n_trees": 2**70}),
            "n_trees=1180591620717411303424: must be at least 1 and at most",
        ),
        (
            bad(options=lambda X, y, w: {"max_depth": 2**70}),
            "max_depth=1180591620717411303424: must be at least 1 and at most",
        ),
        (bad(options=lambda X, y, w: {"n_trees": 2.5}), r"n_trees=2\.5: must be a whole number"),
        (bad(options=lambda X, y, w: {"max_bins": 257}), "max_bins=257"),
        (bad(options=lambda X, y, w: {"binning": [(300, 0, 1)] * 3}), "n_bins=300"),
        (bad(options=lambda X, y, w: {"binning": 5}), "binning=5"),
        (bad(options=lambda X, y, w: {"growth": "wild"}), "growth='wild'"),
        (bad(options=lambda X, y, w: {"method": "magic"}), "method='magic'"),
        (bad(options=lambda X, y, w: {"learning_rate": 0.0}), r"learning_rate=0\.0"),
        (bad(options=lambda X, y, w: {"row_fraction": 1.5}), r"row_fraction=1\.5"),
        (bad(options=lambda X, y, w: {"max_depth": 0}), "max_depth=0"),
        (bad(options=lambda X, y, w: {"min_leaf_entries": -1}), "min_leaf_entries=-1"),
        (bad(options=lambda X, y, w: {"mc_stat": "yes"}), "mc_stat='yes'"),
        (bad(options=lambda X, y, w: {"n_threads": 0}), "n_threads=0"),
        (bad(options=lambda X, y, w: {"early_stopping": 5}), "needs a validation sample"),
        (bad(X=lambda X, y, w: pd.DataFrame({"a": ["x"] * 800})), "column a has type"),
    ],
)
def test_bad_input_is_named(problem, fit, message):
    with pytest.raises(QBDTError, match=message):
        fit(*problem)


def test_the_profiled_method_is_the_default_and_trains_on_ten_rows(problem):
    X, y, w = problem
    assert QBDTClassifier().method == "profile"
    few = np.concatenate([np.flatnonzero(y == 1)[:2], np.flatnonzero(y != 1)[:8]])
    model = QBDTClassifier(n_trees=2).fit(X[few], y[few], w[few])
    assert "few events" in model.training_.headline
    assert np.isfinite(model.decision_function(X)).all()


def test_the_profiled_method_refuses_what_is_the_papers(problem):
    with pytest.raises(ConfigError, match="growth='published'"):
        QBDTClassifier(method="profile", growth="published").fit(*problem)
    with pytest.raises(ConfigError, match="validation"):
        QBDTClassifier(method="profile", n_trees=2).fit(*problem, validation=problem)


def test_no_events_and_models_of_the_other_method_are_named(problem):
    import pandas as pd

    X, y, w = problem
    with pytest.raises(DataError, match="y is empty"):
        QBDTClassifier(method="paper").fit(pd.DataFrame({"x": []}), np.array([]))
    paper = QBDTClassifier(method="paper", n_trees=2).fit(X, y, w)
    with pytest.raises(DataError, match="other settings"):
        QBDTClassifier(method="profile", n_trees=2).fit(X, y, w, resume=paper)


def test_nothing_is_written_on_bad_input(problem, tmp_path):
    X, y, w = problem
    with pytest.raises(DataError):
        QBDTClassifier(method="paper", n_trees=2).fit(X, y, with_nan(w), checkpoint=tmp_path / "m", checkpoint_every=1)
    assert list(tmp_path.iterdir()) == []


def test_not_fitted(problem, tmp_path):
    for use in (lambda m: m.predict(problem[0]), lambda m: m.tree_weights_, lambda m: m.save(tmp_path / "m")):
        with pytest.raises(NotFittedError):
            use(QBDTClassifier(method="paper"))


@pytest.fixture(scope="module")
def with_categories():
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], 300)
    return pd.DataFrame({"pt": rng.normal(y, 1.0), "mode": (rng.integers(0, 6, 600) + 3 * y) % 6}), y


def test_features_are_given_by_name_position_or_mask(with_categories):
    X, y = with_categories
    named = QBDTClassifier(
        method="paper", n_trees=3, categorical_features=["mode"], monotonic_constraints={"pt": 1}
    ).fit(X, y)
    assert any(tree.is_set.any() for tree in named.trees_)
    for categorical, constraints in (([1], {0: 1}), ([False, True], [1, 0]), (np.array([1]), np.array([1, 0]))):
        model = QBDTClassifier(
            method="paper", n_trees=3, categorical_features=categorical, monotonic_constraints=constraints
        )
        assert clone(model).fit(X, y).trees_ == named.trees_
        array = model.fit(X.to_numpy(float), y)
        assert np.array_equal(array.decision_function(X.to_numpy(float)), named.decision_function(X))
    assert array.training_.settings.categorical_features == ("x1",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categorical_features": [2]}, "categorical_features: position 2: there are 2 features"),
        ({"categorical_features": [True]}, "a mask of 1 entries for 2 features"),
        ({"categorical_features": "mode"}, "a list of names or positions"),
        ({"categorical_features": [0.5]}, "must be a name or a position"),
        ({"categorical_features": ["Mode"]}, "no feature Mode; did you mean mode"),
        ({"monotonic_constraints": [1, 0, 0]}, r"shape \(3,\): one number for each of 2 features"),
        ({"monotonic_constraints": [1, 2]}, "mode: 2: must be 1, -1, or 0"),
        ({"monotonic_constraints": {"p": 1}}, "no feature p"),
        ({"monotonic_constraints": {"mode": 1}, "categorical_features": ["mode"]}, "mode is categorical"),
    ],
)
def test_rules_of_features_that_cannot_be(with_categories, options, message):
    with pytest.raises(QBDTError, match=message):
        QBDTClassifier(method="paper", n_trees=1, **options).fit(*with_categories)


def test_pandas_categoricals_are_categories(problem, tmp_path):
    X, y, w = problem
    mode = np.where(y == 1, "b", np.where(X[:, 0] > 0, "c", "a"))
    frame = pd.DataFrame({"pt": X[:, 0], "mode": pd.Categorical(mode, categories=["a", "b", "c"])})
    varied = frame.assign(mode=pd.Categorical(mode, categories=["c", "b", "a"]))  # the same values in another order
    source = Systematic.shape("tes", up=(varied.assign(pt=1.1 * frame["pt"]), y, w))
    model = QBDTClassifier(method="paper", n_trees=3).fit(frame, y, w, [source])
    assert model.training_.settings.categorical_features == ("mode",)
    assert model.decision_function(varied).tolist() == model.decision_function(frame).tolist()
    model.save(tmp_path / "m.qbdt")
    again = QBDTClassifier.load(tmp_path / "m.qbdt")
    assert again.decision_function(varied).tolist() == model.decision_function(frame).tolist()


@pytest.mark.parametrize("values", [(2016, 2018), (-1, 1), ("ee", "mm"), (0.5, 2.5), (False, True)])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # scikit-learn's, of the array
def test_categories_mean_the_same_in_every_kind_of_table(problem, values, tmp_path):
    X, y, w = problem
    column = np.array(values)[(X[:, 1] > 0).astype(int)]
    frame = pd.DataFrame({"pt": X[:, 0], "kind": pd.Categorical(column)})
    plain = {"pt": X[:, 0], "kind": column}
    arrow = pa.table({"pt": X[:, 0], "kind": pa.array(column).dictionary_encode()})
    tables = [frame, frame.assign(kind=column), plain, arrow]
    if not isinstance(values[0], str):
        tables.append(np.column_stack([X[:, 0], column]))
    scored = []
    for number, table in enumerate(tables):
        source = Systematic.shape("tes", up=(table, y, w))
        model = QBDTClassifier(method="paper", n_trees=3).fit(frame, y, w, [source])
        assert any(tree.is_set.any() for tree in model.trees_)
        model.save(tmp_path / f"{number}.qbdt")
        again = QBDTClassifier.load(tmp_path / f"{number}.qbdt")
        scored += [one.decision_function(other).tolist() for one in (model, again) for other in tables]
    assert all(scores == scored[0] for scores in scored)


def test_years_keep_their_numbers_in_files(problem, tmp_path):
    X, y, w = problem
    year = np.where(X[:, 1] > 0, 2018, 2016)
    frame = pd.DataFrame({"pt": X[:, 0], "year": pd.Categorical(year)})
    model = QBDTClassifier(method="paper", n_trees=3).fit(frame, y, w)
    declared = QBDTClassifier(method="paper", n_trees=3, categorical_features=["year"]).fit(
        {"pt": X[:, 0], "year": year}, y, w
    )
    paths = [tmp_path / "frame.qbdt", tmp_path / "declared.qbdt"]
    for one, path in zip((model, declared), paths, strict=True):
        one.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    regressor = QBDTRegressor(n_trees=5).fit(frame, X[:, 1])
    assert regressor.predict(frame).tolist() == regressor.predict({"pt": X[:, 0], "year": year}).tolist()


def test_models_that_know_years_by_place_read_every_table(problem):
    """Files of earlier versions numbered whole numbers too."""
    X, y, w = problem
    place = (X[:, 1] > 0).astype(int)
    model = QBDTClassifier(method="paper", n_trees=3, categorical_features=["year"])
    scores = model.fit({"pt": X[:, 0], "year": place}, y, w).decision_function({"pt": X[:, 0], "year": place})
    model.categories_ = {"year": [2016, 2018]}
    year = np.array([2016, 2018])[place]
    for table in ({"pt": X[:, 0], "year": year}, pd.DataFrame({"pt": X[:, 0], "year": pd.Categorical(year)})):
        assert model.decision_function(table).tolist() == scores.tolist()


def test_categories_of_another_kind_are_refused(problem):
    X, y, w = problem
    frame = pd.DataFrame({"pt": X[:, 0], "mode": pd.Categorical(np.where(X[:, 1] > 0, "mm", "ee"))})
    model = QBDTClassifier(method="paper", n_trees=3).fit(frame, y, w)
    with pytest.raises(DataError, match=r"column mode has the value 1, .* in the training were 'ee', 'mm'"):
        model.decision_function({"pt": [0.0], "mode": [1]})
    with pytest.raises(DataError, match="column mode has several values per row"):
        model.decision_function({"pt": [0.0, 0.0], "mode": np.array([["ee"], ["ee", "mm"]], object)})
    assert (
        model.decision_function({"pt": [0.0, 0.0], "mode": ["tt", None]}).tolist()
        == [model.decision_function({"pt": [0.0], "mode": [np.nan]})[0]] * 2
    )


@pytest.mark.parametrize(
    "column",
    [
        pd.cut([0.5, 1.5], [0, 1, 2]),
        pd.Categorical(pd.to_datetime(["2017-01-01", "2018-01-01"])),
        pd.Categorical([b"a", b"b"]),
        pd.Categorical([1.0, np.inf]),
    ],
)
def test_categories_that_no_file_can_hold_are_refused(column):
    frame = pd.DataFrame({"x": [1.0, 2.0], "c": column})
    with pytest.raises(DataError, match=r"column c is categorical and has the category .*: categories are t"):
        QBDTClassifier().fit(frame, [0, 1])


def test_numbers_as_names_of_columns(problem):
    X, y, w = problem
    frame = pd.DataFrame({0: X[:, 0], 1: pd.Categorical(np.where(X[:, 1] > 0, "mm", "ee"))})
    model = QBDTClassifier(method="paper", n_trees=3).fit(frame, y, w)
    assert model.feature_names_in_.tolist() == ["0", "1"]
    assert len(set(model.decision_function(frame))) > 1


@pytest.mark.parametrize("dtype", ["boolean", "Int64", "Float64", "bool[pyarrow]", "int64[pyarrow]"])
def test_missing_values_of_nullable_columns(problem, dtype):
    X, y, w = problem
    column = np.where(X[:, 1] > 1, np.nan, X[:, 1] > 0)
    nullable = pd.Series(column, dtype="Float64").astype(dtype)
    model = QBDTClassifier(method="paper", n_trees=3).fit({"m": X[:, 0], "b": column}, y, w)
    assert model.decision_function({"m": X[:, 0], "b": column}).tolist() == (
        model.decision_function(pd.DataFrame({"m": X[:, 0], "b": nullable})).tolist()
    )


def test_attributes_of_subclasses_stay_where_they_fit_before(problem):
    X, y, _ = problem

    class Scaled(QBDTClassifier):
        def __init__(self, lambda_=1.0, n_trees=3):
            super().__init__(method="paper", n_trees=n_trees, n_threads=1)
            self.lambda_ = lambda_

        def fit(self, X, *others, **more):
            self.scale_ = 2.0
            return super().fit(self.scale_ * X, *others, **more)

    model = Scaled(2.0).fit(X, y).fit(X, y)
    assert (model.scale_, model.lambda_, clone(model).lambda_) == (2.0, 2.0, 2.0)


def test_categories_of_pandas_that_are_objects_or_missing(problem):
    X, y, _ = problem
    year = np.where(X[:, 0] > 0, 2018, 2016)
    objects = pd.Categorical(year.astype(object), categories=pd.Index([2016, 2018], dtype=object))
    text = pd.Series(year.astype(str)).astype("string").mask(np.arange(len(year)) == 3)
    frames = [pd.DataFrame({"x": X[:, 1], "year": one}) for one in (pd.Categorical(year), objects)]
    plain, found = (QBDTClassifier(n_trees=3, n_threads=1).fit(frame, y).decision_function(frame) for frame in frames)
    assert found.tolist() == plain.tolist()
    frame = pd.DataFrame({"x": X[:, 1], "year": text.astype("category")})
    model = QBDTClassifier(n_trees=3, n_threads=1).fit(frame, y)
    assert model.decision_function(frame.assign(year=text)).tolist() == model.decision_function(frame).tolist()
