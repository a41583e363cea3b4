"""Figures, each a function from results to a matplotlib figure; `save` writes it."""

from qbdt.plots.fits import correlation, likelihood_scan, pulls, ranking
from qbdt.plots.style import save, styled
from qbdt.plots.templates import envelope, stacked
from qbdt.plots.tree import draw_tree
from qbdt.plots.writing import write_figures

__all__ = [
    "correlation",
    "draw_tree",
    "envelope",
    "likelihood_scan",
    "pulls",
    "ranking",
    "save",
    "stacked",
    "styled",
    "write_figures",
]
