"""The model file: the same bits back, and a clear word about anything that is not one."""

import hashlib
import json

import numpy as np
import pytest

from qbdt import QBDTClassifier
from qbdt.data import Dataset
from qbdt.data.folds import HashFolds, ModuloFolds, SplitFolds
from qbdt.errors import DataError, ModelFileError, OutputError
from qbdt.models.file_text import FORMAT_VERSION, checksum
from qbdt.models.model_file import read_any_model, read_cross_trained, read_model, write_model
from qbdt.statistics import Expectation, SourceExpectation
from qbdt.training.methods import train
from qbdt.training.model import CrossTrainedModel, End, TrainedModel
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.training.settings import Settings
from qbdt.trees.ensemble import Ensemble


@pytest.fixture(scope="module")
def training() -> TrainedModel:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(0.8, 1, (300, 3)), rng.normal(0, 1, (300, 3))])
    X[rng.random(X.shape) < 0.05] = np.nan
    weight = rng.uniform(0.1, 2, 600)
    return train(
        Dataset.from_arrays(X, np.repeat([1, 0], 300), weight), Settings(method="paper", n_trees=4, mc_stat=True)
    )


@pytest.fixture
def path(training, tmp_path):
    write_model(tmp_path / "model.qbdt", training, {"note": "μ"})
    return tmp_path / "model.qbdt"


def test_round_trip_keeps_every_bit(training, path):
    back, extra = read_model(path)
    assert extra == {"note": "μ"}
    assert back.ensemble.trees == training.ensemble.trees
    assert back.settings == training.settings
    assert back.data == training.data
    assert all(np.array_equal(a, b) for a, b in zip(back.binning.edges, training.binning.edges, strict=True))
    write_model(path.with_suffix(".again"), back, extra)
    assert path.with_suffix(".again").read_bytes() == path.read_bytes()


def test_extreme_thresholds_come_back_exactly(tmp_path):
    values = np.array([5e-324, 1e-310, 0.1, 1 / 3, np.nextafter(1, 2), 1e300, 1.7e308])
    X = np.concatenate([values, values])[:, None]
    weight = np.concatenate([np.arange(1.0, 8), np.arange(8.0, 1, -1)])
    result = train(Dataset.from_arrays(X, np.repeat([1, 0], 7), weight), Settings(method="paper", n_trees=3))
    write_model(tmp_path / "m", result)
    assert read_model(tmp_path / "m")[0].ensemble.trees == result.ensemble.trees


def test_file_is_readable_by_a_person(path):
    lines = path.read_text().splitlines()
    assert lines[1:3] == ['"format": "qbdt model",', '"version": 3,']  # what other releases of qbdt go by
    assert any('"feature": "x0", "threshold": ' in line for line in lines)
    assert max(len(line) for line in lines) < 20_000
    json.loads(path.read_text())


def changed(path, change, reseal=True):
    content = json.loads(path.read_text())
    change(content)
    if reseal:
        content.pop("checksum", None)
        content["checksum"] = checksum(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("size", [0, 1, 100, 1000, 0.5, 0.999])
def test_truncated_files_are_recognised(path, size):
    text = path.read_text()
    path.write_text(text[: size if isinstance(size, int) else int(size * len(text))])
    with pytest.raises(ModelFileError, match=r"model\.qbdt: .*model file"):
        read_model(path)


def test_one_changed_digit_is_recognised(path):
    text = path.read_text()
    at = text.index('"threshold": ') + 15
    path.write_text(text[:at] + str((int(text[at]) + 1) % 10 if text[at].isdigit() else 1) + text[at + 1 :])
    with pytest.raises(ModelFileError, match="checksum"):
        read_model(path)


def test_numbers_that_are_not_finite_are_damage(path):
    """JSON has no NaN; what it reads as infinity, 1e999, ended in a traceback."""
    text = path.read_text()
    at = text.index('"threshold": ') + len('"threshold": ')
    for number, message in (("NaN", "damaged or truncated"), ("1e999", "checksum does not match")):
        path.write_text(text[:at] + number + text[text.index(",", at) :])
        with pytest.raises(ModelFileError, match=message):
            read_model(path)
    content = json.loads(text) | {"extra": {"note": float("inf")}}
    del content["checksum"]
    sealed = hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    path.write_text(json.dumps(content | {"checksum": sealed}).replace("Infinity", "1e999"))
    with pytest.raises(ModelFileError, match="checksum does not match"):
        read_model(path)


def test_half_characters_are_neither_written_nor_read(training, path):
    r"""An export to C++ of a feature called `x\\ud800` ended in a traceback; whole characters may be escaped."""
    with pytest.raises(ModelFileError, match="the model: half of a character"):
        write_model(path, training, {"classes": ["a", "b\ud800"]})
    content = json.loads(path.read_text()) | {"extra": {"note": "\ud83d"}}
    del content["checksum"]
    path.write_text(json.dumps(content | {"checksum": checksum(content)}))
    with pytest.raises(ModelFileError, match=f"{path.name}: half of a character"):
        read_model(path)
    for note in ("\U0001f600", "\\ud800"):
        write_model(path, training, {"note": note})
        assert read_model(path)[1] == {"note": note}


def test_the_order_of_keys_does_not_matter(training, path):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(content.items()))))
    assert read_model(path)[0].ensemble.trees == training.ensemble.trees


def test_newer_versions_ask_for_an_update(path):
    changed(path, lambda content: content.update(version=FORMAT_VERSION + 1, qbdt="9.0"))
    with pytest.raises(ModelFileError, match=rf"version {FORMAT_VERSION + 1} of the format by qbdt 9\.0.*update"):
        read_model(path)


def test_other_files_are_not_models(tmp_path):
    for i, content in enumerate((b"\x89PNG\xff\xfe", b"[]", b"{}", b"hello", b"[" * 100_000, b'{"format": NaN}')):
        (tmp_path / f"{i}").write_bytes(content)
        with pytest.raises(ModelFileError, match="not a model file"):
            read_model(tmp_path / f"{i}")
    with pytest.raises(ModelFileError, match=r"absent: No such file or directory$"):
        read_model(tmp_path / "absent")
    with pytest.raises(ModelFileError, match="directory"):
        read_model(tmp_path)


def set_in(*keys):
    *path, last, value = keys

    def change(content):
        for key in path:
            content = content[key]
        content[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("trees"), "trees: missing"),
        (lambda c: c.pop("version"), "version None"),
        (set_in("features", [1, 2, 3]), "features"),
        (set_in("features", ["x0", "x1", "x9"]), "different names"),
        (set_in("settings", {"n_leaves": 1}), "n_leaves=1"),
        (set_in("settings", {"surprise": 1}), "unknown setting surprise"),
        (set_in("bins", "x0", [2.0, 1.0]), "bins of x0"),
        (set_in("bins", "x0", [1.0, "2"]), "x0: '2' is not"),
        (set_in("bins", "x0", list(range(300))), "bins of x0"),
        (set_in("trees", 0, 3), "tree 0 is not a tree"),
        (set_in("trees", 1, "weight", "1"), "tree 1, weight"),
        (set_in("trees", 0, "nodes", []), "do not form a tree"),
        (set_in("trees", 0, "nodes", 0, "left", 0), "do not form a tree"),
        (set_in("trees", 0, "nodes", 0, "left", 99), "do not form a tree"),
        (set_in("trees", 0, "nodes", 0, "left", 2**31), "no tree can hold"),
        (set_in("trees", 0, "nodes", 0, "s", 10**400), "tree 0, node 0, s"),
        (set_in("model", "neural"), "'neural' is no kind of model"),
        (set_in("version", True), "version True"),
        (set_in("trees", 0, "nodes", 0, "left", -1), "do not form a tree"),
        (set_in("trees", 0, "nodes", 0, "feature", "zz"), "unknown feature 'zz'"),
        (set_in("trees", 0, "nodes", 0, "missing", "up"), "missing must be"),
        (set_in("trees", 0, "nodes", 0, "threshold", True), "threshold: True"),
        (set_in("trees", 0, "nodes", 0, "b", 0.0), "positive background"),
        (set_in("trees", 0, "nodes", 0, None), "node 0 is not a node"),
        (set_in("trees", 0, "weight", 1e300), "weight: 1e\\+300 is larger than 1e\\+50"),
        (set_in("data", "samples", 0, "yield", []), "data, yield"),
        (set_in("data", "samples", 0, "rows", "many"), "rows: wrong type"),
        (set_in("data", "samples", 0, "name", 3), "name: wrong type"),
        (set_in("data", "samples", {}), "samples: wrong type"),
        (set_in("data", "systematics", 1.5), "systematics: wrong type"),
        (set_in("settings", "categorical_features", None), "categorical_features=None"),
        (set_in("settings", "binning", {"x0": 1}), "binning="),
        (set_in("settings", "random_state", 2**70), "random_state="),
    ],
)
def test_contents_are_checked_even_with_a_right_checksum(path, change, message):
    changed(path, change)
    with pytest.raises(ModelFileError, match=message):
        read_model(path)


def test_a_failed_write_leaves_the_old_file(path, training, monkeypatch):
    before = path.read_bytes()

    def no_space(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", no_space)
    with pytest.raises(OutputError, match="No space left"):
        write_model(path, training)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    with pytest.raises(OutputError, match="absent"):
        write_model(path.parent / "absent" / "model", training)


def test_estimator_saves_and_loads(tmp_path):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(200, 2)), np.where(rng.random(200) < 0.5, "sig", "bkg")
    X[y == "sig"] += 1
    model = QBDTClassifier(method="paper", n_trees=3, n_leaves=4, binning=[(20, -2, 3), (20, -2, 3)]).fit(X, y)
    model.save(tmp_path / "m")
    back = QBDTClassifier.load(tmp_path / "m")
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
    assert np.array_equal(back.predict(X), model.predict(X))
    assert back.get_params()["n_leaves"] == 4
    assert back.fit(X, y).trees_ == model.trees_


def profiled_training(training):
    """Make a training of the profiled method from any trees; its nodes need no background."""
    trees = training.ensemble.trees
    nodes = trees[3].nodes.copy()
    nodes["b"][1:] = -0.1
    shift = (trees[2], type(trees[3])(nodes, 0.5))
    rng = np.random.default_rng(5)
    values = tuple(rng.normal(size=(len(tree.nodes), 2)) for tree in shift)
    features = training.ensemble.features
    ensemble = ProfiledEnsemble(
        Ensemble(features, trees[:2]), Ensemble(features, shift), -2.5, ("tes", "μ"), (0.25, -1 / 3), values
    )
    expected = Expectation(0.2, 0.3, unprofiled=0.4, sources=(SourceExpectation("tes", 0.25, 0.1, 0.05),))
    return TrainedModel(ensemble, training.binning, training.settings, (), End(), training.data, (expected,))


@pytest.fixture(scope="module")
def profiled(training):
    return profiled_training(training)


@pytest.fixture
def profiled_path(profiled, tmp_path):
    write_model(tmp_path / "profiled.qbdt", profiled)
    return tmp_path / "profiled.qbdt"


def require_same_profiled(one, other):
    assert one.trees == other.trees
    assert len(one.ratio.trees) == len(other.ratio.trees)
    assert (one.features, one.log_odds, one.sources) == (other.features, other.log_odds, other.sources)
    assert one.coefficients == other.coefficients
    assert len(one.source_values) == len(other.source_values)
    assert all(np.array_equal(a, b) for a, b in zip(one.source_values, other.source_values, strict=True))


def test_profiled_models_keep_every_bit(profiled, profiled_path):
    back, _ = read_model(profiled_path)
    require_same_profiled(back.ensemble, profiled.ensemble)
    assert back.expectation == profiled.expectation
    write_model(profiled_path.with_suffix(".again"), back)
    assert profiled_path.with_suffix(".again").read_bytes() == profiled_path.read_bytes()


def test_profiled_models_without_sources(training, tmp_path):
    features = training.ensemble.features
    alone = ProfiledEnsemble(training.ensemble, Ensemble(features, ()), 0.0)
    write_model(tmp_path / "m", TrainedModel(alone, training.binning, training.settings))
    back, _ = read_model(tmp_path / "m")
    require_same_profiled(back.ensemble, alone)
    assert back.expectation is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("shift_trees"), "shift_trees: missing"),
        (set_in("log_odds", None), "log_odds: None is not"),
        (set_in("sources", ["a", "a"]), "sources: different names"),
        (set_in("coefficients", [1.0]), "1 coefficients for 2 sources"),
        (set_in("coefficients", [1.0, "x"]), "coefficients: 'x' is not"),
        (set_in("shift_trees", 1, "nodes", 0, "left", 0), "shift tree 1: its nodes do not form"),
        (set_in("shift_trees", 0, "nodes", 1, "source_values", [1.0]), "shift tree 0, node 1: 1 values for 2"),
        (set_in("shift_trees", 0, "nodes", 1, "source_values", [1.0, None]), "node 1, source_values: None"),
        (lambda c: c["shift_trees"][0]["nodes"][1].pop("source_values"), "source_values: missing"),
        (lambda c: [node.pop("source_values") for node in c["shift_trees"][0]["nodes"]], "others have none"),
        (set_in("expectation", "stat", None), "expectation, stat: None"),
        (set_in("expectation", "sources", [3]), "a source is not a record"),
        (set_in("expectation", 3), "expectation: wrong type"),
    ],
)
def test_contents_of_profiled_models_are_checked(profiled_path, change, message):
    changed(profiled_path, change)
    with pytest.raises(ModelFileError, match=message):
        read_model(profiled_path)


@pytest.mark.parametrize("rule", [ModuloFolds(2, "event"), HashFolds(2, ("run", "event"), 2**70), SplitFolds(2, "i")])
def test_cross_trained_models_keep_every_bit(training, profiled, rule, tmp_path):
    path = tmp_path / "crossed.qbdt"
    write_model(path, CrossTrainedModel((training, profiled), rule), {"a": 1})
    back, extra = read_cross_trained(path)
    assert back.folds == rule
    assert back.complete
    assert extra == {"a": 1}
    assert back.trainings[0].ensemble.trees == training.ensemble.trees
    assert back.trainings[0].settings == training.settings
    require_same_profiled(back.trainings[1].ensemble, profiled.ensemble)
    write_model(path.with_suffix(".again"), read_any_model(path)[0], extra)
    assert path.with_suffix(".again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_in("folds", {}), "columns: missing"),
        (set_in("folds", "by", "luck"), "no rule that is known"),
        (set_in("folds", "columns", []), "no rule that is known"),
        (set_in("folds", "columns", ["a", "b"]), "takes one column"),
        (set_in("folds", "k", 2.5), "k: wrong type"),
        (set_in("folds", "k", 1), "at least 2 folds"),
        (lambda c: c["trainings"].append(c["trainings"][0]), "3 trainings for 2 folds"),
        (set_in("trainings", 1, None), "fold 1 is not a training"),
        (lambda c: c["trainings"][1].update(model="cross-trained"), "fold 1 is not a training"),
        (set_in("trainings", 1, "model", [None]), "fold 1 is not a training"),
        (set_in("trainings", 1, "trees", 0, "nodes", 0, "left", 0), "fold 1: tree 0: its nodes do not form"),
    ],
)
def test_contents_of_cross_trained_models_are_checked(training, tmp_path, change, message):
    path = tmp_path / "crossed.qbdt"
    write_model(path, CrossTrainedModel((training, training), ModuloFolds(2, "event")))
    changed(path, change)
    with pytest.raises(ModelFileError, match=message):
        read_any_model(path)


def test_one_kind_of_model_is_not_taken_for_the_other(training, path, tmp_path):
    write_model(tmp_path / "crossed", CrossTrainedModel((training,), ModuloFolds(2, "event")))
    with pytest.raises(ModelFileError, match="cross-trained model with 2 folds, where a single"):
        read_model(tmp_path / "crossed")
    with pytest.raises(ModelFileError, match="a single model, where a cross-trained"):
        read_cross_trained(path)
    unfinished, _ = read_cross_trained(tmp_path / "crossed")
    assert not unfinished.complete
    with pytest.raises(DataError, match="fold 1 of 2 is not trained yet"):
        _ = unfinished.ensemble


def test_files_of_version_1_are_read(training, path):
    """Version 1 had the paper's models only, and did not say so."""

    def as_version_1(content):
        content["version"] = 1
        del content["model"], content["expectation"]

    changed(path, as_version_1)
    assert read_model(path)[0].ensemble.trees == training.ensemble.trees


def test_numbers_that_json_has_not_are_not_written(training, tmp_path):
    features = training.ensemble.features
    endless = ProfiledEnsemble(training.ensemble, Ensemble(features, ()), float("inf"))
    with pytest.raises(ModelFileError, match="not finite"):
        write_model(tmp_path / "m", TrainedModel(endless, training.binning, training.settings))
    assert not (tmp_path / "m").exists()


@pytest.fixture
def categorical(tmp_path):
    """File of a model with a categorical feature."""
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], 150)
    table = {"year": rng.choice([2016, 2018], 300) + np.where(rng.random(300) < 0.7, y, 0), "m": rng.normal(y, 1.0)}
    model = QBDTClassifier(
        method="paper", n_trees=2, categorical_features=["year"], monotonic_constraints={"m": 1}
    ).fit(table, y)
    model.save(tmp_path / "m.qbdt")
    return tmp_path / "m.qbdt"


def first_set(content):
    nodes = [node for tree in content["trees"] for node in tree["nodes"]]
    return next(node for node in nodes if "left_categories" in node)


def test_categories_can_be_read_in_the_file(categorical):
    content = json.loads(categorical.read_text())
    assert content["categories"] == {"year": [2016, 2017, 2018, 2019]}
    assert list(content["bins"]) == ["m"]
    node = first_set(content)
    assert node["feature"] == "year"
    assert "threshold" not in node
    assert set(node["left_categories"]) < {2016, 2017, 2018, 2019}
    model = QBDTClassifier.load(categorical)
    assert model.get_params()["categorical_features"] == ("year",)
    assert model.get_params()["monotonic_constraints"] == {"m": 1}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda c: first_set(c).update(left_categories=[1999]), "left_categories: 1999 is no category of year"),
        (lambda c: first_set(c).update(left_categories=[]), "left_categories: some .* and not all, must go left"),
        (lambda c: first_set(c).update(left_categories=[2016, 2017, 2018, 2019]), "and not all, must go left"),
        (lambda c: first_set(c).update(left_categories=["2016"]), "'2016' is not a finite number"),
        (lambda c: first_set(c).pop("left_categories"), "left_categories: missing"),
        (lambda c: c["categories"].update(year=[2018, 2016]), "categories of year: .* increasing whole numbers"),
        (lambda c: c["categories"].update(year=[0.5, 2016]), "categories of year"),
        (lambda c: c["categories"].update(year=list(range(256))), "categories of year: at most 255"),
        (lambda c: c["categories"].update(run=[1, 2]), "categories: unknown feature 'run'"),
        (lambda c: c.update(categories={}), "bins and features have different names"),
        (lambda c: c["settings"].update(categorical_features=[]), "name different categorical features"),
        (lambda c: c["settings"].update(monotonic_constraints={"m": 3}), "m: 3: must be 1, -1, or 0"),
        (lambda c: c["settings"].update(monotonic_constraints={"pt": 1}), "no feature pt"),
    ],
)
def test_damaged_categories_are_refused(categorical, damage, message):
    changed(categorical, damage)
    with pytest.raises(ModelFileError, match=message):
        read_model(categorical)


def test_files_of_version_2_are_read(training, path):
    """Version 2 had no categories and no settings for them."""

    def as_version_2(content):
        content["version"] = 2
        del content["categories"]
        del content["settings"]["categorical_features"], content["settings"]["monotonic_constraints"]

    changed(path, as_version_2)
    assert read_model(path)[0].ensemble.trees == training.ensemble.trees
    assert read_model(path)[0].settings == training.settings
