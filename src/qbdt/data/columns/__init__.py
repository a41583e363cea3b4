"""Tables of any kind that people hold in memory, as named columns.

In: a numpy array, a mapping of columns, a pandas, Arrow or awkward table. Out: its columns as numpy arrays, and the
values of its pandas categoricals, whose places among them are the numbers that trees cut on.
"""

from qbdt.data.columns.table_columns import (
    Categories,
    arrow_to_numpy,
    as_columns,
    drop_columns,
    fill_masked,
    has_names,
    name_columns,
    number_categories,
    read_categories,
    refuse_repeated,
    require_unmasked,
)

__all__ = [
    "Categories",
    "arrow_to_numpy",
    "as_columns",
    "drop_columns",
    "fill_masked",
    "has_names",
    "name_columns",
    "number_categories",
    "read_categories",
    "refuse_repeated",
    "require_unmasked",
]
