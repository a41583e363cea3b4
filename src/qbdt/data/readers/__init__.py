"""Files and tables in memory, read as `Events` in chunks: ROOT, Parquet, Feather, CSV, numpy, pandas, Arrow, awkward.

In: paths and a `Request` that names features, weights, selection and derived columns. Out: `Events`, or plain columns.
"""

from qbdt.data.readers.chunks import ColumnPlan
from qbdt.data.readers.friends import Friend, open_with_friends
from qbdt.data.readers.request import NOMINAL, Request, family_column, read_events, read_family_rows, read_request
from qbdt.data.readers.root import read_histogram
from qbdt.data.readers.table import Share, expand, write_tables
from qbdt.data.readers.whole_columns import read_columns, require_same_values, sum_expression

__all__ = [
    "NOMINAL",
    "ColumnPlan",
    "Friend",
    "Request",
    "Share",
    "expand",
    "family_column",
    "open_with_friends",
    "read_columns",
    "read_events",
    "read_family_rows",
    "read_histogram",
    "read_request",
    "require_same_values",
    "sum_expression",
    "write_tables",
]
