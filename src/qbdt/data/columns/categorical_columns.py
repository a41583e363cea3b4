"""Categories of pandas tables, and the numbers that trees know them by.

A categorical whose categories are whole numbers (a year, a decay mode) is trained on these numbers as they are. Any
other category (a text, a negative number) gets a number: its place among the categories of the table of the fit. Other
tables may hold such a column in any way: as categorical, text, numbers or an Arrow dictionary.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.data.columns.table_columns import as_columns, has_names
from qbdt.errors import DataError, has_half_character

Categories: TypeAlias = Mapping[str, list[Any]]
"""Values of each categorical column, in the order of their numbers."""

LARGEST_CATEGORY = 2**31 - 1
"""Largest number that a category may be for trees."""


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
    pairs = zip(table.columns, table.dtypes, strict=True)  # two columns may have one name, which is refused later
    found = {str(name): getattr(dtype, "categories", None) for name, dtype in pairs}
    values = {name: categories.tolist() for name, categories in found.items() if categories is not None}
    for name, own in values.items():
        if odd := [value for value in own if not is_plain(value)]:
            raise DataError(
                f"column {name} is categorical and has the category {odd[0]!a}: categories are texts, numbers, or "
                "True and False, which a model file can hold"
            )
    return values


def is_plain(value: Any) -> bool:
    """Whether a model file can hold a value as it is: a text, a finite number, True or False.

    Examples
    --------
    >>> is_plain("ee"), is_plain(2017), is_plain(float("inf")), is_plain(b"ee")
    (True, True, False, False)
    """
    if isinstance(value, str):
        return not has_half_character(value)
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def choose_numbered(categories: Categories) -> dict[str, list[Any]]:
    """Columns whose categories need numbers: those that are not whole numbers already.

    Examples
    --------
    >>> choose_numbered({"year": [2016, 2018], "mode": ["ee", "mm"], "charge": [-1, 1]})
    {'mode': ['ee', 'mm'], 'charge': [-1, 1]}
    """
    return {name: values for name, values in categories.items() if not all(map(_is_number_of_its_own, values))}


def _is_number_of_its_own(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= LARGEST_CATEGORY and value == int(value)


def number_categories(table: Any, categories: Categories, names: Sequence[str] | None = None, context: str = "") -> Any:
    """Put numbers in place of categories, in a table of any kind; a value that no category has is missing.

    A category's number is its place among `categories`, those of the nominal table; the table of a variation may have
    the same categories in another order. `names` are the column names of an array, `context` begins messages.

    Examples
    --------
    >>> number_categories({"mode": ["mm", "ee"]}, {"mode": ["mm"]})["mode"].tolist()
    [0.0, nan]
    """
    if not categories:
        return table
    columns = as_columns(table, None if has_names(table) else names, context)
    mine = {name: known for name, known in categories.items() if name in columns}
    return columns | {
        name: _find_places(columns[name], known, f"{context}column {name}") for name, known in mine.items()
    }


def _find_places(values: NDArray[Any], known: list[Any], what: str) -> NDArray[Any]:
    """Place of each value among those known; NaN for any other, which must be of their kind, a text or a number."""
    if values.ndim != 1:  # refused where events are made
        return values
    if values.dtype.kind == "O" and not all(isinstance(value, Hashable) for value in values):
        raise DataError(f"{what} has several values per row: pick an element first")
    place_of = {value: place for place, value in enumerate(known)}
    given = values.tolist()
    kinds = {isinstance(value, str) for value in known}
    for value in set(given) - place_of.keys():
        is_missing = not isinstance(value, str | int | float) or value != value
        if not is_missing and isinstance(value, str) not in kinds:
            shown = ", ".join(map(repr, known[:5])) + (", …" if len(known) > 5 else "")
            raise DataError(f"{what} has the value {value!r}, and its categories in the training were {shown}")
    return np.array([place_of.get(value, np.nan) for value in given], dtype=np.float32)
