"""Systematic histograms of a tree's nodes: the channels beyond nominal weights, for eight features (a word) at a time.

They are asked for only where the nominal histogram leaves a split open, and come from a node's rows, or from its
parent's histogram and its sibling's, whichever reads fewer rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from qbdt.arrays import Fixed, Indices
from qbdt.trees.rows import NodeHistograms

NodeSystematics: TypeAlias = Callable[[Sequence[int]], list[Fixed]]
"""Gives the systematic histograms of a node for some words: one flat array each."""

IN_ORDER = 0.3
"""Cost of reading a row of the root, whose rows lie in order, compared with a row of another node (measured)."""

MOST_BYTES = 1 << 28
"""Above this memory all known histograms are dropped: they can be summed over the rows again."""


class _Rows(Protocol):
    def systematic_histograms(self, node: int, words: Indices) -> Fixed: ...

    def size(self, node: int) -> int: ...


class SystematicHistograms:
    """Systematic histograms of the nodes of one tree, summed by a store of rows."""

    def __init__(self, store: _Rows) -> None:
        self._store = store
        self._histograms = NodeHistograms()

    def of(self, node: int) -> NodeSystematics:
        """Return the function that gives the systematic histograms of a node."""
        return partial(self._get, node)

    def note_split(self, node: int, left: int, right: int) -> None:
        """Take note of the children of a node."""
        self._histograms.note_split(node, left, right)

    def _get(self, node: int, words: Sequence[int]) -> list[Fixed]:
        if self._histograms.n_bytes > MOST_BYTES:
            self._histograms.clear()
        self._find(node, words)
        return [self._histograms.of(node, word) for word in words]

    def _find(self, node: int, words: Sequence[int]) -> None:
        """Make the histograms of a node known."""
        unknown = [word for word in words if not self._histograms.knows(node, word)]
        derived = [word for word in unknown if self._family_cost(node, word) <= self._own_cost(node)]
        family = self._histograms.family(node)
        if derived and family is not None:
            # Once the parent's histogram is known, summing the smaller child gives the larger one too.
            parent, sibling = family
            self._find(parent, derived)
            self._sum(min((node, sibling), key=self._store.size), derived)
        self._sum(node, [word for word in unknown if word not in derived])

    def _own_cost(self, node: int) -> float:
        """Rows that are read where a node is summed itself, in units of scattered rows."""
        return self._store.size(node) * (IN_ORDER if self._histograms.family(node) is None else 1.0)

    def _family_cost(self, node: int, word: int) -> float:
        """Rows that are read where the smaller of a node and its sibling is summed, and the parent's is needed."""
        family = self._histograms.family(node)
        if family is None:
            return math.inf
        parent, sibling = family
        known = self._histograms.knows(parent, word)
        above = 0.0 if known else min(self._own_cost(parent), self._family_cost(parent, word))
        return above + min(self._own_cost(node), self._own_cost(sibling))

    def _sum(self, node: int, words: Sequence[int]) -> None:
        if words:
            found = self._store.systematic_histograms(node, np.array(words, dtype=np.int64))
            for word, histogram in zip(words, found, strict=True):
                self._histograms.add(node, histogram, word)
