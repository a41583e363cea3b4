"""XGBoost's JSON: one booster per sum of trees, in single precision.

Cuts become the smallest single-precision number at or above, so that single-precision features take the same way. The
features have no names in the file, only numbers (the names are among its attributes): ROOT's RBDT expects f0, f1, ….
XGBoost sends the categories of a set right and everything else left, so children change places where ours are left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import NODE, Floats
from qbdt.errors import DataError, require
from qbdt.models.export.comparison import float32_at_least
from qbdt.trees import Ensemble, Tree

NO_PARENT = 2**31 - 1
CATEGORIES = 2**24
"""XGBoost's categories are below this."""

READABLE_SINCE = [2, 1, 0]
"""Version of XGBoost that the file names as its writer: newer ones read it."""


def write_xgboost(ensemble: Ensemble, path: Path, notes: Mapping[str, str]) -> None:
    """Write one sum of trees as a booster; `notes` become its attributes."""
    _require_small_categories(ensemble)
    trees = ensemble.trees or (_make_empty_tree(),)  # ROOT's RBDT reads beyond the end of a list without a tree
    n_trees = len(trees)
    model = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(n_trees)},
        "iteration_indptr": list(range(n_trees + 1)),
        "tree_info": [0] * n_trees,
        "trees": [_tree(tree, i, len(ensemble.features)) for i, tree in enumerate(trees)],
    }
    learner = {
        "attributes": {"qbdt": version("qbdt"), "features": json.dumps(ensemble.features), **notes},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {
            "base_score": "0E0",
            "boost_from_average": "0",
            "num_class": "0",
            "num_feature": str(len(ensemble.features)),
            "num_target": "1",
        },
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
    }
    path.write_text(json.dumps({"learner": learner, "version": READABLE_SINCE}), encoding="utf-8")


def read_xgboost(path: Path, values: NDArray[np.float32]) -> Floats:
    """Sum of trees of each row, computed by xgboost."""
    xgboost = require("xgboost", "checking an XGBoost file")
    booster = xgboost.Booster({"nthread": 1}, model_file=str(path))
    return np.asarray(booster.inplace_predict(np.ascontiguousarray(values)), dtype=np.float64)


def _make_empty_tree() -> Tree:
    """Make a tree of one leaf whose output is zero."""
    nodes = np.zeros(1, NODE)
    nodes["feature"] = nodes["left"] = nodes["right"] = -1
    return Tree(nodes, 1.0)


def _require_small_categories(ensemble: Ensemble) -> None:
    for tree in ensemble.trees:
        for feature, values in tree.categories.items():
            if values.max(initial=0) >= CATEGORIES:
                name = ensemble.features[feature]
                raise DataError(
                    f"feature {name} has the category {values.max():.0f}: XGBoost's end at {CATEGORIES - 1}"
                )


def _order_nodes(tree: Tree) -> NDArray[np.intp]:
    """For each place in the file the node that stands there.

    Children change places below a set whose categories go left: XGBoost sends categories right, and its predictor takes
    the child after the left one for the right one.
    """
    order = np.arange(len(tree.nodes))
    for i in np.flatnonzero(tree.is_set):
        if tree.members(int(i))[1]:
            children = [tree.nodes[side][i] for side in ("left", "right")]
            order[children] = order[children[::-1]]
    return order


def _tree(tree: Tree, number: int, n_features: int) -> dict[str, Any]:
    order = _order_nodes(tree)
    place = np.argsort(order)  # in the file, of each node
    nodes, leaf, is_set = tree.nodes[order], tree.is_leaf[order], tree.is_set[order]
    cuts = float32_at_least(nodes["threshold"]).astype(np.float64)
    outputs = tree.outputs[order].astype(np.float32).astype(np.float64)
    first, second = (np.where(leaf, -1, place[nodes[side]]) for side in ("left", "right"))
    sets = np.flatnonzero(is_set)
    members = [tree.members(int(order[i])) for i in sets]
    swapped = np.zeros(len(nodes), dtype=np.bool_)
    swapped[sets] = [are_left for _, are_left in members]
    left, right = np.where(swapped, second, first), np.where(swapped, first, second)
    parents = np.full(len(nodes), NO_PARENT)
    for children in (left, right):
        parents[children[~leaf]] = np.flatnonzero(~leaf)
    sizes = [len(values) for values, _ in members]
    return {
        "base_weights": np.where(leaf, outputs, 0.0).tolist(),
        "categories": [int(value) for values, _ in members for value in values],
        "categories_nodes": sets.tolist(),
        "categories_segments": (np.cumsum(sizes) - sizes).astype(int).tolist(),
        "categories_sizes": sizes,
        "default_left": (nodes["missing_left"] | is_set).astype(int).tolist(),
        "id": number,
        "left_children": left.tolist(),
        "loss_changes": [0.0] * len(nodes),
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": np.where(leaf, outputs, cuts).tolist(),
        "split_indices": np.where(leaf, 0, nodes["feature"]).tolist(),
        "split_type": is_set.astype(int).tolist(),
        "sum_hessian": [1.0] * len(nodes),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(len(nodes)),
            "size_leaf_vector": "1",
        },
    }
