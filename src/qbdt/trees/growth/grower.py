"""Best-first growth: of all open leaves, split the one whose best split gains most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import MISSING_LEFT, NODE, NONE_MISSING, Fixed, Floats, Indices, Nodes, pack_codes
from qbdt.trees.growth.feature_rules import FREE, Limits
from qbdt.trees.growth.growth_rules import Growth
from qbdt.trees.growth.splits import Criterion, NodeYields, Split
from qbdt.trees.growth.systematic_histograms import SystematicHistograms
from qbdt.trees.rows import NodeHistograms
from qbdt.trees.tree import cut_table, set_table


class RowStore(Protocol):
    """Owner of bin codes, weights and node membership of all rows while a tree grows, wherever they are.

    Nodes are numbered from 0, the root, in the order they are made.
    """

    def histogram(self, node: int) -> Fixed:
        """Integer sums of the nominal channels for every feature and bin."""

    def systematic_histograms(self, node: int, words: Indices) -> Fixed:
        """Integer sums of all other channels for some words of eight features, one row each."""

    def size(self, node: int) -> int:
        """Number of rows in a node."""

    def split(self, node: int, feature: int, goes_right: NDArray[np.uint8]) -> tuple[int, int]:
        """Divide a node and number its children; `goes_right` is 1 for each code of the feature that goes right."""


class Grown(NamedTuple):
    """A grown tree: its nodes (thresholds still bin codes), and the store's number of each leaf, in node order.

    Cuts are 0 for leaves and where categories divide.
    """

    nodes: Nodes
    cuts: Indices
    leaves: tuple[int, ...]

    def with_thresholds(self, edges: Sequence[Floats]) -> Nodes:
        """Return the nodes with bin edges for bin codes; `edges` are those of every feature."""
        nodes: Nodes = self.nodes.copy()
        cuts = zip(nodes["feature"].tolist(), self.cuts.tolist(), strict=True)
        nodes["threshold"] = [edges[feature][cut - 1] if cut else 0.0 for feature, cut in cuts]
        return nodes


@dataclass(eq=False)
class _Node:
    """A node while its tree grows; `place` is its index in the tree, `number` that in the store.

    `gain` is that of its best split, or an upper bound on it while the split is not yet known.
    """

    place: int
    number: int
    depth: int
    sums: Fixed
    yields: NodeYields
    limits: Limits = FREE
    gain: float = -np.inf
    upper_bounds: Floats | None = field(default=None, repr=False)
    split: Split | None = None
    children: tuple[int, int] | None = None
    missing_left: bool = False

    def rank(self) -> tuple[float, int]:
        """Sorting key: larger gains first, of equals the node that was made first."""
        return self.gain, -self.place


class TreeGrower:
    """Grows one tree, of rows (`store`), a judge of splits and a rule when to stop.

    `features` may be cut on, in the order in which ties are decided; `max_depth` are the most cuts above a leaf;
    `systematics` are systematic histograms of the root that are known already.
    """

    def __init__(
        self,
        store: RowStore,
        criterion: Criterion,
        rule: Growth,
        features: Indices,
        max_depth: int,
        systematics: SystematicHistograms | None = None,
    ) -> None:
        self._store, self._criterion, self._rule = store, criterion, rule
        self._features, self._max_depth = features, max_depth
        self._histograms = NodeHistograms()
        self._systematics = systematics or SystematicHistograms(store)
        # The exact gain of a node needs its systematic histograms. Until the node may be the next to be split, an upper
        # bound on the gain, found from the nominal histogram, takes its place.
        self._lazy = rule.lazy and criterion.has_systematics
        self._nodes: list[_Node] = []
        self._open: list[_Node] = []

    def grow(self, histogram: Fixed, sums: Fixed) -> Grown:
        """Grow the tree from the histogram of its root, whose memory is used up, and the root's quantities."""
        self._histograms.add(0, histogram)
        self._nodes = [_Node(0, 0, 0, sums, self._criterion.describe(sums))]
        self._admit(self._nodes[0])
        while self._open:
            # 1. Take the open node with the largest gain, or upper bound on it.
            node = max(self._open, key=_Node.rank)
            # 2. Only a bound was known: find the exact gain, which is smaller, and look again which node is first.
            if node.split is None:
                if self._judge(node):
                    self._close(node)
                continue
            # 3. The exact gain is the largest of all. The rule may have changed its mind: all leaves may be used up.
            if self._rule.closes(node.gain):
                self._close(node)
                continue
            # 4. Divide its rows.
            children = self._divide(node)
            final = [
                child.depth >= self._max_depth or self._rule.closes_early(child.yields.s, child.yields.q)
                for child in children
            ]
            # 5. Sum the smaller child over its rows; the larger child is the parent minus it.
            if all(final):
                self._histograms.drop(node.number)
            else:
                small = min(children, key=lambda child: self._store.size(child.number))
                self._histograms.add(small.number, self._store.histogram(small.number))
            # 6. Children that may be split wait for their turn.
            for child, is_final in zip(children, final, strict=True):
                if is_final:
                    self._close(child)
                else:
                    self._admit(child)
        return self._finish()

    def _admit(self, node: _Node) -> None:
        """Let a node wait for its turn, unless none of its splits gains enough."""
        self._open.append(node)
        if self._lazy:
            histogram = self._histograms.of(node.number)
            node.upper_bounds = self._criterion.upper_bounds(histogram, node.sums, node.yields.q, self._features)
            node.gain = float(node.upper_bounds.max())
            closes = self._rule.closes(node.gain)
        else:
            closes = self._judge(node)
        if closes:
            self._close(node)

    def _judge(self, node: _Node) -> bool:
        """Find a node's best split; return whether the node stays a leaf."""
        node.split = self._criterion.best_split(
            self._histograms.of(node.number),
            self._systematics.of(node.number),
            node.sums,
            node.yields.q,
            self._features,
            node.upper_bounds,
            node.limits,
        )
        node.gain = node.split.gain
        return node.split.feature < 0 or self._rule.closes(node.gain)

    def _close(self, node: _Node) -> None:
        """Let a node be a leaf."""
        if node in self._open:
            self._open.remove(node)
        self._histograms.drop(node.number)
        self._rule.note_closed()

    def _divide(self, node: _Node) -> list[_Node]:
        """Split a node: send its rows to two children, and describe these."""
        assert node.split is not None
        split = node.split
        self._open.remove(node)
        sums = (split.left, node.sums - split.left)
        yields = [self._criterion.describe(one) for one in sums]
        if split.missing == NONE_MISSING:
            # No value was missing in training; later ones follow most of the background.
            node.missing_left = yields[0].b > yields[1].b
        else:
            node.missing_left = split.missing == MISSING_LEFT
        if split.codes is None:
            goes_right = cut_table(split.cut, node.missing_left)
        else:
            goes_right = set_table(split.codes, node.missing_left)
        left, right = self._store.split(node.number, split.feature, goes_right)
        self._histograms.note_split(node.number, left, right)
        self._systematics.note_split(node.number, left, right)
        self._rule.note_split()
        # A monotonic constraint keeps the outputs of all nodes below on their side of a limit.
        limits = node.limits.split(yields[0].value, yields[1].value, split.direction)
        place = len(self._nodes)
        node.children = (place, place + 1)
        children = []
        for i, number in enumerate((left, right)):
            clipped = yields[i]._replace(value=limits[i].clip(yields[i].value))
            children.append(_Node(place + i, number, node.depth + 1, sums[i], clipped, limits[i]))
        self._nodes += children
        return children

    def _finish(self) -> Grown:
        nodes: Nodes = np.zeros(len(self._nodes), dtype=NODE)
        cuts = np.zeros(len(self._nodes), dtype=np.int64)
        for i, node in enumerate(self._nodes):
            split = node.split if node.children else None
            left, right = node.children or (-1, -1)
            feature, gain = (split.feature, split.gain) if split else (-1, 0.0)
            codes = () if split is None or split.codes is None else split.codes
            cuts[i] = split.cut if split and split.codes is None else 0
            values = (*node.yields[:4], gain, node.yields.value, pack_codes(codes))
            nodes[i] = (feature, 0.0, node.missing_left, left, right, node.depth, *values)
        return Grown(nodes, cuts, tuple(node.number for node in self._nodes if not node.children))
