"""Where the rows of a training live: bin codes, weights, and which node each row is in.

Flows in: segments of events (`Segment`) and a `Binning`. Flows out: integer histograms of nodes. `LocalStore` keeps the
paper's weights, `RatioStore` and `ShiftStore` the residuals of the profiled method; `PartedStore` asks partitions,
wherever their `Hosts` keep them; anything with the same methods can take their place (see `qbdt.grower.Store`).
"""

from qbdt.store.balance import Balance
from qbdt.store.calls import Answers, Call, Hosts, Together, added
from qbdt.store.group import Group, Partition
from qbdt.store.layout import Channel, Extras, Layout, Segment, Side
from qbdt.store.local import LocalStore, WeightedRows
from qbdt.store.pairs import PairStore
from qbdt.store.parted import PartedStore
from qbdt.store.ratio import RatioStore
from qbdt.store.rows import Memory, RowStore, in_memory
from qbdt.store.shifts import LeafSums, ShiftSegment, ShiftStore

__all__ = [
    "Answers",
    "Balance",
    "Call",
    "Channel",
    "Extras",
    "Group",
    "Hosts",
    "Layout",
    "LeafSums",
    "LocalStore",
    "Memory",
    "PairStore",
    "PartedStore",
    "Partition",
    "RatioStore",
    "RowStore",
    "Segment",
    "ShiftSegment",
    "ShiftStore",
    "Side",
    "Together",
    "WeightedRows",
    "added",
    "in_memory",
]
