"""Every export, read back by another program, scores as the model does: exactly where the format can hold it."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings

from qbdt.arrays import NODE
from qbdt.data.events import Events
from qbdt.data.folds import HashFolds, ModuloFolds, SplitFolds
from qbdt.errors import ConfigError, DataError, OutputError
from qbdt.models.export.comparison import bound_rounding, float32_at_least
from qbdt.models.export.cpp_header import CompiledHeader, namespace_of
from qbdt.models.export.exporter import FORMATS, export_model
from qbdt.models.export.onnx_graph import read_onnx
from qbdt.models.export.probes import draw_identifiers, make_probes
from qbdt.training.ensembles import FoldedEnsemble
from qbdt.training.profile.score import ProfiledEnsemble
from qbdt.trees.ensemble import Ensemble
from qbdt.trees.tree import Tree
from tests.models.export.models import (
    categorical_models,
    is_profiled,
    models,
    random_categorical_model,
    random_sum,
    rows_of,
)
from tests.trees.test_ensemble import make_chain, random_tree, walk


@given(models)
def test_onnx_agrees(model):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.onnx"
        done = export_model(model, path, "onnx")
        outputs = read_onnx(path)
    values, ids, score, average = rows_of(model)
    found = outputs(values, ids)
    if is_profiled(model):  # the exponential function of onnxruntime is another one, right to its last digit or two
        assert np.allclose(found["score"], score, rtol=0, atol=1e-14)
    else:
        assert np.array_equal(found["score"], score)
        assert done.difference == 0
    if average is not None:
        assert np.allclose(found["average"], average, rtol=0, atol=1e-14)


@given(models)
def test_xgboost_takes_the_same_way_through_every_tree(model):
    import xgboost

    with TemporaryDirectory() as folder:
        done = export_model(model, Path(folder) / "m.json", "xgboost")
        boosters = [
            xgboost.Booster({"nthread": 1}, model_file=str(path))
            for path in done.files
            if not path.name.endswith("index.json")
        ]
    values = rows_of(model)[0].astype(np.float32)
    values[np.isinf(values)] = 0  # a DMatrix refuses them
    events = Events(dict(zip(model.features, values.T, strict=True)), np.ones(len(values)))
    ensembles = [ensemble for member in model.members for ensemble in member.components.values()]
    for booster, ensemble in zip(boosters, ensembles, strict=True):
        if ensemble.trees:
            leaves = booster.predict(xgboost.DMatrix(values, nthread=1), pred_leaf=True).reshape(len(values), -1)
            assert np.array_equal(leaves, ensemble.leaves(events, 1))
    assert done.difference <= max(bound_rounding(member) for member in model.members)


@given(categorical_models)
def test_sets_of_categories_are_exported(model):
    has_sets = any(tree.is_set.any() for member in model.members for tree in member.trees)
    with TemporaryDirectory() as folder:
        onnx = export_model(model, Path(folder) / "m.onnx", "onnx")
        xgboost = export_model(model, Path(folder) / "m.json", "xgboost")
        if has_sets:
            with pytest.raises(DataError, match=r"feature x\d is categorical: TMVA has cuts only"):
                export_model(model, Path(folder) / "m.xml", "tmva")
            assert not (Path(folder) / "m.xml").exists()
    assert onnx.difference <= (1e-14 if is_profiled(model) else 0.0)
    assert xgboost.difference <= max(bound_rounding(member) for member in model.members)
    assert any("RBDT" in warning for warning in xgboost.warnings) == has_sets
    assert any("onnxruntime before 1.30" in warning for warning in onnx.warnings) == has_sets


@pytest.mark.parametrize("to", ["cpp", "xgboost", "onnx"])
def test_a_deep_tree_is_exported_in_no_time(tmp_path, to):
    model = Ensemble(tuple("abcdefgh"), (make_chain(1500, 8),))
    assert export_model(model, tmp_path / f"m{FORMATS[to]}", to).difference < 1e-6


def test_fractions_of_categories_are_exact_in_onnx(tmp_path):
    """A value between two categories is none of them; runtimes that cut its fraction off would take it for one."""
    model = random_categorical_model(15)  # all features have categories 0 … 39
    path = tmp_path / "m.onnx"
    assert export_model(model, path, "onnx").difference == 0
    rng = np.random.default_rng(5)
    values = rng.integers(-2, 45, (4000, len(model.features))) + rng.choice([0.0, 1e-9, 0.25, 0.5, 0.999999], (4000, 1))
    events = Events(dict(zip(model.features, values.T, strict=True)), np.ones(len(values)))
    assert np.array_equal(read_onnx(path)(values, {})["score"], model.score(events, 1))


def test_onnx_that_cuts_fractions_off_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("qbdt.models.export.onnx_graph._Graph._whole_categories", lambda self, ensemble: "features")
    with pytest.raises(OutputError, match="does not agree"):
        export_model(random_categorical_model(15), tmp_path / "m.onnx", "onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(CompiledHeader.compiler() is None, reason="no C++ compiler")
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_sets_of_categories_in_cpp(seed, tmp_path):
    done = export_model(random_categorical_model(seed), tmp_path / "m.h", "cpp")
    assert done.difference <= 1e-14
    assert "binary_search" in (tmp_path / "m.h").read_text()


@settings(max_examples=10)
@given(categorical_models)
def test_probes_try_every_category_at_every_node(model):
    rows = np.concatenate([batch.values for batch in make_probes(model)])
    for tree in (tree for member in model.members for tree in member.trees):
        if tree.is_set[0]:
            feature = int(tree.nodes["feature"][0])
            assert set(tree.categories[feature]) <= set(rows[:, feature])
            for side in ("left", "right"):
                node = int(tree.nodes[side][0])
                other = int(tree.nodes["feature"][node])
                if tree.is_set[node] and other != feature:
                    there = tree.goes_left(0, rows[:, feature]) == (side == "left")
                    assert set(tree.categories[other]) <= set(rows[there][:, other])


def test_xgboost_has_an_end_of_categories(tmp_path):
    nodes = np.zeros(3, NODE)
    nodes["feature"], nodes["left"], nodes["right"] = (0, -1, -1), (1, -1, -1), (2, -1, -1)
    nodes["categories"][0, 0] = 1
    model = Ensemble(("pdg",), (Tree(nodes, 1.0, {0: np.array([11.0, 2.0**24])}),))
    with pytest.raises(DataError, match="pdg has the category 16777216: XGBoost's end at 16777215"):
        export_model(model, tmp_path / "m.json", "xgboost")
    assert export_model(model, tmp_path / "m.onnx", "onnx").difference == 0


def tmva_value(path, row):
    """What TMVA's MethodBDT returns, written from its sources: CheckEvent, GoesRight and PrivateGetMvaValue."""
    root = ET.parse(path).getroot()
    options = {option.attrib["name"]: option.text for option in root.iter("Option")}
    assert (options["BoostType"], options["UseYesNoLeaf"]) == ("AdaBoost", "False")
    assert [weights.attrib["AnalysisType"] for weights in root.iter("Weights")] == ["0"]  # kClassification: a purity
    total = norm = 0.0
    for tree in root.iter("BinaryTree"):
        node = tree[0]
        while node.attrib["nType"] == "0":
            right = np.float32(row[int(node.attrib["IVar"])]) >= np.float32(node.attrib["Cut"])
            side = "r" if right == (node.attrib["cType"] == "1") else "l"
            node = next(child for child in node if child.attrib["pos"] == side)
        total += float(tree.attrib["boostWeight"]) * float(np.float32(node.attrib["purity"]))
        norm += float(tree.attrib["boostWeight"])
    return total / norm if norm > 0 else 0.0


@given(models)
def test_tmva_agrees_where_nothing_is_missing(model):
    with TemporaryDirectory() as folder:
        done = export_model(model, Path(folder) / "m.xml", "tmva")
        paths = [path for path in done.files if path.suffix == ".xml"]
        ensembles = [ensemble for member in model.members for ensemble in member.components.values()]
        values = rows_of(model)[0].astype(np.float32)
        values = values[~np.isnan(values).any(axis=1)][::29]
        events = Events(dict(zip(model.features, values.T, strict=True)), np.ones(len(values)))
        for path, ensemble in zip(paths, ensembles, strict=True):
            found = [tmva_value(path, row) for row in values]
            assert np.allclose(found, ensemble.score(events, 1), rtol=0, atol=bound_rounding(ensemble))
    right = any((~t.nodes["missing_left"][~t.is_leaf]).any() for member in model.members for t in member.trees)
    assert any("send missing values right" in warning for warning in done.warnings) == right


@settings(max_examples=15)
@given(models)
def test_probes_reach_every_node_at_its_cut(model):
    """Every inner node that any row can reach is reached by a row exactly at its cut, and by one just below it."""
    batches = list(make_probes(model))
    rows = np.concatenate([batch.values for batch in batches])
    for member in model.members:
        for tree in member.trees:
            wanted = reachable(tree, len(model.features))
            at, below = set(), set()
            for row in rows:
                for node in path(tree, row):
                    x, c = row[tree.nodes["feature"][node]], tree.nodes["threshold"][node]
                    at |= {node} if x == c else set()
                    below |= {node} if x == np.nextafter(c, -np.inf) else set()
            assert wanted <= at
            assert wanted <= below


def path(tree, row):
    node = 0
    while tree.nodes["feature"][node] >= 0:
        yield node
        x = row[tree.nodes["feature"][node]]
        left = tree.nodes["missing_left"][node] if np.isnan(x) else x < tree.nodes["threshold"][node]
        node = int(tree.nodes["left" if left else "right"][node])


def reachable(tree, n_features):
    """Inner nodes whose cut lies strictly between the cuts above it: both its values can get there."""
    found, todo = set(), [(0, np.full(n_features, -np.inf), np.full(n_features, np.inf))]
    while todo:
        at, low, high = todo.pop()
        feature, cut = int(tree.nodes["feature"][at]), tree.nodes["threshold"][at]
        if feature < 0:
            continue
        if np.all(low < high) and low[feature] < cut < high[feature] and low[feature] <= np.nextafter(cut, -np.inf):
            found.add(at)
        below, above = high.copy(), low.copy()
        below[feature], above[feature] = min(high[feature], cut), max(low[feature], cut)
        todo += [(int(tree.nodes["left"][at]), low, below), (int(tree.nodes["right"][at]), above, high)]
    return found


@pytest.mark.parametrize("rule", [ModuloFolds(3, "a"), HashFolds(3, ("a", "b"), 5), SplitFolds(3, "a")])
def test_identifiers_of_a_fold_are_in_it(rule):
    for fold in range(3):
        ids = draw_identifiers(rule, fold, 500, np.random.default_rng(1))
        assert set(rule.assign(Events({}, np.ones(500), ids))) == {fold}


def test_single_precision_cuts_decide_alike():
    rng = np.random.default_rng(1)
    cuts = np.concatenate(
        [rng.normal(size=500), 10.0 ** rng.uniform(-320, 300, 500), [0.0, -0.0, 1e39, -1e39, 3.4028235e38]]
    )
    singles = float32_at_least(cuts)
    with np.errstate(all="ignore"):
        near = [np.nextafter(singles, np.float32(-np.inf)), singles, np.nextafter(singles, np.float32(np.inf))]
    for x in (*near, np.full_like(singles, np.inf), np.full_like(singles, -np.inf)):
        assert np.array_equal(x.astype(np.float64) < cuts, x < singles)


def small_model(seed=3, n_trees=4, cut=None):
    """Trees with two features, one below the other, so that every node can be reached."""
    rng = np.random.default_rng(seed)
    trees = []
    for _ in range(n_trees):
        nodes = np.zeros(7, NODE)
        nodes["feature"] = 0, 1, 1, -1, -1, -1, -1
        nodes["left"], nodes["right"] = (1, 3, 5, -1, -1, -1, -1), (2, 4, 6, -1, -1, -1, -1)
        nodes["threshold"][:3], nodes["value"] = rng.normal(size=3), rng.normal(size=7)
        nodes["missing_left"], nodes["b"] = rng.random(7) < 0.5, 1.0
        nodes["threshold"][0] = nodes["threshold"][0] if cut is None else cut
        trees.append(Tree(nodes, 1.0))
    return Ensemble(("pt", "m"), tuple(trees))


@pytest.mark.parametrize("to", ["onnx", "xgboost", "cpp"])
@pytest.mark.parametrize("fault", ["cut", "leaf", "missing"])
def test_a_wrong_file_is_noticed_and_not_kept(tmp_path, monkeypatch, to, fault):
    """The check is worth something: one wrong cut, leaf or way for missing values anywhere is found."""
    model = small_model()

    def spoiled(ensemble):
        nodes = ensemble.trees[-1].nodes.copy()
        inner = np.flatnonzero(nodes["feature"] >= 0)[-1]
        if fault == "cut":
            nodes["threshold"][inner] += 1e-4
        elif fault == "leaf":
            nodes["value"][-1] += 0.01
        else:
            nodes["missing_left"][inner] ^= True
        return Ensemble(ensemble.features, (*ensemble.trees[:-1], Tree(nodes, ensemble.trees[-1].weight)))

    import qbdt.models.export.exporter as module

    writer = {"onnx": "write_onnx", "xgboost": "write_xgboost", "cpp": "header_text"}[to]
    plain = getattr(module, writer)
    monkeypatch.setattr(module, writer, lambda ensemble, *rest: plain(spoiled(ensemble), *rest))
    with pytest.raises(OutputError, match=f"the {to} file does not agree with the model"):
        export_model(model, tmp_path / f"m{FORMATS[to]}", to)
    assert list(tmp_path.iterdir()) == []


def test_cuts_rounded_to_the_nearest_single_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("qbdt.models.export.xgboost_json.float32_at_least", lambda cuts: cuts.astype(np.float32))
    with pytest.raises(OutputError, match="does not agree"):
        export_model(small_model(), tmp_path / "m.json", "xgboost")


def test_events_that_single_precision_moves_across_a_cut_are_counted(tmp_path):
    """The double just below 0.1 becomes the same single-precision number as 0.1 itself, which goes right."""
    model = small_model(n_trees=1, cut=0.1)
    events = Events({"pt": np.full(5, np.nextafter(0.1, 0)), "m": np.zeros(5)}, np.ones(5))
    done = export_model(model, tmp_path / "m.json", "xgboost", events=[("ttbar", events)])
    assert (done.checks[-1].what, done.checks[-1].rows) == ("ttbar", 5)
    assert "ttbar: 5 of 5 events take another way through the trees" in done.warnings
    assert export_model(model, tmp_path / "m.onnx", "onnx", events=[("ttbar", events)]).checks[-1].difference == 0


def test_xgboost_files_are_what_rbdt_reads(tmp_path):
    """ROOT's SaveXGBoost takes a regressor with this objective, no base score, and features named f0, f1."""
    import xgboost

    model = small_model()
    export_model(model, tmp_path / "m.json", "xgboost")
    regressor = xgboost.XGBRegressor()
    regressor.load_model(tmp_path / "m.json")
    assert regressor.objective == "reg:squarederror"
    assert json.loads(str(regressor.get_booster().attr("features"))) == ["pt", "m"]
    config = json.loads(regressor.get_booster().save_config())
    assert float(config["learner"]["learner_model_param"]["base_score"].strip("[]")) == 0
    assert "[f0<" in regressor.get_booster().get_dump()[0] or "[f1<" in regressor.get_booster().get_dump()[0]


def test_several_files_come_with_an_index(tmp_path):
    rng = np.random.default_rng(0)
    names = ("pt",)
    parts = tuple(ProfiledEnsemble(random_sum(rng, names), random_sum(rng, names), -1.0) for _ in range(2))
    model = FoldedEnsemble(parts, HashFolds(2, ("run", "event"), 4))
    done = export_model(model, tmp_path / "m.json", "xgboost")
    assert [path.name for path in done.files] == [
        "m.fold0.ratio.json",
        "m.fold0.shift.json",
        "m.fold1.ratio.json",
        "m.fold1.shift.json",
        "m.xgboost-index.json",
    ]
    index = json.loads((tmp_path / "m.xgboost-index.json").read_text())
    assert index["features"] == ["pt"]
    assert {**index["folds"], "rule": ""} == {**model.folds.to_dict(), "rule": ""}
    assert index["models"][1]["ratio"] == "m.fold1.ratio.json"
    assert index["models"][1]["log_odds"] == -1.0
    assert index["models"][1]["share"] == parts[1].share
    assert any("must still compute the score from two sums" in warning for warning in done.warnings)
    assert any("choose the model of an event's fold" in warning for warning in done.warnings)
    assert json.loads(json.dumps(done.to_dict()))["files"][-1].endswith("m.xgboost-index.json")


def test_onnx_refuses_a_fold_that_is_none(tmp_path):
    model = FoldedEnsemble((small_model(1), small_model(2)), SplitFolds(2, "part"))
    export_model(model, tmp_path / "m.onnx", "onnx")
    outputs = read_onnx(tmp_path / "m.onnx")
    for wrong in (-1, 2, 2**40):
        with pytest.raises(Exception, match=r"(?i)index|bounds|range"):
            outputs(np.zeros((1, 2)), {"part": np.array([wrong])})


def test_what_cannot_be_exported(tmp_path):
    model = small_model()
    with pytest.raises(ConfigError, match="to=pmml: there are: onnx, xgboost, tmva, cpp"):
        export_model(model, tmp_path / "m", "pmml")
    with pytest.raises(ConfigError, match=r"m.txt: xgboost reads files by the end of their names: it must be .json"):
        export_model(model, tmp_path / "m.txt", "xgboost")
    with pytest.raises(OutputError, match="there is no folder"):
        export_model(model, tmp_path / "no" / "m", "onnx")
    (tmp_path / "m.onnx").write_text("mine")
    with pytest.raises(OutputError, match="exists; force=True"):
        export_model(model, tmp_path / "m.onnx", "onnx", force=False)
    assert (tmp_path / "m.onnx").read_text() == "mine"
    far = random_tree(np.random.default_rng(0), 1, 2, np.array([1e300]))
    with pytest.raises(DataError, match=r"feature x is cut at 1e\+300: numbers of TMVA end at 3.4e\+38"):
        export_model(Ensemble(("x",), (far,)), tmp_path / "m.xml", "tmva")
    with pytest.raises(DataError, match="control characters"):
        export_model(Ensemble(("x\n",), ()), tmp_path / "m.xml", "tmva")
    deep = Ensemble(("x",), (make_chain(501),))
    with pytest.raises(DataError, match="501 cuts above a leaf: TMVA's files hold up to 500"):
        export_model(deep, tmp_path / "m.xml", "tmva")
    clash = FoldedEnsemble((model, model), ModuloFolds(2, "score"))
    with pytest.raises(DataError, match="a column named score"):
        export_model(clash, tmp_path / "c.onnx", "onnx")


def test_names_that_other_languages_give_a_meaning(tmp_path):
    """Quotes, backslashes, line ends and letters beyond ASCII in names come back as they are."""
    names = ('a"b\\', "m<τ>&", "x\n*/ #error??/", "double")
    trees = tuple(random_tree(np.random.default_rng(i), 4, 5, np.arange(5.0)) for i in range(3))
    export_model(Ensemble(names, trees), tmp_path / "2 odd-names.h", "cpp")
    assert namespace_of("2 odd-names") == "qbdt_2_odd_names"
    printable = Ensemble((*names[:2], "x", "double"), trees)
    export_model(printable, tmp_path / "m.xml", "tmva")
    variables = ET.parse(tmp_path / "m.xml").getroot().iter("Variable")
    assert [v.attrib["Expression"] for v in variables] == list(printable.features)


def test_deep_trees_are_exported(tmp_path):
    deep = Ensemble(tuple("abcdefgh"), (make_chain(400, 8),))
    for name, to in (("m.onnx", "onnx"), ("m.json", "xgboost"), ("m.xml", "tmva"), ("m.h", "cpp")):
        export_model(deep, tmp_path / name, to)
        assert (tmp_path / name).stat().st_size > 400


def test_walking_is_what_scores_are_compared_with():
    """The reference of all tests here is `score`; on the probe rows it is the walk from root to leaf."""
    model = small_model()
    values, _, score, _ = rows_of(model)
    total = np.zeros(len(values))
    for tree in model.trees:
        total += tree.outputs[[walk(tree, row) for row in values]]
    assert np.array_equal(total, score)
