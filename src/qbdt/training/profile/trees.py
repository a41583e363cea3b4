"""What both sums of trees have in common: how the next tree is grown, and the yields of its nodes."""

from __future__ import annotations

import numpy as np

from qbdt.arrays import Fixed, Floats, Nodes
from qbdt.training.inputs import draw_features, draw_seed
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.pair_rows import PairStore
from qbdt.training.settings import Settings
from qbdt.trees.growth import Grown, LeafGrowth, TreeGrower

__all__ = ["STEP", "grow_next", "with_yields"]

STEP = 0.2
"""Share of a tree's best output that is added to a sum, for a learning rate of one."""


def grow_next(
    store: PairStore, criterion: NewtonCriterion, allowed: Fixed, settings: Settings, number: int
) -> Grown | None:
    """Grow the tree with this number on a store's pairs by allowed features; None where no split gains anything."""
    store.start_tree(draw_seed(settings, number), settings.row_fraction)
    root = store.histogram(0)
    sums = criterion.start_tree(root, np.array(store.units))
    features = allowed[draw_features(settings, number, len(allowed))]
    rule = LeafGrowth(settings.n_leaves)
    grower = TreeGrower(store, criterion, rule, features, settings.max_depth or settings.n_leaves)
    grown = grower.grow(root, sums)
    return grown if len(grown.leaves) > 1 else None


def with_yields(nodes: Nodes, s: Floats, b: Floats) -> Nodes:
    """Write s and b into every node of a tree, from those of its leaves."""
    leaves = np.flatnonzero(nodes["feature"] < 0)
    nodes["s"][leaves], nodes["b"][leaves] = s, b
    for i in np.flatnonzero(nodes["feature"] >= 0)[::-1]:
        for name in ("s", "b"):
            nodes[name][i] = nodes[name][nodes["left"][i]] + nodes[name][nodes["right"][i]]
    return nodes
