"""Front door of report.figures."""

from qbdt.report.figures.classifiers import (
    roc_curves,
    train_and_test,
    training_curves,
    tree_diagram,
    tree_weights,
    variable,
)
from qbdt.report.figures.fits import correlation, likelihood_scan, pulls, ranking
from qbdt.report.figures.style import COLOURS, SIGNAL, figure, save, styled
from qbdt.report.figures.templates import envelope, stacked
from qbdt.report.figures.tree import draw_tree
from qbdt.report.figures.writing import write_figures

__all__ = [
    "COLOURS",
    "SIGNAL",
    "correlation",
    "draw_tree",
    "envelope",
    "figure",
    "likelihood_scan",
    "pulls",
    "ranking",
    "roc_curves",
    "save",
    "stacked",
    "styled",
    "train_and_test",
    "training_curves",
    "tree_diagram",
    "tree_weights",
    "variable",
    "write_figures",
]
