"""Categorical columns of pandas tables: a category's number is its place among the values of the nominal table.

A table of a variation may have the same categories in another order; they get the numbers of the nominal ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Categories: TypeAlias = Mapping[str, list[Any]]
"""Values of each categorical column, in the order of their numbers."""


def read_categories(table: Any) -> dict[str, list[Any]]:
    """Values of each categorical column of a pandas table, in their order; none of other tables.

    Examples
    --------
    >>> import pandas as pd
    >>> read_categories(pd.DataFrame({"pt": [20.0, 30.0], "mode": pd.Categorical(["ee", "mm"])}))
    {'mode': ['ee', 'mm']}
    """
    if not type(table).__module__.startswith("pandas") or not hasattr(table, "columns"):
        return {}
    found = {str(name): getattr(table[name].dtype, "categories", None) for name in table.columns}
    return {name: categories.tolist() for name, categories in found.items() if categories is not None}


def number_categories(table: Any, categories: Categories) -> Any:
    """Put numbers in place of pandas categoricals; a value without a number is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> number_categories(pd.DataFrame({"mode": pd.Categorical(["mm", "ee"])}), {"mode": ["mm"]})["mode"].tolist()
    [0.0, nan]
    """
    mine = [name for name in categories if name in read_categories(table)]
    if not mine:
        return table

    def number(name: str) -> NDArray[np.float32]:
        codes = table[name].cat.set_categories(categories[name]).cat.codes.to_numpy()
        return np.where(codes < 0, np.nan, codes).astype(np.float32)

    return table.assign(**{name: number(name) for name in mine})
