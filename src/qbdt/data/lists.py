"""Columns with several values per event: elements, conditions on them, orders, and reductions to one value per event.

In: awkward arrays of lists, or numpy arrays of equally long ones. Out: lists, or a numpy array with one value per
event. Everything is one pass over flat arrays; nothing here loops over events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.errors import ExpressionError


def has_lists(value: Any) -> bool:
    """Whether a value has several entries per event."""
    return not isinstance(value, np.ndarray) and getattr(value, "ndim", 0) > 1


def as_lists(values: Any) -> Any:
    """Equally long lists of a numpy array as awkward lists, which columns with one value per event broadcast to.

    Examples
    --------
    >>> (as_lists(np.array([[1.0, 2.0], [3.0, 4.0]])) * np.array([1, 10])).tolist()
    [[1.0, 2.0], [30.0, 40.0]]
    """
    if not isinstance(values, np.ndarray) or (values.ndim <= 1 and values.dtype != object):
        return values
    import awkward as ak

    return ak.from_iter(values) if values.dtype == object else ak.from_regular(ak.from_numpy(values), axis=None)


def _require_lists(function: str, values: Any) -> Any:
    lists = as_lists(values)
    if not has_lists(lists):
        raise ExpressionError(f"{function} on a column that has one value per event")
    if lists.ndim > 2:
        raise ExpressionError(f"{function} on lists of lists; pick an element first, for example [0]")
    return lists


def pick_element(values: Any, index: int) -> NDArray[Any]:
    """Element `index` of each event's list, counted from the end where it is negative; NaN where there are too few."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        there = -values.shape[1] <= index < values.shape[1]
        return np.asarray(values[:, index]) if there else np.full(len(values), np.nan)
    import awkward as ak

    array = as_lists(values)
    if getattr(array, "ndim", 0) < 2:
        raise ExpressionError(f"[{index}] on a column that has one value per event")
    n_elements = ak.to_numpy(ak.num(array, axis=1))
    enough = n_elements > index if index >= 0 else n_elements >= -index
    if enough.all():
        return np.asarray(ak.to_numpy(array[:, index]))
    found = ak.to_numpy(array[enough][:, index])
    element = np.full((len(array), *found.shape[1:]), np.nan, dtype=np.result_type(found.dtype, np.float64))
    element[enough] = found
    return np.asarray(element)


def filter_lists(values: Any, condition: Any) -> Any:
    """Elements of each list for which a condition holds, in their order."""
    import awkward as ak

    lists, chosen = _require_lists("[…]", values), as_lists(condition)
    if not has_lists(chosen) or _flat(chosen).dtype != np.bool_:
        raise ExpressionError("[…] takes a number, or a condition on lists such as jet_pt[jet_pt > 30]")
    if not np.array_equal(_lengths(lists), _lengths(chosen)):
        raise ExpressionError("[…]: the lists and the condition on them have different lengths")
    mask = _flat(chosen)
    kept = ak.to_numpy(ak.sum(chosen, axis=1))
    return ak.unflatten(_flat(lists)[mask], kept)


def sort_descending(values: Any, by: Any = None) -> Any:
    """Lists in descending order of another column's lists, or of their own values; missing values come last."""
    import awkward as ak

    lists = _require_lists("descending", values)
    keys = lists if by is None else _require_lists("descending", by)
    if by is not None and not np.array_equal(_lengths(lists), _lengths(keys)):
        raise ExpressionError("descending: the lists and those they are ordered by have different lengths")
    flat = _flat(keys)
    if flat.dtype.kind == "f" and np.isnan(flat.sum()):
        keys = ak.unflatten(np.where(np.isnan(flat), -np.inf, flat), _lengths(keys))
    return lists[ak.argsort(keys, axis=1, ascending=False, stable=True)]


def map_elements(lists: Any, change: Callable[[Any], Any]) -> Any:
    """Lists whose elements are changed by a function of flat arrays; the same lists where it changes nothing."""
    import awkward as ak

    if lists.ndim > 2:
        return lists
    flat = _flat(lists)
    changed = change(flat)
    return lists if changed is flat else ak.unflatten(changed, _lengths(lists))


def is_condition(value: Any) -> bool:
    """Whether values are true or false, and not numbers."""
    return bool((_flat(value) if has_lists(value) else np.asarray(value)).dtype == np.bool_)


def choose(condition: Any, yes: Any, no: Any) -> Any:
    """One value where a condition holds, another elsewhere; any of the three may be lists."""
    if not any(has_lists(value) for value in (condition, yes, no)):
        return np.where(condition, yes, no)
    import awkward as ak

    return ak.where(*ak.broadcast_arrays(condition, yes, no))


def _lengths(lists: Any) -> NDArray[Any]:
    import awkward as ak

    return np.asarray(ak.to_numpy(ak.num(lists, axis=1)))


def _flat(lists: Any) -> NDArray[Any]:
    import awkward as ak

    return np.asarray(ak.to_numpy(ak.flatten(lists, axis=1)))


def _sum(lists: Any) -> NDArray[Any]:
    import awkward as ak

    return np.asarray(ak.to_numpy(ak.sum(_in_double(lists), axis=1)))


def _in_double(lists: Any) -> Any:
    """Numbers of single precision as double: a sum of many is otherwise rounded at each step."""
    import awkward as ak

    return ak.values_astype(lists, np.float64) if _flat(lists).dtype == np.float32 else lists


def _extreme(name: str) -> Callable[[Any], NDArray[Any]]:
    """Largest or smallest element; missing where there is none, or where one of them is missing."""

    def find(lists: Any) -> NDArray[Any]:
        import awkward as ak

        found = np.asarray(ak.to_numpy(getattr(ak, name)(lists, axis=1, mask_identity=False)))
        flat, missing = _flat(lists), _lengths(lists) == 0
        if flat.dtype.kind == "f" and np.isnan(flat.sum()):
            missing |= np.asarray(ak.any(np.isnan(lists), axis=1))
        return np.where(missing, np.nan, found) if missing.any() else found

    return find


def _truth(name: str) -> Callable[[Any], NDArray[Any]]:
    def find(lists: Any) -> NDArray[Any]:
        import awkward as ak

        return np.asarray(ak.to_numpy(getattr(ak, name)(lists, axis=1)))

    return find


def _reduction(name: str, reduce: Callable[[Any], NDArray[Any]]) -> Callable[[Any], NDArray[Any]]:
    return lambda values: reduce(_require_lists(name, values))


REDUCTIONS: dict[str, Callable[[Any], NDArray[Any]]] = {
    name: _reduction(name, reduce)
    for name, reduce in {
        "all": _truth("all"),
        "any": _truth("any"),
        "len": _lengths,
        "max": _extreme("max"),
        "min": _extreme("min"),
        "sum": _sum,
    }.items()
}
"""Functions that make one value per event of its list. Of an empty list: all is true, any false, len and sum 0, max and
min missing."""
