"""Every check of the contents of a model file, at its limit: the smallest file of each kind, and one change to it."""

import json
from copy import deepcopy
from typing import Any

import pytest

from qbdt.errors import ModelFileError
from qbdt.models.file_text import LARGEST_OUTPUT, LARGEST_YIELD, get, number
from qbdt.models.model_content import from_dict, to_dict
from qbdt.training.model import End, Ending, TrainedModel
from qbdt.training.settings import Settings

SETTINGS = json.loads(json.dumps(Settings(method="paper", n_trees=1).to_dict()))


def make_node(depth: int, **way: Any) -> dict[str, Any]:
    return {**way, "depth": depth, "s": 1.0, "b": 2.0, "sigma2": 0.0, "q": 0.5, "gain": 0.0, "value": 0.25}


def make_tree(**values: Any) -> dict[str, Any]:
    split = {"feature": "x", "threshold": 0.5, "missing": "left", "left": 1, "right": 2}
    nodes = [make_node(0, **split), make_node(1), make_node(1)]
    return {"weight": 1.0, "nodes": [{**node, **values} for node in nodes]}


def make_content(model: str, **own: Any) -> dict[str, Any]:
    content = {"features": ["x", "y"], "settings": SETTINGS, "data": {}, "history": [], "stopped": None}
    content |= {"bins": {"x": [0.0, 1.0], "y": []}, "categories": {}, "model": model, "trees": [make_tree()], **own}
    return deepcopy(content)


EXPECTED = {"stat": 0.1, "full": 0.2, "unprofiled": 0.3, "sources": []}
SOURCE = {"name": "tes", "coefficient": 0.25, "cost": 0.1, "profiled_cost": 0.05}
SHIFTS = {"sources": ["tes", "jes"], "shift_trees": [make_tree(source_values=[0.5, -1.0])]}
PREDICTION = {"unprofiled": 2.0, "profiled": 1.5, "n_effective": 9.0}
KINDS = {
    "paper": make_content("paper", expectation=None),
    "profiled": make_content(
        "profiled",
        expectation={**EXPECTED, "sources": [SOURCE]},
        log_odds=-2.0,
        coefficients=[0.25, 0.5],
        **SHIFTS,
    ),
    "efficient": make_content(
        "efficient",
        expectation=EXPECTED,
        further_expectations=[{**EXPECTED, "parameter": "mass"}],
        log_odds=[-2.0, -3.0],
        strengths=["mu", "nu"],
        parameters=["mu", "nu", "mass"],
        ratio_coefficients=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]],
        coefficients=[[0.25, 0.5], [0.0, 0.0], [1.0, -1.0]],
        widths=[0.5, 1.0, 2.0],
        ratio_trees=[0, 1],
        **SHIFTS,
    ),
    "regression": make_content(
        "regression",
        expectation=None,
        loss={"name": "huber", "delta": 1.5, "quantile": 0.5},
        n_events=100.0,
        prediction={**PREDICTION, "sources": [{"name": "tes", "unprofiled": 0.5, "profiled": 0.25}]},
    ),
}
CROSSED = {
    "model": "cross-trained",
    "folds": {"by": "hash", "columns": ["event"], "k": 2, "salt": 3},
    "trainings": [KINDS["paper"], KINDS["efficient"]],
}


def write_again(content: dict[str, Any]) -> Any:
    return json.loads(json.dumps(to_dict(from_dict(content))))


@pytest.mark.parametrize("content", [*KINDS.values(), CROSSED], ids=[*KINDS, "cross-trained"])
def test_contents_come_back(content):
    assert write_again(content) == content


def change(content: dict[str, Any], *keys: Any) -> dict[str, Any]:
    """Return a copy in which the place that the first keys lead to has another value, the last of them."""
    *way, last, value = keys
    changed = place = deepcopy(content)
    for key in way:
        place = place[key]
    place[last] = value
    return changed


NODE = ("trees", 0, "nodes", 0)
LEAF = ("trees", 0, "nodes", 2)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("paper", ("bins", "y", [float(i) for i in range(254)])),
        ("paper", (*NODE, "b", 5e-324)),
        ("paper", (*NODE, "s", -LARGEST_YIELD)),
        ("paper", (*LEAF, "value", LARGEST_OUTPUT)),
        ("paper", ("trees", 0, "weight", -LARGEST_OUTPUT)),
        ("paper", (*NODE, "missing", "right")),
        ("profiled", (*NODE, "b", -1.0)),
        ("profiled", ("shift_trees", 0, "nodes", 0, "source_values", [0.0, LARGEST_OUTPUT])),
        ("efficient", ("ratio_trees", [1, 0])),
        ("efficient", ("widths", [5e-324, 1.0, 2.0])),
        ("regression", ("n_events", None)),
        ("regression", ("prediction", "n_effective", 0.5)),
        ("paper", (*LEAF, "depth", 2**31 - 1)),
        ("regression", ("prediction", None)),
        ("regression", ("loss", {"name": "squared", "delta": None, "quantile": 0.25})),
    ],
)
def test_what_is_just_allowed(kind, keys):
    changed = change(KINDS[kind], *keys)
    assert write_again(changed) == changed


@pytest.mark.parametrize(
    ("kind", "keys", "message"),
    [
        ("paper", ("features", []), "features: at least one is needed"),
        ("paper", ("features", ["x", "x"]), "features: different names"),
        ("paper", ("bins", "y", [float(i) for i in range(255)]), "bins of y: at most 254 increasing edges"),
        ("paper", ("bins", "y", [1.0, 1.0]), "bins of y"),
        ("paper", ("history", [None]), "history: None is not"),
        ("paper", ("stopped", 3), "stopped: wrong type"),
        ("paper", (*NODE, "sigma2", -1e-9), "tree 0: a node without positive background"),
        ("paper", (*NODE, "s", 1.1 * LARGEST_YIELD), "node 0, s: .* is larger than 1e\\+250"),
        ("paper", (*LEAF, "value", 1.1 * LARGEST_OUTPUT), "node 2, value: .* is larger than 1e\\+50"),
        ("paper", (*LEAF, "depth", True), "depth: wrong type"),
        ("paper", (*NODE, "right", 1), "do not form a tree"),
        ("paper", (*NODE, "right", 0), "do not form a tree"),
        ("paper", ("data", "samples", [3]), "data: a sample is not a record"),
        ("paper", ("data", "systematics", ["a", "a"]), "systematics: different names"),
        ("profiled", ("coefficients", [1.0, 2.0, 3.0]), "3 coefficients for 2 sources"),
        ("profiled", ("shift_trees", 0, "nodes", 0, "source_values", [0.0, 1.1 * LARGEST_OUTPUT]), "is larger than"),
        ("profiled", ("shift_trees", 0, "nodes", 0, "source_values", [0.0, 1.0, 2.0]), "3 values for 2 sources"),
        ("profiled", ("expectation", "sources", 0, "cost", None), "expectation, cost: None"),
        ("profiled", ("expectation", "parameter", 3), "parameter: wrong type"),
        ("efficient", ("further_expectations", [3]), "further_expectations: one is not a record"),
        ("efficient", ("log_odds", [-2.0]), "1 log_odds and 2 ratios for 2 strengths"),
        ("efficient", ("ratio_trees", [1]), "2 log_odds and 1 ratios for 2 strengths"),
        ("efficient", ("strengths", ["mu"]), "for 1 strengths"),
        ("efficient", ("ratio_trees", [0.5, 0.5]), "2 ratios for 2 strengths"),
        ("efficient", ("ratio_trees", [-1, 2]), "2 ratios for 2 strengths"),
        ("efficient", ("ratio_trees", [1, 1]), "2 ratios for 2 strengths"),
        ("efficient", ("widths", [1.0, 1.0]), "2 positive widths for 3 parameters"),
        ("efficient", ("widths", [0.0, 1.0, 1.0]), "3 positive widths for 3 parameters"),
        ("efficient", ("ratio_coefficients", [[1.0, 0.0], [0.0, 1.0]]), "ratio_coefficients: 3 rows of 2 numbers"),
        ("efficient", ("coefficients", [[1.0], [0.0], [0.0]]), "coefficients: 3 rows of 2 numbers"),
        ("efficient", ("shift_trees", [make_tree()]), "shift trees have no source_values"),
        ("regression", ("n_events", "all"), "n_events: 'all' is not"),
        ("regression", ("loss", "name", 3), "name: wrong type"),
        ("regression", ("loss", "quantile", None), "loss, quantile: None is not"),
        ("regression", ("loss", "delta", "wide"), "loss, delta: 'wide' is not"),
        ("regression", ("prediction", 3), "prediction: wrong type"),
        ("regression", ("prediction", "n_effective", 0), "n_effective: a positive number is needed"),
        ("regression", ("prediction", "sources", [3]), "prediction: a source is not a record"),
        ("regression", ("prediction", "sources", 0, "profiled", None), "prediction, profiled: None"),
    ],
)
def test_what_is_refused(kind, keys, message):
    with pytest.raises(ModelFileError, match=message):
        from_dict(change(KINDS[kind], *keys))


@pytest.mark.parametrize("ways", [(1, 4), (4, 1)])
def test_a_node_that_leads_to_itself_is_refused(ways):
    """Every node but the root is the child of one, and yet a walk from the root misses some."""
    split = {"feature": "x", "threshold": 0.5, "missing": "left"}
    inner = [make_node(0, **split, left=left, right=right) for left, right in ((2, 3), ways)]
    tree = {"weight": 1.0, "nodes": [*inner, make_node(1), make_node(1), make_node(1)]}
    with pytest.raises(ModelFileError, match="do not form a tree"):
        from_dict(KINDS["paper"] | {"trees": [tree]})


def test_no_strength_and_no_parameter_are_refused():
    none = KINDS["efficient"] | {"strengths": [], "log_odds": [], "ratio_trees": [], "trees": []}
    with pytest.raises(ModelFileError, match="0 log_odds and 0 ratios for 0 strengths"):
        from_dict(none)
    with pytest.raises(ModelFileError, match="0 positive widths for 0 parameters"):
        from_dict(KINDS["efficient"] | {"parameters": [], "widths": []})


def test_a_single_strength():
    """One score is enough: a signal strength beside which a mass is only profiled."""
    one = {"strengths": ["mu"], "log_odds": [-2.0], "ratio_trees": [1], "ratio_coefficients": [[1.0], [0.0], [0.5]]}
    assert write_again(KINDS["efficient"] | one) == KINDS["efficient"] | one


def test_categories_at_their_limit():
    node = {"feature": "y", "left_categories": [0, 254], "missing": "left", "left": 1, "right": 2}
    tree = {"weight": 1.0, "nodes": [make_node(0, **node), make_node(1), make_node(1)]}
    content = KINDS["paper"] | {"bins": {"x": []}, "categories": {"y": list(range(255))}, "trees": [tree]}
    content["settings"] = {**SETTINGS, "categorical_features": ["y"]}
    assert to_dict(from_dict(content))["trees"] == [tree]
    assert read_single(content).ensemble.trees[0].nodes["threshold"].tolist() == [0, 0, 0]
    for values in ([-1, 0], [1, 1]):
        with pytest.raises(ModelFileError, match="categories of y: at most 255 increasing whole numbers"):
            from_dict(content | {"categories": {"y": values}})
    with pytest.raises(ModelFileError, match="must go left"):
        from_dict(change(content, *NODE, "left_categories", list(range(255))))


def read_single(content: dict[str, Any]) -> TrainedModel:
    found = from_dict(content)
    assert isinstance(found, TrainedModel)
    return found


def test_how_a_training_ended():
    content = change(KINDS["paper"], "settings", "n_trees", 2)
    assert read_single(content).end == End(Ending.INTERRUPTED, "1 trees")
    assert read_single(content | {"history": [0.5, 0.5]}).end == End()
    assert read_single(change(KINDS["profiled"], "settings", "n_trees", 2)).end == End()
    del content["model"]
    assert read_single(content).end == End(Ending.INTERRUPTED, "1 trees")


def test_what_older_files_do_not_say():
    folds = {"by": "hash", "columns": ["event"], "k": 2}
    assert to_dict(from_dict(CROSSED | {"folds": folds}))["folds"] == folds | {"salt": 0}
    assert [one.parameter for one in read_single(KINDS["efficient"]).expectations] == ["mu", "mass"]


def test_values_at_their_limit():
    assert number(-3.0, "it", 3.0) == -3.0
    for value in (True, "1", None, float("inf"), 10**400):
        with pytest.raises(ModelFileError, match=r"it: .* is not a finite number"):
            number(value, "it")
    with pytest.raises(ModelFileError, match="it: wrong type"):
        get({"it": True}, "it", int)
    with pytest.raises(ModelFileError, match="it: missing"):
        get({}, "it", int)
