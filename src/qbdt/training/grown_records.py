"""Trees from the records of their nodes, which a device or one compiled call notes while it grows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from qbdt.arrays import MISSING_LEFT, NODE, NONE_MISSING, Fixed, Floats, Indices, Nodes
from qbdt.training.kernels.growth import CUT, FEATURE, GAIN, LEFT_CHILD, LEFT_SUMS, MISSING_SIDE
from qbdt.training.kernels.growth import SUMS as FIRST_SUM
from qbdt.trees.growth import Grown

LEFT, SUMS = slice(LEFT_SUMS, LEFT_SUMS + 2), slice(FIRST_SUM, FIRST_SUM + 2)
"""Fields of the two sums left of a node's cut, and of the node's own."""


class PairJudge(NamedTuple):
    """Values of one unit of N and D, λ, and the least D of a node."""

    of_numerator: float
    of_denominator: float
    ridge: float
    least: float


def make_tree(record: Fixed, values: Floats, gains: Floats, depths: Sequence[int] | Indices) -> Grown:
    """Return the tree of a record, whose cuts are still bin codes; `values` are s, b, Q and the output of each node."""
    record = record[: len(depths)]
    nodes: Nodes = np.zeros(len(record), dtype=NODE)
    inner = record[:, LEFT_CHILD] >= 0
    left = np.where(inner, record[:, LEFT_CHILD], -1)
    s, b, q, value = values[: len(record)].T
    # Where no value was missing in training, later ones follow most of the background.
    follows = b[left] > b[np.where(inner, left + 1, -1)]
    nodes["missing_left"] = inner & np.where(
        record[:, MISSING_SIDE] == NONE_MISSING, follows, record[:, MISSING_SIDE] == MISSING_LEFT
    )
    nodes["feature"] = np.where(inner, record[:, FEATURE], -1)
    nodes["left"], nodes["right"], nodes["depth"] = left, np.where(inner, left + 1, -1), depths
    nodes["s"], nodes["b"], nodes["q"], nodes["value"] = s, b, q, value
    nodes["gain"] = np.where(inner, gains[: len(record)], 0.0)
    cuts = np.where(inner, record[:, CUT], 0)
    return Grown(nodes, cuts, tuple(np.flatnonzero(~inner).tolist()))


def make_pair_tree(record: Fixed, judge: PairJudge, depths: Sequence[int] | Indices) -> Grown:
    """Return the tree of a record whose nodes have sums N and D."""
    gains = np.ascontiguousarray(record[:, GAIN]).view(np.float64)
    top, bottom = (record[:, SUMS] * (judge.of_numerator, judge.of_denominator)).T
    # As `NewtonCriterion.describe`: D as the yield, N²/(D + λ) and N/(D + λ), zero where D + λ is not positive.
    sums = bottom + judge.ridge
    values = np.zeros((4, len(sums)))
    values[1] = bottom
    np.divide((top * top, top), sums, out=values[2:], where=sums > 0)
    return make_tree(record, values.T, gains, depths)
