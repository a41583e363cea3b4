"""Scores from codes against walking the trees with the values themselves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbdt.arrays import NODE, pack_codes
from qbdt.data.events import Events
from qbdt.errors import DataError
from qbdt.trees.ensemble import Ensemble
from qbdt.trees.tree import Tree


def make_chain(depth, n_features=1):
    """Tree in which every cut has a leaf on its left: as deep as there are cuts."""
    nodes = np.zeros(2 * depth + 1, dtype=NODE)
    inner = np.arange(0, 2 * depth, 2)
    nodes[["feature", "left", "right"]] = (-1, -1, -1)
    nodes["feature"][inner], nodes["left"][inner], nodes["right"][inner] = inner // 2 % n_features, inner + 1, inner + 2
    nodes["threshold"], nodes["b"], nodes["value"] = np.arange(len(nodes)), 1.0, np.arange(len(nodes)) % 7
    nodes["depth"][1::2], nodes["depth"][::2] = np.arange(1, depth + 1), np.arange(depth + 1)
    return Tree(nodes, 1.0)


def random_tree(rng, n_features, n_leaves, thresholds, categories=None):
    """Make a tree; `categories` are values of categorical features, by number."""
    categories = categories or {}
    nodes = np.zeros(2 * n_leaves - 1, NODE)
    nodes["feature"], nodes["left"], nodes["right"] = -1, -1, -1
    nodes["b"] = 1.0
    leaves, made = [0], 1
    while made < len(nodes):
        node = leaves.pop(int(rng.integers(len(leaves))))
        nodes["feature"][node] = rng.integers(n_features)
        nodes["threshold"][node] = rng.choice(thresholds)
        values = categories.get(int(nodes["feature"][node]))
        if values is not None:
            size = rng.integers(1, len(values))
            nodes["categories"][node] = pack_codes(rng.choice(len(values), size, replace=False))
            nodes["threshold"][node] = 0.0
        nodes["missing_left"][node] = rng.random() < 0.5
        nodes["left"][node], nodes["right"][node] = made, made + 1
        leaves += [made, made + 1]
        made += 2
    nodes["value"] = rng.normal(size=len(nodes))
    return Tree(nodes, float(rng.random()), categories)


def goes_left(tree, node, x):
    """Whether one value goes left, said in plain words."""
    values = tree.categories.get(int(tree.nodes["feature"][node]))
    if values is None:
        return tree.nodes["missing_left"][node] if np.isnan(x) else x < tree.nodes["threshold"][node]
    if x not in values:
        return tree.nodes["missing_left"][node]
    code = int(np.flatnonzero(values == x)[0])
    return bool(int(tree.nodes["categories"][node][code // 64]) >> (code % 64) & 1)


def walk(tree, row):
    node = 0
    while tree.nodes["feature"][node] >= 0:
        left = goes_left(tree, node, row[tree.nodes["feature"][node]])
        node = int(tree.nodes["left" if left else "right"][node])
    return node


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([(2, 8), (2, 16), (9, 20)]), st.booleans())
def test_scores_by_category_equal_walking(seed, sizes, same):
    """Also where trees know different categories, as those of different trainings do."""
    rng = np.random.default_rng(seed)

    def some(i):
        values = np.arange(200.0) if i == 1 else np.array([0.0, 1.0, 10.0, 11.0, 2016.0])
        return values if same else np.sort(rng.choice(values, len(values) - 2, replace=False))

    fixed = {i: some(i) for i in (1, 3)}
    trees = tuple(
        random_tree(
            rng, 5, int(rng.integers(*sizes)), rng.normal(size=9), fixed if same else {i: some(i) for i in (1, 3)}
        )
        for _ in range(6)
    )
    table = np.round(rng.normal(size=(80, 5)), 1)
    table[:, 1], table[:, 3] = rng.integers(-2, 203, 80), rng.choice([0, 1, 10, 11, 2016, 5, 0.5, np.inf], 80)
    table[rng.random(table.shape) < 0.1] = np.nan
    names = tuple("abcde")
    events = Events(dict(zip(names, table.T, strict=True)), np.ones(80))
    ensemble = Ensemble(names, trees)
    leaves = np.array([[walk(tree, row) for tree in trees] for row in table])
    assert np.array_equal(ensemble.leaves(events, 1), leaves)
    stages = np.zeros((7, 80))
    for i, tree in enumerate(trees):
        stages[i + 1] = stages[i] + tree.outputs[leaves[:, i]]
        assert all(
            goes_left(tree, node, x) == left
            for node in np.flatnonzero(~tree.is_leaf)
            for x, left in zip(
                table[:, tree.nodes["feature"][node]],
                tree.goes_left(node, table[:, tree.nodes["feature"][node]]),
                strict=True,
            )
        )
    assert np.array_equal(ensemble.score(events, 1), stages[-1])
    assert np.array_equal(list(ensemble.staged_scores(events)), stages[1:])


def test_a_sum_without_trees_has_no_stages():
    assert list(Ensemble(("x",), ()).staged_scores(Events({"x": [1.0]}, [1.0]))) == []


def test_a_tree_says_which_categories_go_where():
    nodes = np.zeros(3, NODE)
    nodes["feature"], nodes["b"] = (0, -1, -1), 1.0
    nodes["left"], nodes["right"] = (1, -1, -1), (2, -1, -1)
    nodes["categories"][0] = pack_codes([0, 2])
    tree = Tree(nodes, 1.0, {0: np.array([2016.0, 2017.0, 2018.0])})
    assert tree.cuts(1, ("year",)) == ["year in {2016, 2018}"]
    assert tree.cuts(2, ("year",)) == ["year in {2017}"]
    record = tree.rows(("year",), 0)[0]
    assert record["left_categories"] == (2016, 2018)
    assert np.isnan(record["threshold"])
    assert tree != Tree(nodes, 1.0, {0: np.array([2016.0, 2017.0, 2019.0])})
    assert tree == Tree(nodes.copy(), 1.0, {0: np.array([2016.0, 2017.0, 2018.0])})


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 11), st.sampled_from([(2, 3), (8, 8), (2, 8), (2, 16), (9, 16), (9, 20)]))
def test_scores_equal_walking(seed, n_features, sizes):
    rng = np.random.default_rng(seed)
    thresholds = np.round(rng.normal(size=12), 1)
    trees = tuple(random_tree(rng, n_features, int(rng.integers(sizes[0], sizes[1] + 1)), thresholds) for _ in range(5))
    table = np.round(rng.normal(size=(60, n_features)), 1)
    table[rng.random(table.shape) < 0.1] = np.nan
    names = tuple(f"x{i}" for i in range(n_features))
    ensemble = Ensemble(names, trees)
    events = Events(dict(zip(names, table.T, strict=True)), np.ones(60))
    leaves = np.array([[walk(tree, row) for tree in trees] for row in table])
    assert np.array_equal(ensemble.leaves(events, 1), leaves)
    stages = np.zeros((6, 60))
    for i, tree in enumerate(trees):
        stages[i + 1] = stages[i] + tree.outputs[leaves[:, i]]
    assert np.array_equal(ensemble.score(events, 1), stages[-1])
    assert np.array_equal(list(ensemble.staged_scores(events)), stages[1:])


def test_scores_do_not_depend_on_threads_or_chunks():
    rng = np.random.default_rng(3)
    trees = tuple(random_tree(rng, 4, 7, rng.normal(size=50)) for _ in range(3))
    names = ("a", "b", "c", "d")
    events = Events(dict(zip(names, rng.normal(size=(4, 20_000)), strict=True)), np.ones(20_000))
    scores = [Ensemble(names, trees).score(events, n) for n in (1, 2, 4)]
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])
    assert np.array_equal(Ensemble(names, trees).score(events[5000:5100]), scores[0][5000:5100])


def test_more_thresholds_than_codes_are_refused():
    rng = np.random.default_rng(0)
    trees = tuple(random_tree(rng, 1, 8, np.linspace(0, 1, 5000)) for _ in range(60))
    with pytest.raises(DataError, match="feature x is cut at"):
        Ensemble(("x",), trees).score(Events({"x": [1.0]}, [1.0]))


def test_infinite_values_follow_the_comparison():
    nodes = np.zeros(3, NODE)
    nodes["feature"], nodes["left"], nodes["right"] = (0, -1, -1), (1, -1, -1), (2, -1, -1)
    nodes["value"] = 0.0, -1.0, 1.0
    ensemble = Ensemble(("x",), (Tree(nodes, 1.0),))
    scores = ensemble.score(Events({"x": [-np.inf, np.inf]}, np.ones(2)))
    assert scores.tolist() == [-1.0, 1.0]


def test_trees_without_a_cut():
    nodes = np.zeros(1, NODE)
    nodes["feature"], nodes["left"], nodes["right"], nodes["value"] = -1, -1, -1, 0.5
    ensemble = Ensemble(("x",), (Tree(nodes, 2.0), Tree(nodes, 1.0)))
    events = Events({"x": [1.0, np.nan]}, np.ones(2))
    assert ensemble.score(events).tolist() == [1.5, 1.5]
    assert ensemble.leaves(events).tolist() == [[0, 0], [0, 0]]


def test_a_deep_tree_becomes_a_table_in_no_time():
    pytest.importorskip("pandas")
    depth = 1500
    frame = Ensemble(("x",), (make_chain(depth),)).to_frame()
    assert frame["cuts"][4] == "x>0 & x>2"
    assert frame["cuts"].iloc[-1].count("&") == depth - 1
