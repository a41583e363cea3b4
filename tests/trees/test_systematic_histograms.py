"""Systematic histograms from rows, or from a parent and a sibling: the same sums, and no row read in vain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbdt.trees.growth import systematic_histograms
from qbdt.trees.growth.systematic_histograms import SystematicHistograms


class RowsOfNodes:
    """Nodes are sets of rows; the systematic histogram of a word is a sum over rows that depends on the word."""

    def __init__(self, n):
        self.rows = [np.arange(n)]
        self.read = []

    def size(self, node):
        return len(self.rows[node])

    def systematic_histograms(self, node, words):
        self.read.append((node, words.tolist()))
        return np.stack([self.expected(node, word) for word in words])

    def expected(self, node, word):
        return np.array([len(self.rows[node]), int((self.rows[node] ** (word + 1)).sum())])

    def split(self, node, n_left):
        self.rows += [self.rows[node][:n_left], self.rows[node][n_left:]]
        return len(self.rows) - 2, len(self.rows) - 1


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3), st.booleans()), max_size=25), st.booleans())
def test_histograms_are_those_of_the_rows(steps, forgetful):
    store = RowsOfNodes(40)
    tree = SystematicHistograms(store)
    leaves = [0]
    with pytest.MonkeyPatch.context() as patch:
        if forgetful:
            patch.setattr(systematic_histograms, "MOST_BYTES", 0)
        for at, word, divide in steps:
            node = leaves[at % len(leaves)]
            if divide and store.size(node) > 1:
                children = store.split(node, 1 + at % (store.size(node) - 1))
                tree.note_split(node, *children)
                leaves.remove(node)
                leaves += children
            else:
                asked = sorted({word, 0})
                for w, found in zip(asked, tree.of(node)(asked), strict=True):
                    assert np.array_equal(found, store.expected(node, w))


def test_of_two_children_the_smaller_is_read_and_nothing_twice():
    store = RowsOfNodes(100)
    tree = SystematicHistograms(store)
    tree.of(0)([1])
    left, right = store.split(0, 80)
    tree.note_split(0, left, right)
    for node in (left, right, left):
        tree.of(node)([1])
    assert store.read == [(0, [1]), (right, [1])]


def test_the_root_is_read_for_a_large_child():
    store = RowsOfNodes(100)
    tree = SystematicHistograms(store)
    left, right = store.split(0, 80)
    tree.note_split(0, left, right)
    tree.of(right)([2])
    assert store.read == [(right, [2])]
    tree.of(left)([3])
    assert store.read[1:] == [(0, [3]), (right, [3])]
