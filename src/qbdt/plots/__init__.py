"""Pictures of what was trained and measured."""

from qbdt.plots.tree import draw_tree

__all__ = ["draw_tree"]
