"""Trees: bin edges, one tree, sums of trees.

In come `Events`; out go a `Binning` (where features may be cut), a `Tree`, and an `Ensemble` that scores events.
Sub-rooms: `kernels` (compiled loops), `rows` (binned rows and the histograms of their nodes), `growth` (how a tree is
grown on them), `device` (rows and scores on a GPU). None of them knows which method asks.
"""

from qbdt.trees.binning import Binning, BinningChoice, category_edges, make_binning, quantile_binning
from qbdt.trees.ensemble import Ensemble
from qbdt.trees.quantiles import QuantileSketch
from qbdt.trees.tree import Tree

__all__ = [
    "Binning",
    "BinningChoice",
    "Ensemble",
    "QuantileSketch",
    "Tree",
    "category_edges",
    "make_binning",
    "quantile_binning",
]
