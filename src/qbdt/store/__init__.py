"""Where the rows of a training live: bin codes, weights, and which node each row is in.

Flows in: segments of events (`Segment`) and a `Binning`. Flows out: integer histograms of nodes. `LocalStore` keeps
everything in this process; anything with the same methods can take its place (see `qbdt.grower.Store`).
"""

from qbdt.store.layout import Channel, Extras, Layout, Segment, Side
from qbdt.store.local import LocalStore
from qbdt.store.rows import RowStore

__all__ = ["Channel", "Extras", "Layout", "LocalStore", "RowStore", "Segment", "Side"]
