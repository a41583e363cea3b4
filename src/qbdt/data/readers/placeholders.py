"""Values that mean "missing" in a branch: replaced by NaN, and where they were."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def mask_placeholders(values: Any, placeholders: tuple[float, ...]) -> Any:
    """Values with placeholders replaced by NaN; the same array where there are none."""
    if not placeholders:
        return values
    if not isinstance(values, np.ndarray):
        return _mask_jagged_placeholders(values, placeholders)
    if values.dtype.kind not in "iuf":
        return values
    marked = np.isin(values, _as_stored(placeholders, values.dtype))
    if not marked.any():
        return values
    dtype = values.dtype.newbyteorder("=") if values.dtype.kind == "f" else np.float64
    return np.where(marked, np.nan, values).astype(dtype, copy=False)


def _as_stored(placeholders: tuple[float, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Placeholders as a branch of this type holds them: −99.9 in single precision is not −99.9 in double.

    One that is too large for the type does not occur in the branch; infinity, which it would become, may.
    """
    numbers = np.array([p for p in placeholders if not np.isnan(p)], dtype=np.float64)
    if dtype.kind != "f":
        return numbers
    with np.errstate(over="ignore"):
        stored = numbers.astype(dtype.newbyteorder("="))
    return np.asarray(stored[np.isinf(stored) == np.isinf(numbers)])


def _mask_jagged_placeholders(values: Any, placeholders: tuple[float, ...]) -> Any:
    import awkward as ak

    if values.ndim != 2:
        return values
    flat = ak.to_numpy(ak.flatten(values))
    replaced = mask_placeholders(flat, placeholders)
    return values if replaced is flat else ak.unflatten(replaced, ak.num(values))


def may_be_missing(raw: Any, clean: Any) -> NDArray[np.bool_]:
    """Rows in which a branch has a placeholder, or has too few elements to pick one."""
    if isinstance(raw, np.ndarray):
        if clean is raw:
            return np.zeros(len(raw), dtype=np.bool_)
        replaced = np.isnan(clean) & ~np.isnan(raw.astype(np.float64, copy=False))
        return np.asarray(replaced if replaced.ndim == 1 else replaced.any(axis=1))
    import awkward as ak

    return np.asarray(~ak.any(np.isnan(raw), axis=1))
