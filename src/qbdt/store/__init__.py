"""Where the rows of a training live: bin codes, weights, and which node each row is in.

Flows in: segments of events (`Segment`) and a `Binning`. Flows out: integer histograms of nodes. `LocalStore` keeps the
paper's weights, `RatioStore` and `ShiftStore` the residuals of the profiled method; anything with the same methods can
take their place (see `qbdt.grower.Store`).
"""

from qbdt.store.layout import Channel, Extras, Layout, Segment, Side
from qbdt.store.local import LocalStore
from qbdt.store.pairs import PairStore
from qbdt.store.ratio import RatioStore
from qbdt.store.rows import RowStore
from qbdt.store.shifts import LeafSums, ShiftSegment, ShiftStore

__all__ = [
    "Channel",
    "Extras",
    "Layout",
    "LeafSums",
    "LocalStore",
    "PairStore",
    "RatioStore",
    "RowStore",
    "Segment",
    "ShiftSegment",
    "ShiftStore",
    "Side",
]
