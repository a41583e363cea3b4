"""Trees as plain data, and back with every node checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import NODE, Floats, Nodes, pack_codes
from qbdt.errors import ModelFileError
from qbdt.models.file_text import LARGEST_OUTPUT, LARGEST_YIELD, get, number
from qbdt.trees import Tree

YIELDS = ("s", "b", "sigma2", "q", "gain", "value")
MOST = {"value": LARGEST_OUTPUT}
SOURCES = "source_values"
LEFT_CATEGORIES = "left_categories"
"""Of a node that divides by category: those that go left; others that are known go right, all others with missing."""


def tree_to_dict(tree: Tree, features: Sequence[str], source_values: Floats | None = None) -> dict[str, Any]:
    """Return a tree as plain data, one record per node; with what each node adds to each source where there are any."""
    nodes = [_node_to_dict(tree, i, features) for i in range(len(tree.nodes))]
    if source_values is not None:
        for node, values in zip(nodes, source_values, strict=True):
            node[SOURCES] = values.tolist()
    return {"weight": tree.weight, "nodes": nodes}


def tree_from_dict(content: Any, features: tuple[str, ...], categories: Mapping[str, Floats], what: str) -> Tree:
    """Make a tree; refused where a walk from the root could leave it, loop, or miss a node."""
    if not isinstance(content, dict):
        raise ModelFileError(f"{what} is not a tree")
    entries = get(content, "nodes", list)
    nodes: Nodes = np.zeros(len(entries), dtype=NODE)
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise ModelFileError(f"{what}, node {i} is not a node")
        nodes[i] = _read_node(entry, features, categories, f"{what}, node {i}")
    inner = np.flatnonzero(nodes["feature"] >= 0)
    children = np.concatenate([nodes["left"][inner], nodes["right"][inner]])
    after = np.all(nodes["left"][inner] > inner) and np.all(nodes["right"][inner] > inner)
    if not len(nodes) or not after or not np.array_equal(np.sort(children), np.arange(1, len(nodes))):
        raise ModelFileError(f"{what}: its nodes do not form a tree")
    by_number = {features.index(name): values for name, values in categories.items()}
    return Tree(nodes, number(content.get("weight"), f"{what}, weight", LARGEST_OUTPUT), by_number)


def read_source_values(content: Mapping[str, Any], n_sources: int, what: str) -> Floats | None:
    """Contributions of the nodes of a tree to the sources, as (node, source); None where there are none."""
    entries = content["nodes"]
    if not any(SOURCES in entry for entry in entries):
        return None
    values = np.zeros((len(entries), n_sources))
    for i, entry in enumerate(entries):
        found = get(entry, SOURCES, list)
        if len(found) != n_sources:
            raise ModelFileError(f"{what}, node {i}: {len(found)} values for {n_sources} sources")
        values[i] = [number(value, f"{what}, node {i}, {SOURCES}", LARGEST_OUTPUT) for value in found]
    return values


def _node_to_dict(tree: Tree, place: int, features: Sequence[str]) -> dict[str, Any]:
    node = tree.nodes[place]
    yields = {name: float(node[name]) for name in YIELDS}
    if node["feature"] < 0:
        return {"depth": int(node["depth"]), **yields}
    way: dict[str, Any] = {"threshold": float(node["threshold"])}
    if tree.is_set[place]:
        way = {LEFT_CATEGORIES: tree.left_categories(place).astype(int).tolist()}
    return {
        "feature": features[node["feature"]],
        **way,
        "missing": "left" if node["missing_left"] else "right",
        "left": int(node["left"]),
        "right": int(node["right"]),
        "depth": int(node["depth"]),
        **yields,
    }


def _read_node(
    entry: Mapping[str, Any], features: tuple[str, ...], categories: Mapping[str, Floats], what: str
) -> tuple[Any, ...]:
    depth = _read_whole(entry, "depth", what)
    yields = [number(entry.get(name), f"{what}, {name}", MOST.get(name, LARGEST_YIELD)) for name in YIELDS]
    if "feature" not in entry:
        return (-1, 0.0, False, -1, -1, depth, *yields, pack_codes(()))
    name = entry["feature"]
    if name not in features:
        raise ModelFileError(f"{what}: unknown feature {name!r}")
    if entry.get("missing") not in ("left", "right"):
        raise ModelFileError(f"{what}: missing must be left or right")
    children = (_read_whole(entry, "left", what), _read_whole(entry, "right", what))
    threshold, codes = 0.0, np.zeros(0, dtype=np.intp)
    if name in categories:
        codes = _read_left_codes(entry, categories[name], what)
    else:
        threshold = number(entry.get("threshold"), f"{what}, threshold")
    way = (features.index(name), threshold, entry["missing"] == "left")
    return (*way, *children, depth, *yields, pack_codes(codes))


def _read_whole(entry: Mapping[str, Any], name: str, what: str) -> int:
    found: int = get(entry, name, int)
    if abs(found) >= 2**31:  # old releases of NumPy would wrap it around
        raise ModelFileError(f"{what}, {name}: a whole number that no tree can hold")
    return found


def _read_left_codes(entry: Mapping[str, Any], known: Floats, what: str) -> NDArray[np.intp]:
    values = [number(value, f"{what}, {LEFT_CATEGORIES}") for value in get(entry, LEFT_CATEGORIES, list)]
    unknown = sorted(set(values) - set(known.tolist()))
    if unknown:
        raise ModelFileError(f"{what}, {LEFT_CATEGORIES}: {unknown[0]:.12g} is no category of {entry['feature']}")
    if not 0 < len(set(values)) < len(known):
        raise ModelFileError(f"{what}, {LEFT_CATEGORIES}: some of the categories, and not all, must go left")
    return np.searchsorted(known, values)
