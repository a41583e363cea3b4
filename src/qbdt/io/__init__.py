"""Readers: ROOT, Parquet, Feather, CSV and tables in memory to `Events`."""

from qbdt.io.plan import ColumnPlan
from qbdt.io.read import NOMINAL, Request, read_events, read_request
from qbdt.io.table import Share, TableFile, expand, open_table

__all__ = [
    "NOMINAL",
    "ColumnPlan",
    "Request",
    "Share",
    "TableFile",
    "expand",
    "open_table",
    "read_events",
    "read_request",
]
