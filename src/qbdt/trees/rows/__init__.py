"""Binned rows in memory: in come segments of events, out go arrays that kernels read and histograms of nodes."""

from qbdt.trees.rows.binned_rows import BinnedRows, Memory, copy_values, in_memory, sum_shares
from qbdt.trees.rows.layout import Channel, Extras, Layout, Segment, Side
from qbdt.trees.rows.node_histograms import NodeHistograms

__all__ = [
    "BinnedRows",
    "Channel",
    "Extras",
    "Layout",
    "Memory",
    "NodeHistograms",
    "Segment",
    "Side",
    "copy_values",
    "in_memory",
    "sum_shares",
]
