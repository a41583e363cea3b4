"""Best-first growth: of all open leaves, split the one whose best split gains most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import MISSING_LEFT, NODE, NONE_MISSING, Fixed, Floats, Nodes, pack_codes
from qbdt.trees.feature_rules import FREE, Limits
from qbdt.trees.growth_rules import Growth
from qbdt.trees.splits import Split, Yield
from qbdt.trees.systematic_histograms import Details, TreeDetails
from qbdt.trees.tree import cut_table, set_table

__all__ = ["Criterion", "Grown", "Store", "grow", "with_thresholds"]


class Store(Protocol):
    """Rows of a training, wherever they are kept. Nodes are numbered from 0, the root, in the order they are made."""

    def histogram(self, node: int) -> Fixed:
        """Integer sums of the main channels for every feature and bin."""

    def details(self, node: int, words: Fixed) -> Fixed:
        """Integer sums of all other channels for some words of eight features, one row each."""

    def size(self, node: int) -> int:
        """Number of rows in a node: of two children the smaller one is histogrammed."""

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node and number its children; `goes_right` is 1 for each code of the feature that goes right."""


class Criterion(Protocol):
    """Judges splits on histograms, and describes nodes."""

    def describe(self, sums: Fixed) -> Yield:
        """Yields and output of a node."""

    @property
    def has_details(self) -> bool:
        """Whether splits are judged on more than the main channels."""

    def promises(self, histogram: Fixed, sums: Fixed, q: float, features: Fixed) -> Floats:
        """Return for each feature what the gain of a node cannot pass, found without details."""

    def best_split(
        self,
        histogram: Fixed,
        details: Details,
        sums: Fixed,
        q: float,
        features: Fixed,
        promises: Floats | None = None,
        limits: Limits = FREE,
    ) -> Split:
        """Return the best split, with feature −1 where none is allowed.

        `promises` where they are known already; `limits` are those of the children's outputs.
        """


class Grown(NamedTuple):
    """A grown tree: its nodes (thresholds still bin codes), and the store's number of each leaf, in node order.

    Cuts are 0 for leaves and where categories divide.
    """

    nodes: Nodes
    cuts: Fixed
    leaves: tuple[int, ...]


@dataclass
class _Growing:
    """A node while its tree grows; `place` is its index in the tree, `node` its number in the store.

    `promise` is the gain of its split, or a number that the gain cannot pass while the split is not yet known;
    `promises` are such numbers for each feature.
    """

    place: int
    node: int
    depth: int
    sums: Fixed
    yields: Yield
    limits: Limits = FREE
    promise: float = -np.inf
    promises: Floats | None = field(default=None, repr=False)
    split: Split | None = None
    histogram: Fixed | None = field(default=None, repr=False)
    children: tuple[int, int] | None = None
    missing_left: bool = False


def grow(
    store: Store,
    criterion: Criterion,
    rule: Growth,
    root: Fixed,
    sums: Fixed,
    features: Fixed,
    max_depth: int,
    details: TreeDetails | None = None,
) -> Grown:
    """Grow one tree.

    Parameters
    ----------
    store, criterion, rule
        Rows, what a good split is, when to stop.
    root, sums
        Histogram of the root, whose memory is used up, and its quantities.
    features
        Features that may be cut on, in the order in which ties are decided.
    max_depth
        Most cuts above a leaf.
    details
        Details of the root that are known already.
    """
    known = TreeDetails(store) if details is None else details
    first = _Growing(0, 0, 0, sums, criterion.describe(sums))
    made = [first]
    waiting: list[_Growing] = []
    patient = rule.patient and criterion.has_details

    def judge(node: _Growing) -> bool:
        """Find a node's best split; return whether it stays a leaf."""
        assert node.histogram is not None
        given = (known.of(node.node), node.sums, node.yields.q, features, node.promises, node.limits)
        split = criterion.best_split(node.histogram, *given)
        node.split, node.promise = split, split.gain
        return split.feature < 0 or rule.closes(split.gain)

    def admit(node: _Growing, histogram: Fixed | None) -> None:
        node.histogram = histogram
        closed = histogram is None
        if histogram is not None and patient:
            node.promises = criterion.promises(histogram, node.sums, node.yields.q, features)
            node.promise = float(node.promises.max())
            closed = rule.closes(node.promise)
        elif histogram is not None:
            closed = judge(node)
        if closed:
            rule.note_closed()
        else:
            waiting.append(node)

    admit(first, root)
    while waiting:
        node = max(waiting, key=lambda one: (one.promise, -one.place))
        if (node.split is None and judge(node)) or rule.closes(node.promise):
            waiting.remove(node)
            rule.note_closed()
        elif node is max(waiting, key=lambda one: (one.promise, -one.place)):
            waiting.remove(node)
            children = _divide(store, criterion, node, len(made))
            made += children
            known.note_split(node.node, (children[0].node, children[1].node))
            rule.note_split()
            closed = [one.depth >= max_depth or rule.closes_early(one.yields.s, one.yields.q) for one in children]
            for child, histogram in zip(children, _histograms(store, node, children, closed), strict=True):
                admit(child, histogram)
    return _finished(made)


def _divide(store: Store, criterion: Criterion, node: _Growing, place: int) -> list[_Growing]:
    """Make the children of a node; missing values that training never saw will follow most of the background."""
    assert node.split is not None
    assert node.histogram is not None
    split = node.split
    sums = (split.left, node.sums - split.left)
    yields = [criterion.describe(one) for one in sums]
    if split.missing == NONE_MISSING:
        node.missing_left = yields[0].b > yields[1].b
    else:
        node.missing_left = split.missing == MISSING_LEFT
    table = cut_table(split.cut, node.missing_left)
    if split.codes is not None:
        table = set_table(split.codes, node.missing_left)
    numbers = store.split(node.node, split.feature, table)
    node.children = (place, place + 1)
    limits = node.limits.divided(yields[0].value, yields[1].value, split.direction)
    return [
        _Growing(place + i, numbers[i], node.depth + 1, sums[i], _within(limits[i], yields[i]), limits[i])
        for i in (0, 1)
    ]


def _within(limits: Limits, yields: Yield) -> Yield:
    return yields._replace(value=limits.clipped(yields.value))


def _histograms(
    store: Store, parent: _Growing, children: list[_Growing], closed: list[bool]
) -> tuple[Fixed | None, Fixed | None]:
    """Histograms of the children that need one: the smaller from its rows, the other by exact subtraction."""
    whole, parent.histogram = parent.histogram, None
    if all(closed):
        return None, None
    small = int(store.size(children[1].node) < store.size(children[0].node))
    part = store.histogram(children[small].node)
    assert whole is not None
    whole -= part
    found = (part, whole) if small == 0 else (whole, part)
    return None if closed[0] else found[0], None if closed[1] else found[1]


def _finished(made: list[_Growing]) -> Grown:
    nodes: Nodes = np.zeros(len(made), dtype=NODE)
    cuts = np.zeros(len(made), dtype=np.int64)
    for i, node in enumerate(made):
        split = node.split if node.children else None
        left, right = node.children or (-1, -1)
        feature, gain = (split.feature, split.gain) if split else (-1, 0.0)
        codes = () if split is None or split.codes is None else split.codes
        cuts[i] = split.cut if split and split.codes is None else 0
        values = (*node.yields[:4], gain, node.yields.value, pack_codes(codes))
        nodes[i] = (feature, 0.0, node.missing_left, left, right, node.depth, *values)
    return Grown(nodes, cuts, tuple(node.node for node in made if not node.children))


def with_thresholds(grown: Grown, edges: Sequence[Floats]) -> Nodes:
    """Return a grown tree's nodes with bin edges for bin codes; `edges` are those of every feature."""
    nodes: Nodes = grown.nodes.copy()
    for i in np.flatnonzero(grown.cuts):
        nodes["threshold"][i] = edges[nodes["feature"][i]][grown.cuts[i] - 1]
    return nodes
