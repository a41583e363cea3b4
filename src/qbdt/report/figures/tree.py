"""A tree as the paper draws it: cuts on the lines; in nodes s, b, σ_b, Q and p, or what it adds to a profiled sum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from qbdt.report.style import figure, styled
from qbdt.trees import Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_tree"]

MOST_CATEGORIES = 5
"""Categories that are named on a line."""

LEAF_COLOUR, INNER_COLOUR = "#dce9f5", "#f4f4f4"


def draw_tree(tree: Tree, features: tuple[str, ...], axes: Any = None, *, profiled: bool = False) -> Figure:
    """Draw a tree.

    Parameters
    ----------
    tree
        The tree.
    features
        Names of the features.
    axes
        Matplotlib axes to draw into; a new figure if not given.
    profiled
        Whether it is a tree of the profiled method, whose nodes have an output but neither Q nor purity.

    Returns
    -------
    Figure
        The figure that was drawn into.
    """
    with styled():
        if axes is None:
            _, axes = figure(1.9 * max(tree.n_leaves, 2), 1.6 * (tree.depth + 1))
        places = _places(tree)
        for node in range(len(tree.nodes)):
            if tree.nodes["feature"][node] >= 0:
                _draw_branches(axes, tree, node, places, features)
            _draw_node(axes, tree, node, places[node], profiled)
        axes.set_xlim(-0.6, tree.n_leaves - 0.4)
        axes.set_ylim(-tree.depth - 0.5, 0.5)
        if not profiled:
            axes.set_title(f"W = {tree.weight:.4g}", fontsize=9)
        axes.set_axis_off()
    drawn: Figure = axes.figure
    return drawn


def _draw_branches(
    axes: Any, tree: Tree, node: int, places: list[tuple[float, float]], features: tuple[str, ...]
) -> None:
    x, y = places[node]
    for side in ("left", "right"):
        x_child, y_child = places[int(tree.nodes[side][node])]
        axes.plot([x, x_child], [y, y_child], color="#888888", linewidth=1, zorder=1)
        middle = (x + x_child) / 2, (y + y_child) / 2
        cut = _condition(tree, node, features, left=side == "left")
        box = _paper("white")
        axes.text(*middle, cut, ha="center", va="center", fontsize=7, parse_math=False, bbox=box, zorder=2)


def _draw_node(axes: Any, tree: Tree, node: int, place: tuple[float, float], profiled: bool) -> None:
    box = _paper(LEAF_COLOUR if tree.nodes["feature"][node] < 0 else INNER_COLOUR, edge="#444444")
    axes.text(*place, _label(tree, node, profiled), ha="center", va="center", fontsize=8, bbox=box, zorder=3)


def _condition(tree: Tree, node: int, features: tuple[str, ...], *, left: bool) -> str:
    """Condition of one branch; of many categories only the first are named."""
    name = features[tree.nodes["feature"][node]]
    if not tree.is_set[node]:
        return f"{name} {'<' if left else '≥'} {tree.nodes['threshold'][node]:.4g}"
    values = [f"{value:.0f}" for value in (tree.left_categories(node) if left else tree.right_categories(node))]
    shown = values if len(values) <= MOST_CATEGORIES else [*values[: MOST_CATEGORIES - 1], "…"]
    return f"{name} in {{{', '.join(shown)}}}"


def _label(tree: Tree, node: int, profiled: bool) -> str:
    values = tree.nodes[node]
    lines = [f"s = {values['s']:.4f}", f"b = {values['b']:.4f}"]
    if profiled:
        return "\n".join([f"s = {values['s']:.4g}", f"b = {values['b']:.4g}", f"adds {values['value']:.3g}"])
    if values["sigma2"] > 0:
        lines.append(f"σ_b = {math.sqrt(values['sigma2']):.4f}")
    lines += [f"Q = {values['q']:.4f}", f"p = {tree.purities[node]:.3f}"]
    output = 2 * tree.purities[node] - 1
    if values["value"] != output:  # by a monotonic constraint
        lines.append(f"held at {0.5 * (1 + values['value']):.3f}")
    return "\n".join(lines)


def _paper(colour: str, edge: str = "none") -> dict[str, Any]:
    return {"boxstyle": "round,pad=0.25", "facecolor": colour, "edgecolor": edge, "linewidth": 0.8}


def _places(tree: Tree) -> list[tuple[float, float]]:
    """Leaves side by side, inner nodes half-way above their children, the depth downwards."""
    across = [0.0] * len(tree.nodes)
    n_placed = 0

    def place(node: int) -> float:
        nonlocal n_placed
        if tree.nodes["feature"][node] < 0:
            across[node] = float(n_placed)
            n_placed += 1
        else:
            across[node] = (place(int(tree.nodes["left"][node])) + place(int(tree.nodes["right"][node]))) / 2
        return across[node]

    place(0)
    return [(x, -float(tree.nodes["depth"][i])) for i, x in enumerate(across)]
