"""The tree: a flat array of nodes and its weight in the sum.

A node divides rows by a cut on a feature, or by the category of a categorical one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import BINS, MISSING, NODE, Floats, Nodes, unpack_codes
from qbdt.statistics import purity


def cut_table(cut: int, missing_left: bool) -> NDArray[np.uint8]:
    """For each bin code, 1 where a cut sends it right: codes from `cut` on; missing values as told."""
    table = (np.arange(BINS) >= cut).astype(np.uint8)
    table[MISSING] = not missing_left
    return table


def set_table(left: ArrayLike, missing_left: bool) -> NDArray[np.uint8]:
    """For each bin code, 1 where a set of codes that go left sends it right; missing values as told."""
    table = np.ones(BINS, dtype=np.uint8)
    table[np.asarray(left, dtype=np.intp)] = 0
    table[MISSING] = not missing_left
    return table


@dataclass(frozen=True, eq=False)
class Tree:
    """One decision tree.

    Examples
    --------
    >>> nodes = np.zeros(3, NODE)
    >>> nodes["feature"] = 0, -1, -1
    >>> nodes["left"], nodes["right"] = (1, -1, -1), (2, -1, -1)
    >>> Tree(nodes, 1.0).n_leaves
    2
    """

    nodes: Nodes  # Array of dtype `NODE`; node 0 is the root
    weight: float  # Tree weight W: the sum of Q over the leaves, times the learning rate
    # For each categorical feature, by number, its values in training, increasing: one bit of a node for each. A value
    # that is none of them goes where missing values go.
    categories: Mapping[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = np.array(self.nodes, dtype=NODE)
        nodes.flags.writeable = False
        object.__setattr__(self, "nodes", nodes)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return np.asarray(self.nodes["feature"] < 0)

    @cached_property
    def is_set(self) -> NDArray[np.bool_]:
        """Which nodes divide rows by category."""
        return np.asarray(self.nodes["categories"].any(axis=1))

    def left_categories(self, node: int) -> Floats:
        """Categories that go left at a node that divides by category."""
        values = self.categories[int(self.nodes["feature"][node])]
        return np.asarray(values[unpack_codes(self.nodes["categories"][node])])

    def right_categories(self, node: int) -> Floats:
        """Categories that go right at a node that divides by category."""
        values = self.categories[int(self.nodes["feature"][node])]
        return np.delete(values, unpack_codes(self.nodes["categories"][node]))

    def members(self, node: int) -> tuple[Floats, bool]:
        """Categories that do not go where missing values go, and whether they go left: all other values do not."""
        if self.nodes["missing_left"][node]:
            return self.right_categories(node), False
        return self.left_categories(node), True

    def goes_left(self, node: int, values: Floats) -> NDArray[np.bool_]:
        """Whether values of the feature that a node divides by go left."""
        if self.is_set[node]:
            members, are_left = self.members(node)
            return np.asarray(np.isin(values, members) == are_left)
        below = values < self.nodes["threshold"][node]
        return np.asarray(np.where(np.isnan(values), self.nodes["missing_left"][node], below))

    def codes_right(self, node: int, edges: Floats) -> NDArray[np.uint8]:
        """For each bin code of the node's feature, which has these edges, 1 where it goes right."""
        missing_left = bool(self.nodes["missing_left"][node])
        if self.is_set[node]:
            return set_table(unpack_codes(self.nodes["categories"][node]), missing_left)
        return cut_table(int(np.searchsorted(edges, self.nodes["threshold"][node])) + 1, missing_left)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.is_leaf.sum())

    @property
    def depth(self) -> int:
        """Largest number of cuts above a leaf."""
        return int(self.nodes["depth"].max())

    @property
    def purities(self) -> Floats:
        """Purity s/(s + b + σ_b²) of every node; 1 without background, as in small leaves of the profiled method."""
        b = self.nodes["b"]
        found = purity(self.nodes["s"], np.where(b > 0, b, 1.0), self.nodes["sigma2"])
        return np.where(b > 0, found, (self.nodes["s"] > 0).astype(np.float64))

    @property
    def outputs(self) -> Floats:
        """Contribution (2p − 1) W of each node to the score of a row whose leaf it is."""
        return np.asarray(self.nodes["value"] * self.weight)

    def cuts(self, node: int, features: tuple[str, ...]) -> list[str]:
        """Cuts that lead to a node, from the root down, as a physicist writes them."""
        chain = []
        while node > 0:
            above = self._parents[node]
            chain.append(self.condition(above, features, left=bool(self.nodes["left"][above] == node)))
            node = above
        return chain[::-1]

    def condition(self, node: int, features: tuple[str, ...], *, left: bool) -> str:
        """Condition on the rows that go left, or right, at a node: `pt<40`, `year in {2016, 2018}`."""
        name = features[self.nodes["feature"][node]]
        if self.is_set[node]:
            values = self.left_categories(node) if left else self.right_categories(node)
            return f"{name} in {{{', '.join(f'{value:.0f}' for value in values)}}}"
        return f"{name}{'<' if left else '>'}{self.nodes['threshold'][node]:.12g}"

    def rows(self, features: tuple[str, ...], number: int) -> list[dict[str, Any]]:
        """One plain record per node: where it is, its cut, its yields and its output."""
        records: list[dict[str, Any]] = []
        by_set = self.is_set
        for i, (node, p, output) in enumerate(zip(self.nodes, self.purities, self.outputs, strict=True)):
            leaf = bool(node["feature"] < 0)
            records.append(
                {
                    "tree": number,
                    "node": i,
                    "depth": int(node["depth"]),
                    "leaf": leaf,
                    "feature": None if leaf else features[node["feature"]],
                    "threshold": math.nan if leaf or by_set[i] else float(node["threshold"]),
                    "left_categories": tuple(self.left_categories(i).astype(int).tolist()) if by_set[i] else None,
                    "missing": None if leaf else ("left" if node["missing_left"] else "right"),
                    "left": int(node["left"]),
                    "right": int(node["right"]),
                    "s": float(node["s"]),
                    "b": float(node["b"]),
                    "sigma_b": math.sqrt(node["sigma2"]),
                    "q": float(node["q"]),
                    "gain": float(node["gain"]),
                    "purity": float(p),
                    "output": float(output),
                    "cuts": self._add_cut(i, features, records),
                }
            )
        return records

    def _add_cut(self, node: int, features: tuple[str, ...], records: list[dict[str, Any]]) -> str:
        """Cuts that lead to a node, from those of the node above it, whose record is there already."""
        if node == 0:
            return ""
        above = self._parents[node]
        cut = self.condition(above, features, left=bool(self.nodes["left"][above] == node))
        return f"{records[above]['cuts']} & {cut}" if above else cut

    @cached_property
    def _parents(self) -> dict[int, int]:
        """Node above each node but the root."""
        inner = np.flatnonzero(~self.is_leaf)
        return {int(self.nodes[side][i]): int(i) for i in inner for side in ("left", "right")}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        same = self.weight == other.weight and self.nodes.tobytes() == other.nodes.tobytes()
        return same and self._plain_categories() == other._plain_categories()

    def _plain_categories(self) -> dict[int, list[float]]:
        return {feature: values.tolist() for feature, values in self.categories.items()}

    __hash__ = None  # type: ignore[assignment]
