"""Details of a tree's nodes, from their rows or as a parent's minus the sibling's, whichever reads fewer rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from qbdt.arrays import Fixed

__all__ = ["Details", "DetailsSource", "TreeDetails"]

Details: TypeAlias = Callable[[Sequence[int]], list[Fixed]]
"""Gives the details of a node for some words of eight features: one flat array for each."""

IN_ORDER = 0.3
"""What reading a row in order costs, compared with one of scattered rows (measured)."""

KEPT_BYTES = 1 << 28
"""When more than this is kept, all of it is dropped: it can be had again from the rows."""


class DetailsSource(Protocol):
    """The part of a store that knows details."""

    def details(self, node: int, words: Fixed) -> Fixed:
        """Integer sums of all channels but the main ones for some words of eight features, one row each."""

    def size(self, node: int) -> int:
        """Number of rows in a node."""


class TreeDetails:
    """Details of the nodes of one tree.

    Parameters
    ----------
    store
        Where they are summed.
    """

    def __init__(self, store: DetailsSource) -> None:
        self._store = store
        self._known: dict[tuple[int, int], Fixed] = {}
        self._origin: dict[int, tuple[int, int]] = {}

    def of(self, node: int) -> Details:
        """Return the function that gives the details of a node."""
        return partial(self._get, node)

    def note_split(self, node: int, children: tuple[int, int]) -> None:
        """Take note that a node was divided."""
        left, right = children
        self._origin |= {left: (node, right), right: (node, left)}

    def _get(self, node: int, words: Sequence[int]) -> list[Fixed]:
        if sum(part.nbytes for part in self._known.values()) > KEPT_BYTES:
            self._known.clear()
        self._find(node, words)
        return [self._known[node, word] for word in words]

    def _find(self, node: int, words: Sequence[int]) -> None:
        wanted = [word for word in words if (node, word) not in self._known]
        shared = [word for word in wanted if self._shared_cost(node, word) <= self._own_cost(node)]
        if shared:
            parent, sibling = self._origin[node]
            self._find(parent, shared)
            small, large = sorted((node, sibling), key=self._store.size)
            self._ask(small, shared)
            for word in shared:
                rest = self._known.pop((parent, word))
                rest -= self._known[small, word]
                self._known[large, word] = rest
        self._ask(node, [word for word in wanted if word not in shared])

    def _own_cost(self, node: int) -> float:
        """Rows of a node to be read; those of the root lie in order."""
        return self._store.size(node) * (1.0 if node in self._origin else IN_ORDER)

    def _shared_cost(self, node: int, word: int) -> float:
        """Rows to be read where a node's details are its parent's minus its sibling's."""
        if node not in self._origin:
            return math.inf
        parent, sibling = self._origin[node]
        known = (parent, word) in self._known
        above = 0.0 if known else min(self._own_cost(parent), self._shared_cost(parent, word))
        return above + min(self._own_cost(node), self._own_cost(sibling))

    def _ask(self, node: int, words: Sequence[int]) -> None:
        if words:
            found = self._store.details(node, np.array(words, dtype=np.int64))
            self._known |= {(node, word): part for word, part in zip(words, found, strict=True)}
