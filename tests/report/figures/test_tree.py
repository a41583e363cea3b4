"""The drawing of a tree."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt

from qbdt.arrays import NODE, pack_codes
from qbdt.data import Dataset
from qbdt.data.systematic import Systematic
from qbdt.report.figures.tree import draw_tree
from qbdt.report.labels import Labels
from qbdt.training.methods import train
from qbdt.training.settings import Settings
from qbdt.trees.tree import Tree

mpl.use("agg")


@pytest.fixture(scope="module")
def training():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = np.repeat([1, 0], 200)
    X[y == 1] += 1
    return train(
        Dataset.from_arrays(X, y, None, [Systematic.norm("n", 0.2)], ["$p_T", "m"]), Settings(method="paper", n_trees=1)
    )


def test_every_node_and_cut_is_written(training):
    tree = training.ensemble.trees[0]
    figure = draw_tree(tree, training.ensemble.features)
    figure.canvas.draw()  # a name with a dollar sign is no formula
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts[0] == "all events"
    assert {"s", "b", r"$\sigma_b$", "Q", "p"} <= set(texts)
    assert len(texts) == 5 + 6 * len(tree.nodes)
    assert sum(" < " in text for text in texts) == sum(" ≥ " in text for text in texts) == tree.n_leaves - 1
    plt.close(figure)


def test_units_stand_behind_the_numbers(training):
    labels = Labels(variables={"$p_T": "$p_T$ (GeV)"})
    figure = draw_tree(training.ensemble.trees[0], training.ensemble.features, labels=labels)
    cuts = [text.get_text() for text in figure.axes[0].texts if text.get_text().startswith("$p_T$")]
    assert cuts
    assert all(cut.endswith(" GeV") and "(" not in cut for cut in cuts)


def test_given_axes_are_used(training):
    figure, axes = plt.subplots()
    assert draw_tree(training.ensemble.trees[0], training.ensemble.features, axes) is figure
    plt.close(figure)


def test_sets_and_outputs_that_are_held_back_are_written():
    nodes = np.zeros(3, NODE)
    nodes["feature"], nodes["left"], nodes["right"] = (0, -1, -1), (1, -1, -1), (2, -1, -1)
    nodes["s"], nodes["b"], nodes["depth"], nodes["value"] = 1.0, 1.0, (0, 1, 1), (0.0, -0.5, 0.0)
    nodes["categories"][0] = pack_codes(range(2, 9))
    figure = draw_tree(Tree(nodes, 1.0, {0: np.arange(2010.0, 2019.0)}), ("year",))
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "year in {2012, 2013, 2014, 2015, …}" in texts
    assert "year in {2010, 2011}" in texts
    assert "held at" in texts
    assert texts.count("0.250") == 1
    plt.close(figure)
