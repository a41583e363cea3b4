"""Where the rows of a training live: bin codes, weights, and which node each row is in.

Flows in: segments of events (`Segment`) and a `Binning`. Flows out: integer histograms of nodes. `LocalStore` keeps
everything in this process; `PartedStore` asks partitions, wherever their `Hosts` keep them (see `qbdt.grower.Store`).
"""

from qbdt.store.balance import Balance
from qbdt.store.calls import Answers, Call, Hosts, Together, added
from qbdt.store.group import Group, Partition
from qbdt.store.layout import Channel, Extras, Layout, Segment, Side
from qbdt.store.local import LocalStore, WeightedRows
from qbdt.store.parted import PartedStore
from qbdt.store.rows import Memory, RowStore, in_memory

__all__ = [
    "Answers",
    "Balance",
    "Call",
    "Channel",
    "Extras",
    "Group",
    "Hosts",
    "Layout",
    "LocalStore",
    "Memory",
    "PartedStore",
    "Partition",
    "RowStore",
    "Segment",
    "Side",
    "Together",
    "WeightedRows",
    "added",
    "in_memory",
]
