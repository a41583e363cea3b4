"""Where the rows of a training live: bin codes, weights, and which node each row is in.

Flows in: segments of events (`Segment`) and a `Binning`. Flows out: integer histograms of nodes. `LocalStore` keeps the
paper's weights in this process; `PartedStore` asks partitions for them, wherever their `Hosts` keep them. `RatioStore`,
`ShiftStore` and `ScoreStore` do so for the residuals and scores of the profiled method, in one partition or many.
Anything with the same methods can take their place (see `qbdt.grower.Store`).
"""

from qbdt.store.balance import Balance
from qbdt.store.calls import Answers, Call, Hosts, Together, added
from qbdt.store.exact import exact_sum, rounded
from qbdt.store.group import Group, Partition
from qbdt.store.layout import Channel, Extras, Layout, Segment, Side
from qbdt.store.local import LocalStore, WeightedRows
from qbdt.store.pairs import PairStore, fixed_scale
from qbdt.store.parted import PartedStore
from qbdt.store.ratio import RatioRows, RatioStore
from qbdt.store.rows import Memory, RowStore, copied, in_memory
from qbdt.store.scores import Scored, ScoreRows, ScoreStore, Templates
from qbdt.store.shift_rows import ShiftRows, ShiftSegment, variance
from qbdt.store.shifts import LeafSums, ShiftBounds, ShiftStore

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
    "RatioRows",
    "RatioStore",
    "RowStore",
    "ScoreRows",
    "ScoreStore",
    "Scored",
    "Segment",
    "ShiftBounds",
    "ShiftRows",
    "ShiftSegment",
    "ShiftStore",
    "Side",
    "Templates",
    "Together",
    "WeightedRows",
    "added",
    "copied",
    "exact_sum",
    "fixed_scale",
    "in_memory",
    "rounded",
    "variance",
]
