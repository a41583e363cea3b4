"""When a tree stops, and best-first growth on a store made by hand."""

import numpy as np

from qbdt.trees.growth.feature_rules import FREE
from qbdt.trees.growth.grower import TreeGrower
from qbdt.trees.growth.growth_rules import LeafGrowth, PublishedGrowth
from qbdt.trees.growth.splits import NodeYields, Split


def test_leaf_growth_counts_leaves():
    rule = LeafGrowth(3)
    assert not rule.closes(0.1)
    assert rule.closes(0.0)
    rule.note_split()
    rule.note_closed()
    assert not rule.closes_early(0.5, 0.5)
    rule.note_split()
    assert rule.closes_early(0.5, 0.5)
    assert rule.closes(0.1)


def test_published_growth_counts_nodes():
    rule = PublishedGrowth(7)
    for _ in range(5):
        rule.note_split()
    assert not rule.closes(0.0)  # the counter is 10: the limit is passed above it
    rule.note_closed()
    assert rule.closes(1.0)
    assert rule.closes_early(1.0, 1.0)
    assert PublishedGrowth(7).closes_early(0.0, 0.0)
    assert PublishedGrowth(7).closes(-1e-3)


class LineStore:
    """Rows 0 … 15 with one feature, their number; a histogram is just the list of rows."""

    def __init__(self):
        self.rows = [np.arange(16)]
        self.asked = []

    def histogram(self, node):
        self.asked.append(node)
        return np.bincount(self.rows[node], minlength=16)

    def systematic_histograms(self, node, words):
        raise AssertionError("nobody needs them here")

    def size(self, node):
        return len(self.rows[node])

    def split(self, node, feature, goes_right):
        rows = self.rows[node]
        right = goes_right[rows] == 1
        self.rows += [rows[~right], rows[right]]
        return len(self.rows) - 2, len(self.rows) - 1


PLAN = {(0, 16): (5.0, 12), (0, 12): (1.0, 4), (12, 16): (3.0, 14), (4, 12): (9.0, 8)}


class MiddleCriterion:
    """Cuts a node of rows a … b in a given place; the gain is a given number."""

    def __init__(self, has_systematics=False):
        self.has_systematics = has_systematics
        self.judged = []

    def upper_bounds(self, histogram, sums, q, features):
        rows = np.flatnonzero(histogram)
        return np.array([PLAN.get((int(rows[0]), int(rows[-1]) + 1), (-1.0, 0))[0] + 0.5])

    def describe(self, sums):
        return NodeYields(float(sums.sum()), 1.0, 0.0, 1.0, 0.0)

    def best_split(self, histogram, systematics, sums, q, features, upper_bounds=None, limits=FREE):
        rows = np.flatnonzero(histogram)
        self.judged.append(int(rows[0]))
        gain, cut = PLAN.get((int(rows[0]), int(rows[-1]) + 1), (-1.0, 0))
        return Split(gain, 0 if cut else -1, cut, 2, np.where(np.arange(16) < cut, histogram, 0))


def test_the_leaf_that_gains_most_is_split_first():
    store, criterion = LineStore(), MiddleCriterion()
    root = store.histogram(0)
    grown = TreeGrower(store, criterion, LeafGrowth(4), np.array([0]), 10).grow(root, root.copy())
    inner = grown.nodes["feature"] >= 0
    assert grown.cuts[inner].tolist() == [12, 4, 14]  # node order; 14 was cut before 4
    assert grown.nodes["left"][inner].tolist() == [1, 5, 3]
    assert sorted(tuple(store.rows[leaf]) for leaf in grown.leaves) == [
        tuple(range(4)),
        tuple(range(4, 12)),
        (12, 13),
        (14, 15),
    ]
    assert store.asked == [0, 2, 3]  # the smaller child each time, and none for the children of the last split


def test_depth_closes_nodes():
    store, criterion = LineStore(), MiddleCriterion()
    root = store.histogram(0)
    grown = TreeGrower(store, criterion, LeafGrowth(10), np.array([0]), 1).grow(root, root.copy())
    assert grown.nodes["depth"].tolist() == [0, 1, 1]


def test_nodes_are_judged_only_when_their_turn_may_come():
    stores = LineStore(), LineStore()
    criteria = MiddleCriterion(), MiddleCriterion(has_systematics=True)
    for leaves in (3, 4, 5):
        grown = []
        for store, criterion in zip(stores, criteria, strict=True):
            store.rows, criterion.judged = store.rows[:1], []
            root = store.histogram(0)
            grown.append(TreeGrower(store, criterion, LeafGrowth(leaves), np.array([0]), 10).grow(root, root.copy()))
        assert np.array_equal(grown[0].nodes, grown[1].nodes)
        assert grown[0].leaves == grown[1].leaves
    assert len(criteria[1].judged) < len(criteria[0].judged)
