"""Where the rows of a training live: bin codes, weights, and which node each row is in.

Flows in: segments of events (`Segment`) and a `Binning`. Flows out: integer histograms of nodes. `LocalStore` keeps
everything in this process; anything with the same methods can take its place (see `qbdt.grower.Store`).
"""

from qbdt.store.balance import Balance
from qbdt.store.layout import Channel, Extras, Layout, Segment, Side
from qbdt.store.local import LocalStore, WeightedRows
from qbdt.store.rows import Memory, RowStore

__all__ = ["Balance", "Channel", "Extras", "Layout", "LocalStore", "Memory", "RowStore", "Segment", "Side", "WeightedRows"]
