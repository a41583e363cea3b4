"""The tree: a flat array of nodes and its weight in the sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.dtypes import NODE, Nodes, Yields
from qbdt.significance import purity

__all__ = ["Tree"]


@dataclass(frozen=True, eq=False)
class Tree:
    """One decision tree.

    Parameters
    ----------
    nodes
        Array of dtype `NODE`; node 0 is the root.
    weight
        Tree weight W: the sum of Q over the leaves, times the learning rate.

    Examples
    --------
    >>> nodes = np.zeros(3, NODE)
    >>> nodes["feature"] = 0, -1, -1
    >>> nodes["left"], nodes["right"] = (1, -1, -1), (2, -1, -1)
    >>> Tree(nodes, 1.0).n_leaves
    2
    """

    nodes: Nodes
    weight: float

    def __post_init__(self) -> None:
        nodes = np.array(self.nodes, dtype=NODE)
        nodes.flags.writeable = False
        object.__setattr__(self, "nodes", nodes)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return np.asarray(self.nodes["feature"] < 0)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.is_leaf.sum())

    @property
    def depth(self) -> int:
        """Largest number of cuts above a leaf."""
        return int(self.nodes["depth"].max())

    @property
    def purities(self) -> Yields:
        """Purity s/(s + b + σ_b²) of every node."""
        return np.atleast_1d(purity(self.nodes["s"], self.nodes["b"], self.nodes["sigma2"]))

    @property
    def outputs(self) -> Yields:
        """What each node adds to a row's score if it is the row's leaf."""
        return np.asarray(self.nodes["value"] * self.weight)

    def cuts(self, node: int, features: tuple[str, ...]) -> list[str]:
        """Cuts that lead to a node, from the root down, as a physicist writes them."""
        parent, chain = _parents(self.nodes), []
        while node > 0:
            above = parent[node]
            sign = "<" if self.nodes["left"][above] == node else ">"
            chain.append(f"{features[self.nodes['feature'][above]]}{sign}{self.nodes['threshold'][above]:.12g}")
            node = above
        return chain[::-1]

    def rows(self, features: tuple[str, ...], number: int) -> list[dict[str, Any]]:
        """One plain record per node: where it is, its cut, its yields and its output."""
        records = []
        for i, (node, p, output) in enumerate(zip(self.nodes, self.purities, self.outputs, strict=True)):
            leaf = bool(node["feature"] < 0)
            records.append(
                {
                    "tree": number,
                    "node": i,
                    "depth": int(node["depth"]),
                    "leaf": leaf,
                    "feature": None if leaf else features[node["feature"]],
                    "threshold": math.nan if leaf else float(node["threshold"]),
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
                    "cuts": " & ".join(self.cuts(i, features)),
                }
            )
        return records

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return self.weight == other.weight and self.nodes.tobytes() == other.nodes.tobytes()

    __hash__ = None  # type: ignore[assignment]


def _parents(nodes: Nodes) -> dict[int, int]:
    inner = np.flatnonzero(nodes["feature"] >= 0)
    return {int(nodes[side][i]): int(i) for i in inner for side in ("left", "right")}
