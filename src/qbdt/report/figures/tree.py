"""A tree that can be read: one line per node, what leads to it, and its numbers in columns.

The paper's trees have s, b, σ_b, Q and the purity p in each node; those of the profiled method have what they add.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from qbdt.report.labels import PLAIN, Labels
from qbdt.report.style import COLOURS, SIGNAL, figure, styled
from qbdt.trees import Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CATEGORIES = 5
"""Categories that are named on a line."""

INDENT, COLUMN, LINE = 0.28, 0.82, 0.27
"""Inches: step of a level, width of a column of numbers, height of a line."""

TEXT = 9.5
"""Size of letters in points."""

LETTER = 0.075
"""Inches that a letter of a condition takes on average."""


def draw_tree(
    tree: Tree, features: tuple[str, ...], axes: Any = None, *, profiled: bool = False, labels: Labels = PLAIN
) -> Figure:
    """Draw a tree into Matplotlib axes, or a new figure, and return the figure.

    Nodes of the profiled method have an output but neither Q nor purity.
    """
    order = _in_order(tree)
    titles = [labels.variable(name) for name in features]
    conditions = {node: _condition(tree, parent, titles, left=left) for node, parent, left in order}
    columns = _columns(tree, profiled)
    depth = tree.nodes["depth"]
    longest = max(INDENT * int(depth[node]) + LETTER * _n_letters(text) for node, text in conditions.items())
    width = longest + COLUMN * (len(columns) + 1) + 0.5
    with styled():
        if axes is None:
            _, axes = figure(width, LINE * (len(order) + 2) + 0.2)
        places = {node: (INDENT * int(depth[node]), -LINE * row) for row, (node, _, _) in enumerate(order)}
        _draw_branches(axes, order, places)
        for node, place in places.items():
            weight = "bold" if tree.nodes["feature"][node] < 0 else "normal"
            axes.text(*place, conditions[node], va="center", fontsize=TEXT, weight=weight)
        _write_columns(axes, columns, places, longest + 0.4)
        _draw_outputs(axes, tree, places, longest + 0.4 + COLUMN * (len(columns) + 0.6))
        if not profiled:
            axes.set_title(f"W = {tree.weight:.4g}", fontsize=TEXT, loc="left")
        axes.set_xlim(-0.1, width)
        axes.set_ylim(-LINE * (len(order) - 0.3), 1.6 * LINE)
        axes.set_axis_off()
    drawn: Figure = axes.figure
    return drawn


def _in_order(tree: Tree) -> list[tuple[int, int, bool]]:
    """Nodes from the root down, children below their parent: node, parent (−1 for the root), whether it is the left."""
    found, waiting = [], [(0, -1, True)]
    while waiting:
        node, parent, left = waiting.pop()
        found.append((node, parent, left))
        if tree.nodes["feature"][node] >= 0:
            waiting += [(int(tree.nodes["right"][node]), node, False), (int(tree.nodes["left"][node]), node, True)]
    return found


def _draw_branches(axes: Any, order: Sequence[tuple[int, int, bool]], places: dict[int, tuple[float, float]]) -> None:
    """Lines from each node down its left edge to its children."""
    for node, parent, _ in order[1:]:
        (x, y), (_, above) = places[node], places[parent]
        stem = x - INDENT / 2
        axes.plot([stem, stem, x - 0.05], [above - LINE / 2.4, y, y], color="#9aa3ad", linewidth=1, zorder=1)


def _write_columns(
    axes: Any, columns: dict[str, list[str]], places: dict[int, tuple[float, float]], left: float
) -> None:
    """Numbers of the nodes, right-aligned below the titles."""
    for number, (title, values) in enumerate(columns.items(), start=1):
        at = left + COLUMN * number
        axes.text(at, LINE, title, ha="right", va="center", fontsize=TEXT, color="#5b6572")
        for node, (_, y) in places.items():
            axes.text(at, y, values[node], ha="right", va="center", fontsize=TEXT)


def _draw_outputs(axes: Any, tree: Tree, places: dict[int, tuple[float, float]], at: float) -> None:
    """Bars of the outputs of leaves, to the right for signal-like ones."""
    leaves = [node for node in places if tree.nodes["feature"][node] < 0]
    largest = max(abs(float(tree.nodes["value"][node])) for node in leaves) or 1.0
    for node in leaves:
        value = float(tree.nodes["value"][node])
        colour = SIGNAL if value > 0 else COLOURS[0]
        axes.barh(places[node][1], 0.4 * value / largest, left=at, height=0.6 * LINE, color=colour, alpha=0.8)
    axes.plot([at, at], [LINE / 2, min(y for _, y in places.values()) - LINE / 2], color="#9aa3ad", linewidth=0.8)


def _condition(tree: Tree, parent: int, titles: Sequence[str], *, left: bool) -> str:
    """Condition of one branch; of many categories only the first are named."""
    if parent < 0:
        return "all events"
    name, unit = _split_unit(titles[tree.nodes["feature"][parent]])
    if not tree.is_set[parent]:
        return f"{name} {'<' if left else '≥'} {tree.nodes['threshold'][parent]:.4g}{unit}"
    values = [f"{value:.0f}" for value in (tree.left_categories(parent) if left else tree.right_categories(parent))]
    shown = values if len(values) <= MOST_CATEGORIES else [*values[: MOST_CATEGORIES - 1], "…"]
    return f"{name} in {{{', '.join(shown)}}}"


def _split_unit(title: str) -> tuple[str, str]:
    """Title of a variable without its unit, and the unit as it stands behind a number.

    Examples
    --------
    >>> _split_unit("$m_{vis}$ (GeV)"), _split_unit("eta")
    (('$m_{vis}$', ' GeV'), ('eta', ''))
    """
    found = re.fullmatch(r"(.+) \((\w+)\)", title)
    return (found[1], f" {found[2]}") if found else (title, "")


def _columns(tree: Tree, profiled: bool) -> dict[str, list[str]]:
    """Numbers of all nodes by the title of their column."""
    nodes = tree.nodes
    found = {name: [_yield(value) for value in nodes[name]] for name in ("s", "b")}
    if profiled:
        return {**found, "adds": [f"{value:+z.3f}" for value in nodes["value"]]}
    if (nodes["sigma2"] > 0).any():
        found[r"$\sigma_b$"] = [f"{math.sqrt(max(sigma2, 0.0)):.4g}" for sigma2 in nodes["sigma2"]]
    found |= {"Q": [f"{q:.4g}" for q in nodes["q"]], "p": [f"{p:.3f}" for p in tree.purities]}
    free = 2 * tree.purities - 1
    if (nodes["value"] != free).any():  # by a monotonic constraint
        pairs = zip(nodes["value"], free, strict=True)
        found["held at"] = [f"{0.5 * (1 + value):.3f}" if value != output else "" for value, output in pairs]
    return found


def _n_letters(text: str) -> int:
    """Letters as they are drawn: a command of a formula is one."""
    return len(re.sub(r"[${}^_]", "", re.sub(r"\\[A-Za-z]+", "x", text)))


def _yield(events: float) -> str:
    return f"{events:,.0f}" if abs(events) >= 10_000 else f"{events:.4g}"
