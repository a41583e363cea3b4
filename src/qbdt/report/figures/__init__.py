"""Ready figures, each a Matplotlib figure of its own.

In: a fit (pulls, ranking, correlations, scan), templates (stacked, envelope), scores and their training (ROC curves,
training against test events), or a tree. Out: a figure to look at, to save, or to put into a report.
"""

from qbdt.report.figures.classifiers import roc_curves, train_and_test, training_curves, tree_weights, variable
from qbdt.report.figures.fits import (
    correlation,
    likelihood_scan,
    limit_curve,
    pulls,
    ranking,
    strength_contours,
    write_figures,
)
from qbdt.report.figures.templates import envelope, stacked
from qbdt.report.figures.tree import draw_tree

__all__ = [
    "correlation",
    "draw_tree",
    "envelope",
    "likelihood_scan",
    "limit_curve",
    "pulls",
    "ranking",
    "roc_curves",
    "stacked",
    "strength_contours",
    "train_and_test",
    "training_curves",
    "tree_weights",
    "variable",
    "write_figures",
]
