"""Arithmetic of whole numbers with 64 bits that is exact, or refused: nothing wraps around, nothing is rounded.

In: numbers, arrays and lists of a column, as expressions hold them; numbers that are no whole ones go to NumPy as they
are. Out: the same kinds. Signed numbers are int64; unsigned ones that do not fit are uint64.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.data.lists import REDUCTIONS, choose, has_lists, map_elements
from qbdt.errors import ExpressionError

SMALLEST, LARGEST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)

_PLAIN: dict[Callable[..., Any], Callable[[int, int], int]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
}


def widen(values: Any) -> Any:
    """Whole numbers with 64 bits, and with a sign where all of them fit.

    Examples
    --------
    >>> widen(np.array([200], np.uint8)).dtype, widen(np.array([2**64 - 1], np.uint64)).dtype
    (dtype('int64'), dtype('uint64'))
    """
    if has_lists(values):
        return map_elements(values, widen)
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
        return values
    too_large = values.dtype == np.uint64 and values.size and values.max() > LARGEST
    return values.astype(np.uint64 if too_large else np.int64, copy=False)


def read_constant(value: int) -> Any:
    """Return a whole number of an expression, as floating point where no 64 bits hold it."""
    if SMALLEST <= value <= LARGEST:
        return value
    return np.uint64(value) if 0 <= value < 2**64 else float(value)


def as_number(value: Any) -> Any:
    """Conditions as 0 and 1, so that they can be added up."""
    if has_lists(value):
        return map_elements(value, as_number)
    array = np.asarray(value) if isinstance(value, bool | np.bool_ | np.ndarray) else value
    return array.astype(np.int64) if isinstance(array, np.ndarray) and array.dtype == np.bool_ else value


def combine(operate: Callable[..., Any], left: Any, right: Any) -> Any:
    """Add, subtract or multiply; refused where 64 bits do not hold a result.

    Examples
    --------
    >>> combine(np.multiply, np.array([2, 3]), 2**61).tolist()
    [4611686018427387904, 6917529027641081856]
    """
    left, right = match(left, right)
    if _is_whole(left) and _is_whole(right):
        _require_room(operate, left, right)
    return operate(left, right)


def negate(value: Any) -> Any:
    """Minus a number."""
    if isinstance(value, np.uint64):  # a constant: -9223372036854775808 has a sign
        return read_constant(-int(value))
    return combine(np.subtract, 0, value) if _is_whole(value) else np.negative(value)


def absolute(value: Any) -> Any:
    """Absolute value."""
    if _is_whole(value) and _dtype(value) != np.uint64:
        _require_room(np.subtract, 0, value)
    return np.abs(value)


def divide(operate: Callable[..., Any], left: Any, right: Any) -> Any:
    """Floor division or remainder, NaN or infinity where the divisor is zero, and not 0."""
    left, right = match(left, right)
    is_whole = _is_whole(left) and _is_whole(right)
    if is_whole and _range(left)[0] == SMALLEST and _flat(np.equal(left, SMALLEST) & np.equal(right, -1)).any():
        raise _too_large()
    is_zero = np.equal(right, 0)
    if has_lists(left) or has_lists(right):
        return operate(left * 1.0 if _flat(is_zero).any() else left, right)
    if not np.any(is_zero):
        return operate(left, right)
    rounded = operate(np.asarray(left, dtype=np.float64), right)
    if not is_whole:
        return rounded
    return np.where(is_zero, rounded, operate(left, np.where(is_zero, np.ones_like(right), right)))


def compare(operate: Callable[..., Any], left: Any, right: Any) -> Any:
    """Compare two values."""
    is_signed = _is_whole(left) and _is_whole(right) and min(_range(left)[0], _range(right)[0]) < 0
    return operate(left, right) if is_signed else operate(*match(left, right))


def pick_extreme(pick: Callable[..., Any], left: Any, right: Any) -> Any:
    """Larger or smaller one of two values."""
    return pick(*match(left, right))


def choose_exactly(condition: Any, yes: Any, no: Any) -> Any:
    """One value where a condition holds, another elsewhere."""
    return choose(condition, *match(yes, no))


def total(values: Any) -> Any:
    """Sum of each event's list."""
    values = as_number(values)
    if has_lists(values) and _is_whole(values):
        near = np.abs(REDUCTIONS["sum"](values * 1.0)).max(initial=0.0)
        if near >= float(LARGEST) * (1.0 - 1e-9):
            raise _too_large()
    return REDUCTIONS["sum"](values)


def match(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values; signed whole numbers beside unsigned ones get their type, which floating point would round."""
    if not (_is_whole(left) and _is_whole(right)):
        return left, right
    unsigned = [_dtype(side) == np.uint64 for side in (left, right)]
    if not any(unsigned):
        return left, right
    if any(_range(side)[0] < 0 for side in (left, right)):
        raise ExpressionError("whole numbers of 2^63 and more beside negative ones: 64 bits do not hold both")
    return _as_unsigned(left), _as_unsigned(right)


def _as_unsigned(value: Any) -> Any:
    if has_lists(value):
        return map_elements(value, _as_unsigned)
    return np.asarray(value).astype(np.uint64)


def _flat(value: Any) -> NDArray[Any]:
    if not has_lists(value):
        return np.asarray(value)
    import awkward as ak

    return np.asarray(ak.to_numpy(ak.flatten(value, axis=None)))


def _dtype(value: Any) -> np.dtype[Any]:
    return _flat(value).dtype


def _is_whole(value: Any) -> bool:
    return _dtype(value).kind in "iu"


def _range(value: Any) -> tuple[int, int]:
    flat = _flat(value)
    return (int(flat.min()), int(flat.max())) if flat.size else (0, 0)


def _require_room(operate: Callable[..., Any], left: Any, right: Any) -> None:
    """Refuse whole numbers of which a sum, difference or product does not fit into their 64 bits."""
    plain, is_unsigned = _PLAIN[operate], np.uint64 in (_dtype(left), _dtype(right))
    lowest, highest = (0, 2**64 - 1) if is_unsigned else (SMALLEST, LARGEST)

    def fits(results: list[int]) -> bool:
        return all(lowest <= one <= highest for one in results)

    if fits([plain(one, other) for one in _range(left) for other in _range(right)]):  # the extremes of all results
        return
    if has_lists(left) or has_lists(right):
        import awkward as ak

        left, right = (_flat(side) for side in ak.broadcast_arrays(left, right))
    one, other = np.broadcast_arrays(left, right)
    # Results below half the range in floating point are inside it; all others are computed without a limit.
    near = np.abs(operate(one.astype(np.float64), other.astype(np.float64))) >= 2.0**62
    near |= is_unsigned
    if not fits(list(map(plain, one[near].tolist(), other[near].tolist()))):
        raise _too_large()


def _too_large() -> ExpressionError:
    return ExpressionError("a result does not fit into 64 bits; write a factor as 1.0 to compute with floating point")
