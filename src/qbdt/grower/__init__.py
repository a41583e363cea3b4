"""Best-first growth of one tree from the histograms of a store.

Flows in: a `Store` (rows), a `Criterion` (what a good split is) and a `Growth` rule (when to stop). Flows out: `Grown`.
"""

from qbdt.grower.criterion import PaperCriterion, Quantity, Split, Term, Yield
from qbdt.grower.details import Details, TreeDetails
from qbdt.grower.growing import Criterion, Grown, Store, grow, with_thresholds
from qbdt.grower.growth import Growth, LeafGrowth, PublishedGrowth
from qbdt.grower.newton import NewtonCriterion
from qbdt.grower.rules import FeatureRules

__all__ = [
    "Criterion",
    "Details",
    "FeatureRules",
    "Grown",
    "Growth",
    "LeafGrowth",
    "NewtonCriterion",
    "PaperCriterion",
    "PublishedGrowth",
    "Quantity",
    "Split",
    "Store",
    "Term",
    "TreeDetails",
    "Yield",
    "grow",
    "with_thresholds",
]
