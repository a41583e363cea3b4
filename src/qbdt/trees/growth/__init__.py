"""Growth of one tree: in come rows (`RowStore`) and a criterion, out goes a `Grown` tree."""

from qbdt.trees.growth.feature_rules import FREE, Arranged, FeatureRules, Limits, permute_bins
from qbdt.trees.growth.grower import Grown, RowStore, TreeGrower
from qbdt.trees.growth.growth_rules import Growth, LeafGrowth, PublishedGrowth
from qbdt.trees.growth.splits import NodeYields, Split
from qbdt.trees.growth.systematic_histograms import NodeSystematics, SystematicHistograms

__all__ = [
    "FREE",
    "Arranged",
    "FeatureRules",
    "Grown",
    "Growth",
    "LeafGrowth",
    "Limits",
    "NodeSystematics",
    "NodeYields",
    "PublishedGrowth",
    "RowStore",
    "Split",
    "SystematicHistograms",
    "TreeGrower",
    "permute_bins",
]
