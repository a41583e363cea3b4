"""Exports of models of several parameters, and of regressions."""

from dataclasses import replace

import numpy as np
import pytest

from qbdt import QBDTRegressor
from qbdt.data.events import Events
from qbdt.data.folds import HashFolds, ModuloFolds
from qbdt.errors import ConfigError
from qbdt.models.export import export_model
from qbdt.models.export.cpp_header import CompiledHeader, namespace_of
from qbdt.models.export.onnx_graph import read_onnx
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.profile.efficient_scores import EfficientScores
from qbdt.trees.ensemble import Ensemble
from tests.models.export.models import random_sum
from tests.trees.test_ensemble import random_tree

NAMES = ("x0", "x1")
FORMATS = {"model.onnx": "onnx", "model.h": "cpp"}


def require(to):
    if to == "onnx":
        pytest.importorskip("onnxruntime")
    elif CompiledHeader.compiler() is None:
        pytest.skip("no C++ compiler")


def random_scores(seed, n_strengths, n_parameters):
    rng = np.random.default_rng(seed)
    trees = tuple(random_tree(rng, len(NAMES), 4, rng.normal(size=8), None) for _ in range(3))
    values = tuple(0.1 * rng.normal(size=(len(tree.nodes), 2)) for tree in trees)
    return EfficientScores(
        tuple(random_sum(rng, NAMES) for _ in range(n_strengths)),
        Ensemble(NAMES, trees),
        tuple(rng.normal(-2, 1, n_strengths).tolist()),
        tuple(f"mu{i}" for i in range(n_strengths)),
        ("a", "b"),
        tuple(f"p{i}" for i in range(n_parameters)),
        rng.normal(size=(n_parameters, n_strengths)),
        rng.normal(size=(n_parameters, 2)),
        np.exp(rng.normal(-2, 1, n_parameters)),
        values,
    )


def read_back(path, n_parameters):
    if path.suffix == ".onnx":
        return read_onnx(path)
    return CompiledHeader(path, namespace_of(path.stem), (), path.parent, n_parameters)


@pytest.mark.parametrize("name", ["model.onnx", "model.h"])
@pytest.mark.parametrize(("n_strengths", "n_parameters"), [(1, 1), (2, 2), (1, 2), (3, 1)])
def test_several_scores_come_back(n_strengths, n_parameters, name, tmp_path):
    require(FORMATS[name])
    model = random_scores(1, n_strengths, n_parameters)
    done = export_model(model, tmp_path / name, FORMATS[name])
    assert done.difference < 1e-9
    x = np.random.default_rng(2).normal(size=(50, 2))
    x[::7, 0] = np.nan
    found = read_back(tmp_path / name, n_parameters)(x, {})["score"]
    wanted = model.score(Events(dict(zip(NAMES, x.T, strict=True)), np.ones(50)))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["model.onnx", "model.h"])
@pytest.mark.parametrize("rule", [ModuloFolds(2, "event"), HashFolds(3, ("run", "event"))], ids=str)
def test_folds_choose_among_several_scores(rule, name, tmp_path):
    require(FORMATS[name])
    model = FoldedEnsemble(tuple(random_scores(i, 2, 2) for i in range(rule.k)), rule)
    assert export_model(model, tmp_path / name, FORMATS[name]).difference < 1e-9


@pytest.mark.parametrize("to", ["xgboost", "tmva"])
def test_other_formats_say_which_ones_take_several_scores(to, tmp_path):
    ending = {"xgboost": "json", "tmva": "xml"}[to]
    with pytest.raises(ConfigError, match="onnx and cpp take those of other parameters"):
        export_model(random_scores(1, 2, 2), tmp_path / f"model.{ending}", to)


@pytest.mark.parametrize("to", ["onnx", "xgboost", "tmva", "cpp"])
def test_a_regression_is_one_sum_of_trees(to, tmp_path):
    pytest.importorskip({"onnx": "onnxruntime", "xgboost": "xgboost"}.get(to, "numpy"))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    model = QBDTRegressor(n_trees=5).fit(X, 125.0 + 10 * X[:, 0])
    ending = {"onnx": "onnx", "xgboost": "json", "tmva": "xml", "cpp": "h"}[to]
    done = export_model(model.ensemble_, tmp_path / f"model.{ending}", to)
    assert done.checks
    assert done.difference < 1e-3  # 125 in single precision, after some additions


def test_scores_do_not_depend_on_how_numbers_lie_in_memory():
    """Training and reading a file lay matrices out in two ways: a run that went on had other scores in the last bit."""
    rng, n_sources = np.random.default_rng(4), 7
    model = random_scores(3, 3, 3)
    values = tuple(rng.normal(size=(len(tree.nodes), n_sources)) for tree in model.shift.trees)
    names = tuple(f"source{k}" for k in range(n_sources))
    model = replace(model, sources=names, coefficients=rng.normal(size=(3, n_sources)), source_values=values)
    other = replace(
        model,
        ratio_coefficients=np.asfortranarray(model.ratio_coefficients),
        coefficients=np.asfortranarray(model.coefficients),
        source_values=tuple(map(np.asfortranarray, values)),
    )
    events = Events({name: rng.normal(size=500) for name in NAMES}, np.ones(500))
    assert np.array_equal(model.score(events), other.score(events))
    assert np.array_equal(model.centres, other.centres)
