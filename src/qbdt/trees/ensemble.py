"""A sum of trees, and scores from it.

Flows in: trees and the features they cut on. Flows out: scores, staged scores, and leaves of events. Values are turned
into codes among the thresholds that the trees really use; comparisons of codes decide exactly as comparisons of values.
A set of categories becomes one more column of codes, 1 for rows that go right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import BINS, FEATURES_PER_WORD, MISSING, Floats, Indices
from qbdt.data import Events
from qbdt.errors import DataError, require
from qbdt.threads import Workers
from qbdt.trees.binning import Binning, category_edges
from qbdt.trees.kernels.scoring import SMALL_LEAVES, find_leaves, score_small_trees, score_trees
from qbdt.trees.tree import Tree

CHUNK = 8192
"""Rows scored at a time: their codes stay in the second-level cache."""

MAX_THRESHOLDS = MISSING - 1

LEFTMOST = np.array([(reach & -reach).bit_length() - 1 for reach in range(1, 256)])
"""Leftmost leaf of each set of eight, from the set {0} on."""

EVERY = 2**SMALL_LEAVES - 1
"""Set of all leaves of a small tree, and of leaves that it does not have."""


class _Nodes(NamedTuple):
    """Arguments of `find_leaves` and `score_trees`."""

    features: NDArray[np.int32]
    cuts: NDArray[np.int32]
    lasts: NDArray[np.int32]
    lefts: NDArray[np.int32]
    rights: NDArray[np.int32]


class _SmallTrees(NamedTuple):
    """Arguments of `score_small_trees`."""

    first: Indices
    features: NDArray[np.int32]
    cuts: NDArray[np.uint8]
    spans: NDArray[np.uint8]
    masks: NDArray[np.uint8] | NDArray[np.uint16]
    tables: Floats


class PackedTrees(NamedTuple):
    """All trees of a sum as arrays, for kernels elsewhere: codes among `binning`, and a column for each of `sets`.

    Nodes of tree i start at roots[i]; a row goes right where cut ≤ code ≤ last; children are counted from the root.
    """

    binning: Binning
    n_columns: int
    sets: list[tuple[int, bytes]]
    roots: Indices
    features: NDArray[np.int32]
    cuts: NDArray[np.int32]
    lasts: NDArray[np.int32]
    lefts: NDArray[np.int32]
    rights: NDArray[np.int32]
    outputs: Floats


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees over named features; the score is Σ (2p − 1) W over trees.

    Examples
    --------
    >>> Ensemble(("pt",), ()).score(Events({"pt": [1.0, 2.0]}, np.ones(2)))
    array([0., 0.])
    """

    features: tuple[str, ...]
    trees: tuple[Tree, ...]

    parameters: ClassVar[tuple[str, ...]] = ()
    """No names of scores: there is one, for the signal strength."""

    strengths: ClassVar[tuple[str, ...]] = ()
    """No names of signals: there is one."""

    @property
    def weights(self) -> Floats:
        """Tree weights W."""
        return np.array([tree.weight for tree in self.trees])

    @property
    def folds(self) -> None:
        """No fold rule: one model scores all events."""

    @property
    def members(self) -> tuple[Ensemble, ...]:
        """The model itself: there are no folds."""
        return (self,)

    @property
    def components(self) -> dict[str, Ensemble]:
        """Sums of trees that make the score: this one."""
        return {"score": self}

    @property
    def constants(self) -> dict[str, float]:
        """None: the score is the sum itself."""
        return {}

    def combine(self, sums: Mapping[str, Floats]) -> Floats:
        """Score from the value of the sum of trees."""
        return sums["score"]

    def bound_error(self, errors: Mapping[str, float]) -> float:
        """Upper bound on the error of a score, from that of the sum."""
        return errors["score"]

    def classify(self, sums: Mapping[str, Floats]) -> Floats:
        """Probabilities of background and signal for equal yields: exp(score) estimates their weights' ratio."""
        signal = 0.5 * (1.0 + np.tanh(0.5 * sums["score"]))
        return np.stack([1.0 - signal, signal], axis=1)

    def probabilities(self, events: Events, n_threads: int | None = None) -> Floats:
        """Probabilities of background and signal of every event."""
        return self.classify({"score": self.score(events, n_threads)})

    def average(self, events: Events, n_threads: int | None = None) -> Floats:
        """The score: there is one model to average."""
        return self.score(events, n_threads)

    def score(self, events: Events, n_threads: int | None = None) -> Floats:
        """Score of every event."""
        scores = np.zeros(events.n_rows)

        def score_chunk(codes: NDArray[np.uint8], begin: int, end: int) -> None:
            self._add(codes, 0, len(self.trees), scores[begin:end])

        self._for_chunks(events, score_chunk, n_threads)
        return scores

    def staged_scores(self, events: Events, n_threads: int | None = None) -> Iterator[Floats]:
        """Scores after the first tree, after the second, and so on; none where there are no trees."""
        if not self.trees:
            return
        codes = self._all_codes(events, n_threads)
        scores = np.zeros(events.n_rows)
        for i in range(len(self.trees)):
            self._add(codes, i, i + 1, scores)
            yield scores.copy()

    def leaves(self, events: Events, n_threads: int | None = None) -> NDArray[np.int32]:
        """Index, in each tree's array of nodes, of the leaf that each event falls into, as (event, tree)."""
        out = np.zeros((events.n_rows, len(self.trees)), dtype=np.int32)

        def find_chunk(codes: NDArray[np.uint8], begin: int, end: int) -> None:
            place = np.empty(end - begin, dtype=np.int32)
            for i, root in enumerate(self._roots):
                find_leaves(codes, root, *self._nodes, place)
                out[begin:end, i] = place

        self._for_chunks(events, find_chunk, n_threads)
        return out

    def gains(self) -> Floats:
        """ΔQ of all splits on each feature, each times the weight of its tree."""
        total = np.zeros(len(self.features))
        for tree in self.trees:
            inner = ~tree.is_leaf
            np.add.at(total, tree.nodes["feature"][inner], tree.nodes["gain"][inner] * tree.weight)
        return total

    def to_frame(self) -> Any:
        """Return all nodes as a pandas table: one row per node, with its cuts, yields and output."""
        pandas = require("pandas", "to_frame")
        rows = [row for i, tree in enumerate(self.trees) for row in tree.rows(self.features, i)]
        return pandas.DataFrame(rows)

    def _for_chunks(
        self, events: Events, work: Callable[[NDArray[np.uint8], int, int], None], n_threads: int | None
    ) -> None:
        def chunk(begin: int, end: int) -> None:
            work(self._codes(events, begin, end), begin, end)

        if self.trees:
            with Workers(n_threads) as workers:
                workers.run(chunk, [(i, min(i + CHUNK, events.n_rows)) for i in range(0, events.n_rows, CHUNK)])

    def _all_codes(self, events: Events, n_threads: int | None) -> NDArray[np.uint8]:
        codes = np.empty((self._n_columns + len(self._sets), events.n_rows), dtype=np.uint8)

        def keep(chunk: NDArray[np.uint8], begin: int, end: int) -> None:
            codes[:, begin:end] = chunk

        self._for_chunks(events, keep, n_threads)
        return codes

    def _codes(self, events: Events, begin: int, end: int) -> NDArray[np.uint8]:
        """Codes of some rows as (feature, row)."""
        binning = self._binning
        codes = np.zeros((self._n_columns + len(self._sets), end - begin), dtype=np.uint8)
        if not binning.features:  # trees without any cut
            return codes
        own = codes[: self._n_columns].reshape(-1, FEATURES_PER_WORD, end - begin).transpose(0, 2, 1)
        binning.encode_rows(events, begin, end, own, 0)
        for place, (feature, table) in enumerate(self._sets, self._n_columns):
            codes[place] = np.frombuffer(table, dtype=np.uint8)[codes[feature]]
        return codes

    def _add(self, codes: NDArray[np.uint8], first: int, last: int, scores: Floats) -> None:
        """Add the outputs of trees first … last − 1."""
        small = self._small
        if small is None:
            score_trees(codes, self._roots[first:last], *self._nodes, self._outputs, scores)
        else:
            score_small_trees(codes, small.first[first : last + 1], *small[1:5], small.tables[first:last], scores)

    @cached_property
    def _binning(self) -> Binning:
        """Features that are cut on, with the thresholds in use as edges, or all categories that a tree knows."""
        features, thresholds = (
            np.concatenate([tree.nodes[name] for tree in self.trees]) for name in ("feature", "threshold")
        )
        used = [int(i) for i in np.unique(features) if i >= 0]
        edges, categories = [], {}
        for i in used:
            known = [tree.categories[i] for tree in self.trees if i in tree.categories]
            if known:
                values = np.unique(np.concatenate(known))
                categories[self.features[i]] = values
                edges.append(category_edges(values))
            else:
                edges.append(np.unique(thresholds[features == i]))
            if edges[-1].size > MAX_THRESHOLDS:
                name, found = self.features[i], edges[-1].size
                raise DataError(f"feature {name} is cut at {found} places: at most {MAX_THRESHOLDS} can be scored")
        return Binning(tuple(self.features[i] for i in used), tuple(edges), categories)

    @property
    def packed(self) -> PackedTrees:
        """All trees as arrays; there must be one."""
        return PackedTrees(self._binning, self._n_columns, self._sets, self._roots, *self._nodes, self._outputs)

    @cached_property
    def _n_columns(self) -> int:
        """Columns of codes, before those that stand for sets of categories."""
        return -(-len(self._binning.features) // FEATURES_PER_WORD) * FEATURES_PER_WORD

    @cached_property
    def _sets(self) -> list[tuple[int, bytes]]:
        """Sets of categories in use, each once: the column of their feature, and for each code whether it goes right.

        A set becomes a column of its own, 1 where a row goes right, which kernels read like any other.
        """
        found = {self._set_of(tree, int(i)): None for tree in self.trees for i in np.flatnonzero(tree.is_set)}
        return list(found)

    def _set_of(self, tree: Tree, node: int) -> tuple[int, bytes]:
        name = self.features[tree.nodes["feature"][node]]
        values = self._binning.categories[name]
        table = np.full(BINS, not tree.nodes["missing_left"][node], dtype=np.uint8)
        table[np.searchsorted(values, tree.left_categories(node))] = 0
        table[np.searchsorted(values, tree.right_categories(node))] = 1
        return self._binning.features.index(name), table.tobytes()

    @cached_property
    def _roots(self) -> Indices:
        sizes = [len(tree.nodes) for tree in self.trees]
        return np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)

    @cached_property
    def _nodes(self) -> _Nodes:
        """All trees' nodes in a row: feature (among those used), cut, last code that goes right, children."""
        nodes = np.concatenate([tree.nodes for tree in self.trees])
        features = np.full(len(nodes), -1, dtype=np.int32)
        cuts = np.ones(len(nodes), dtype=np.int32)
        lasts = np.where(nodes["missing_left"], MISSING - 1, MISSING).astype(np.int32)
        for slot, (name, edges) in enumerate(zip(self._binning.features, self._binning.edges, strict=True)):
            own = nodes["feature"] == self.features.index(name)
            features[own] = slot
            cuts[own] += np.searchsorted(edges, nodes["threshold"][own]).astype(np.int32)
        slot_of_set = {one: i for i, one in enumerate(self._sets, self._n_columns)}
        for tree, root in zip(self.trees, self._roots, strict=True):
            for node in np.flatnonzero(tree.is_set).tolist():
                at = int(root) + node
                features[at], cuts[at], lasts[at] = slot_of_set[self._set_of(tree, node)], 1, MISSING
        return _Nodes(features, cuts, lasts, nodes["left"].astype(np.int32), nodes["right"].astype(np.int32))

    @cached_property
    def _outputs(self) -> Floats:
        return np.concatenate([tree.outputs for tree in self.trees])

    @cached_property
    def _small(self) -> _SmallTrees | None:
        """Trees as sets of reachable leaves, where all are small enough."""
        most = max(tree.n_leaves for tree in self.trees)
        if most > SMALL_LEAVES:
            return None
        features, cuts, lasts, _, _ = self._nodes
        eights = 1 if most <= 8 else 2
        order: list[int] = []
        masks: list[int] = []
        sizes = []
        tables = np.zeros((len(self.trees), eights, 256))
        for i, (tree, root) in enumerate(zip(self.trees, self._roots, strict=True)):
            leaves, splits = _reachable(tree)
            order += [int(root) + node for node, _ in splits]
            masks += [mask for _, mask in splits]
            sizes.append(len(splits))
            outputs = tree.outputs[leaves]
            for eight in range(eights):
                tables[i, eight, 1:] = outputs[np.minimum(8 * eight + LEFTMOST, len(outputs) - 1)]
        at, wide = np.array(order, dtype=np.int64), np.array(masks, dtype=np.uint16)
        return _SmallTrees(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            features[at],
            cuts[at].astype(np.uint8),
            (lasts[at] - cuts[at]).astype(np.uint8),
            wide.astype(np.uint8) if eights == 1 else wide,
            tables.reshape(len(self.trees), -1),
        )


def _reachable(tree: Tree) -> tuple[list[int], list[tuple[int, int]]]:
    """Leaves from left to right, and for each inner node which of them (as bits) a row that goes right can reach."""
    leaves: list[int] = []
    splits: list[tuple[int, int]] = []
    feature, left, right = (tree.nodes[name].tolist() for name in ("feature", "left", "right"))

    def visit(node: int) -> None:
        if feature[node] < 0:
            leaves.append(node)
            return
        begin = len(leaves)
        visit(left[node])
        lost = (1 << len(leaves)) - (1 << begin)
        splits.append((node, EVERY & ~lost))
        visit(right[node])

    visit(0)
    return leaves, splits
