"""Front door of data.readers."""

from qbdt.data.readers.column_plan import ColumnPlan
from qbdt.data.readers.request import NOMINAL, Request, read_events, read_request
from qbdt.data.readers.table import Share, expand, open_table
from qbdt.data.readers.writer import write_tables

__all__ = [
    "NOMINAL",
    "ColumnPlan",
    "Request",
    "Share",
    "expand",
    "open_table",
    "read_events",
    "read_request",
    "write_tables",
]
