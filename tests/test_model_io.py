"""The model file: the same bits back, and a clear word about anything that is not one."""

import json

import numpy as np
import pytest

from qbdt import QBDTClassifier
from qbdt.boosting import Settings, Training, train
from qbdt.dataset import Dataset
from qbdt.errors import ModelFileError, OutputError
from qbdt.model_io import _checksum, read_model, write_model


@pytest.fixture(scope="module")
def training() -> Training:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(0.8, 1, (300, 3)), rng.normal(0, 1, (300, 3))])
    X[rng.random(X.shape) < 0.05] = np.nan
    weight = rng.uniform(0.1, 2, 600)
    return train(Dataset.from_arrays(X, np.repeat([1, 0], 300), weight), Settings(n_trees=4, mc_stat=True))


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
    result = train(Dataset.from_arrays(X, np.repeat([1, 0], 7), weight), Settings(n_trees=3))
    write_model(tmp_path / "m", result)
    assert read_model(tmp_path / "m")[0].ensemble.trees == result.ensemble.trees


def test_file_is_readable_by_a_person(path):
    lines = path.read_text().splitlines()
    assert lines[1] == '"format": "qbdt model",'
    assert any('"feature": "x0", "threshold": ' in line for line in lines)
    assert max(len(line) for line in lines) < 20_000
    json.loads(path.read_text())


def changed(path, change, reseal=True):
    content = json.loads(path.read_text())
    change(content)
    if reseal:
        content.pop("checksum", None)
        content["checksum"] = _checksum(content)
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


def test_newer_versions_ask_for_an_update(path):
    changed(path, lambda content: content.update(version=2, qbdt="9.0"))
    with pytest.raises(ModelFileError, match=r"version 2 of the format by qbdt 9\.0.*update"):
        read_model(path)


def test_other_files_are_not_models(tmp_path):
    for i, content in enumerate((b"\x89PNG\xff\xfe", b"[]", b"{}", b"hello", b"[" * 100_000, b'{"format": NaN}')):
        (tmp_path / f"{i}").write_bytes(content)
        with pytest.raises(ModelFileError, match="not a model file"):
            read_model(tmp_path / f"{i}")
    with pytest.raises(ModelFileError, match="No such file"):
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
        (set_in("bins", "x0", list(range(300))), "bins of x0"),
        (set_in("trees", 0, 3), "tree 0 is not a tree"),
        (set_in("trees", 1, "weight", "1"), "tree 1, weight"),
        (set_in("trees", 0, "nodes", []), "do not form a tree"),
        (set_in("trees", 0, "nodes", 0, "left", 0), "do not form a tree"),
        (set_in("trees", 0, "nodes", 0, "left", 99), "do not form a tree"),
        (set_in("trees", 0, "nodes", 0, "left", -1), "do not form a tree"),
        (set_in("trees", 0, "nodes", 0, "feature", "zz"), "unknown feature 'zz'"),
        (set_in("trees", 0, "nodes", 0, "missing", "up"), "missing must be"),
        (set_in("trees", 0, "nodes", 0, "threshold", True), "threshold: True"),
        (set_in("trees", 0, "nodes", 0, "b", 0.0), "positive background"),
        (set_in("trees", 0, "nodes", 0, None), "node 0 is not a node"),
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
    model = QBDTClassifier(n_trees=3, n_leaves=4, binning=[(20, -2, 3), (20, -2, 3)]).fit(X, y)
    model.save(tmp_path / "m")
    back = QBDTClassifier.load(tmp_path / "m")
    assert np.array_equal(back.decision_function(X), model.decision_function(X))
    assert np.array_equal(back.predict(X), model.predict(X))
    assert back.get_params()["n_leaves"] == 4
    assert back.fit(X, y).trees_ == model.trees_
