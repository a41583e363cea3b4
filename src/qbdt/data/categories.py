"""Categories of categorical features: which ones the events have, and sets of them as bits.

Flows in: `Events`. Flows out: for each categorical feature the values that occur, increasing; a value's place among
them is its bin code. Values are whole numbers, so a category keeps its name (a year, a decay mode) everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import BINS, Floats
from qbdt.data.dataset import Dataset, Role
from qbdt.data.events import Events
from qbdt.errors import DataError

__all__ = [
    "Categories",
    "bits_of_codes",
    "categories_of",
    "codes_of_bits",
    "merged_categories",
    "require_categories",
    "require_few_categories",
]

Categories = Mapping[str, Floats]
"""For each categorical feature its values, increasing."""

LARGEST = 2**31 - 1
"""Largest value of a category."""

TABLE = 1 << 16
"""Values below this are found by marking them in a table, which is faster than sorting."""


def bits_of_codes(codes: ArrayLike) -> NDArray[np.uint64]:
    """Set of bin codes as bits, the layout of the field `categories` of a node.

    Examples
    --------
    >>> bits_of_codes([0, 2, 64])
    array([5, 1, 0, 0], dtype=uint64)
    """
    marked = np.zeros(BINS, dtype=np.uint8)
    marked[np.asarray(codes, dtype=np.intp)] = 1
    return np.packbits(marked, bitorder="little").view(np.dtype("<u8")).astype(np.uint64)


def codes_of_bits(bits: ArrayLike) -> NDArray[np.intp]:
    """Bin codes of a set, increasing.

    Examples
    --------
    >>> codes_of_bits(bits_of_codes([64, 0, 2]))
    array([ 0,  2, 64])
    """
    words = np.asarray(bits, dtype=np.dtype("<u8"))
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


def require_categories(dataset: Dataset, names: Sequence[str]) -> None:
    """Refuse values of categorical features that are no categories, in nominal and in varied events."""
    if not names:
        return
    for sample in dataset.samples:
        _require_values(sample.events, names, f"sample {sample.name}")
    for source in dataset.systematics:
        for direction, _ in source.directions:
            for process, events in dataset.varied(source.name, direction).items():
                _require_values(events, names, f"systematic {source.name}, {direction} variation of {process}")


def _require_values(events: Events, names: Sequence[str], what: str) -> None:
    for name in names:
        values = np.asarray(events.column(name))
        wrong = (values < 0) | (values > LARGEST)
        if values.dtype.kind == "f":
            wrong |= np.isfinite(values) & (values != np.floor(values))
        if wrong.any():
            raise DataError(
                f"{what}: feature {name} is categorical and has the value {values[wrong][0]:.12g}: categories are "
                f"whole numbers from 0 to {LARGEST}, or missing (NaN); number them so, or do not declare it categorical"
            )


def categories_of(dataset: Dataset, names: Sequence[str]) -> dict[str, Floats]:
    """Return the values that categorical features take in nominal events of non-zero weight."""
    events = [sample.events for role in (Role.SIGNAL, Role.BACKGROUND) for sample in dataset.of_role(role)]
    return {name: _union(_distinct(one, name) for one in events) for name in names}


def _distinct(events: Events, name: str) -> Floats:
    values = np.asarray(events.column(name))[events.weight != 0]
    values = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if values.size and values.max() < TABLE:
        seen = np.zeros(TABLE, dtype=np.bool_)
        seen[values.astype(np.intp)] = True
        return np.flatnonzero(seen).astype(np.float64)
    return np.unique(values).astype(np.float64)


def merged_categories(one: Categories, other: Categories) -> dict[str, Floats]:
    """Categories that either of two sets of events has."""
    return {name: _union((values, other[name])) for name, values in one.items()}


def _union(parts: Iterable[Floats]) -> Floats:
    return np.unique(np.concatenate([np.zeros(0), *parts]))


def require_few_categories(categories: Categories, max_bins: int) -> None:
    """Refuse a feature with more categories than there are bins, one of which is for missing values."""
    for name, values in categories.items():
        if values.size > max_bins - 1:
            raise DataError(
                f"feature {name} is categorical and has {values.size} categories: at most {max_bins - 1} "
                "(max_bins - 1) are possible; merge rare ones, or do not declare it categorical"
            )
