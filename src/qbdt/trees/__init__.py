"""Front door of trees."""

from qbdt.trees.binning import Binning, BinningChoice, QuantileSketch, category_edges, make_binning, quantile_binning
from qbdt.trees.ensemble import Ensemble
from qbdt.trees.exact_sums import binned_sums, exact_sum, rounded
from qbdt.trees.feature_rules import FREE, Arranged, FeatureRules, Limits, permute_bins
from qbdt.trees.growth import Grown, Store, grow, with_thresholds
from qbdt.trees.growth_rules import Growth, LeafGrowth, PublishedGrowth
from qbdt.trees.layout import Extras, Layout, Segment, Side
from qbdt.trees.rows import Memory, RowStore, copied, in_memory, joined
from qbdt.trees.splits import Split, Yield, by_gain
from qbdt.trees.systematic_histograms import Details, TreeDetails
from qbdt.trees.tree import Tree, cut_table, set_table

__all__ = [
    "FREE",
    "Arranged",
    "Binning",
    "BinningChoice",
    "Details",
    "Ensemble",
    "Extras",
    "FeatureRules",
    "Grown",
    "Growth",
    "Layout",
    "LeafGrowth",
    "Limits",
    "Memory",
    "PublishedGrowth",
    "QuantileSketch",
    "RowStore",
    "Segment",
    "Side",
    "Split",
    "Store",
    "Tree",
    "TreeDetails",
    "Yield",
    "binned_sums",
    "by_gain",
    "category_edges",
    "copied",
    "cut_table",
    "exact_sum",
    "grow",
    "in_memory",
    "joined",
    "make_binning",
    "permute_bins",
    "quantile_binning",
    "rounded",
    "set_table",
    "with_thresholds",
]
