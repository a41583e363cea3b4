"""Trees as plain data, and back with every node checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.dtypes import NODE, Nodes, Yields
from qbdt.errors import ModelFileError
from qbdt.model_io.checks import get, number
from qbdt.tree import Tree

__all__ = ["source_values_of", "tree_from_dict", "tree_to_dict"]

YIELDS = ("s", "b", "sigma2", "q", "gain", "value")
SOURCES = "source_values"


def tree_to_dict(tree: Tree, features: Sequence[str], source_values: Yields | None = None) -> dict[str, Any]:
    """Return a tree as plain data, one record per node; with what each node adds to each source where there are any."""
    nodes = [_node_to_dict(node, features) for node in tree.nodes]
    if source_values is not None:
        for node, values in zip(nodes, source_values, strict=True):
            node[SOURCES] = values.tolist()
    return {"weight": tree.weight, "nodes": nodes}


def tree_from_dict(content: Any, features: tuple[str, ...], what: str) -> Tree:
    """Make a tree; refused where a walk from the root could leave it, loop, or miss a node."""
    if not isinstance(content, dict):
        raise ModelFileError(f"{what} is not a tree")
    entries = get(content, "nodes", list)
    nodes: Nodes = np.zeros(len(entries), dtype=NODE)
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise ModelFileError(f"{what}, node {i} is not a node")
        try:
            nodes[i] = _node(entry, features, f"{what}, node {i}")
        except OverflowError:
            raise ModelFileError(f"{what}, node {i}: a whole number that no tree can hold") from None
    inner = np.flatnonzero(nodes["feature"] >= 0)
    children = np.concatenate([nodes["left"][inner], nodes["right"][inner]])
    after = np.all(nodes["left"][inner] > inner) and np.all(nodes["right"][inner] > inner)
    if not len(nodes) or not after or not np.array_equal(np.sort(children), np.arange(1, len(nodes))):
        raise ModelFileError(f"{what}: its nodes do not form a tree")
    return Tree(nodes, number(content.get("weight"), f"{what}, weight"))


def source_values_of(content: Mapping[str, Any], n_sources: int, what: str) -> Yields | None:
    """Return what the nodes of a tree add to the sources, as (node, source); None where no node says it."""
    entries = content["nodes"]
    if not any(SOURCES in entry for entry in entries):
        return None
    values = np.zeros((len(entries), n_sources))
    for i, entry in enumerate(entries):
        found = get(entry, SOURCES, list)
        if len(found) != n_sources:
            raise ModelFileError(f"{what}, node {i}: {len(found)} values for {n_sources} sources")
        values[i] = [number(value, f"{what}, node {i}, {SOURCES}") for value in found]
    return values


def _node_to_dict(node: Any, features: Sequence[str]) -> dict[str, Any]:
    yields = {name: float(node[name]) for name in YIELDS}
    if node["feature"] < 0:
        return {"depth": int(node["depth"]), **yields}
    return {
        "feature": features[node["feature"]],
        "threshold": float(node["threshold"]),
        "missing": "left" if node["missing_left"] else "right",
        "left": int(node["left"]),
        "right": int(node["right"]),
        "depth": int(node["depth"]),
        **yields,
    }


def _node(entry: Mapping[str, Any], features: tuple[str, ...], what: str) -> tuple[Any, ...]:
    depth = get(entry, "depth", int)
    yields = [number(entry.get(name), f"{what}, {name}") for name in YIELDS]
    if "feature" not in entry:
        return (-1, 0.0, False, -1, -1, depth, *yields)
    if entry["feature"] not in features:
        raise ModelFileError(f"{what}: unknown feature {entry['feature']!r}")
    if entry.get("missing") not in ("left", "right"):
        raise ModelFileError(f"{what}: missing must be left or right")
    children = (get(entry, "left", int), get(entry, "right", int))
    threshold = number(entry.get("threshold"), f"{what}, threshold")
    feature = features.index(entry["feature"])
    return (feature, threshold, entry["missing"] == "left", *children, depth, *yields)
