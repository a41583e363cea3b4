"""Files and tables in memory, read as `Events` in chunks: ROOT, Parquet, Feather, CSV, numpy, pandas, Arrow, awkward.

In: paths and a `Request` that names features, weights, selection and derived columns. Out: `Events`, or plain columns.
"""

from qbdt.data.readers.chunks import ColumnPlan
from qbdt.data.readers.request import (
    NOMINAL,
    Request,
    family_column,
    read_columns,
    read_events,
    read_family_rows,
    read_request,
    sum_expression,
)
from qbdt.data.readers.root import read_histogram
from qbdt.data.readers.table import Share, expand, open_table, write_tables

__all__ = [
    "NOMINAL",
    "ColumnPlan",
    "Request",
    "Share",
    "expand",
    "family_column",
    "open_table",
    "read_columns",
    "read_events",
    "read_family_rows",
    "read_histogram",
    "read_request",
    "sum_expression",
    "write_tables",
]
