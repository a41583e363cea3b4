"""Tables of any kind that people hold in memory, as named columns.

In: a numpy array, a mapping of columns, a pandas, Arrow or awkward table. Out: its columns as numpy arrays, and the
numbers that trees know the values of its pandas categoricals by.
"""

from qbdt.data.columns.categorical_columns import (
    LARGEST_CATEGORY,
    Categories,
    choose_numbered,
    is_plain,
    number_categories,
    read_categories,
)
from qbdt.data.columns.table_columns import (
    arrow_to_numpy,
    as_arrow,
    as_columns,
    column_readers,
    drop_columns,
    fill_masked,
    has_names,
    name_columns,
    refuse_repeated,
    require_unmasked,
)

__all__ = [
    "LARGEST_CATEGORY",
    "Categories",
    "arrow_to_numpy",
    "as_arrow",
    "as_columns",
    "choose_numbered",
    "column_readers",
    "drop_columns",
    "fill_masked",
    "has_names",
    "is_plain",
    "name_columns",
    "number_categories",
    "read_categories",
    "refuse_repeated",
    "require_unmasked",
]
