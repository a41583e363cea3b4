"""Steps that both sums of trees share: how the next tree is grown, and the yields of its nodes."""

from __future__ import annotations

import numpy as np

from qbdt.arrays import Fixed, Floats, Nodes
from qbdt.training.inputs import draw_features, draw_rows
from qbdt.training.partitions.protocol import Call, Partitions
from qbdt.training.profile.newton import NewtonCriterion
from qbdt.training.profile.pair_rows import PairRows
from qbdt.training.settings import Settings
from qbdt.trees.growth import Grown, LeafGrowth, TreeGrower

__all__ = ["STEP", "grow_next", "with_yields"]

STEP = 0.2
"""Share of a tree's best output that is added to a sum, for a learning rate of one. It was 0.1 until measured
on the physics benchmark (P2 and P3)."""


def grow_next(
    rows: Partitions,
    scales: tuple[float, float],
    criterion: NewtonCriterion,
    allowed: Fixed,
    settings: Settings,
    number: int,
) -> Grown | None:
    """Grow the tree with this number by allowed features; None where no split gains anything.

    `rows` are `PairRows`; `scales` are the powers of two that their numerators and denominators are multiplied by.
    """
    _, nodes = rows.begin_tree(Call(PairRows.begin_tree, (scales, *draw_rows(settings, number))))
    root = nodes.histogram(0)
    sums = criterion.start_tree(root, 1.0 / np.array(scales))
    features = allowed[draw_features(settings, number, len(allowed))]
    depth = settings.max_depth or settings.n_leaves
    grown = TreeGrower(nodes, criterion, LeafGrowth(settings.n_leaves), features, depth).grow(root, sums)
    return grown if len(grown.leaves) > 1 else None


def with_yields(nodes: Nodes, s: Floats, b: Floats) -> Nodes:
    """Write s and b into every node of a tree, from those of its leaves."""
    leaves = np.flatnonzero(nodes["feature"] < 0)
    nodes["s"][leaves], nodes["b"][leaves] = s, b
    for i in np.flatnonzero(nodes["feature"] >= 0)[::-1]:
        for name in ("s", "b"):
            nodes[name][i] = nodes[name][nodes["left"][i]] + nodes[name][nodes["right"][i]]
    return nodes
