"""Exact sums over rows: integers that add up over partitions, and are rounded once."""

from __future__ import annotations

import math

import numpy as np

from qbdt.arrays import Fixed, Floats
from qbdt.trees.kernels.exact import LIMB_BITS, LIMBS, LOWEST, add_exactly

__all__ = ["binned_sums", "exact_sum", "rounded"]


def binned_sums(values: Floats, bins: Fixed, n_bins: int) -> Fixed:
    """Exact sums of the values in each bin, as (bin, limb): what `rounded` reads, and what may be added up."""
    sums = np.zeros((n_bins, LIMBS), dtype=np.int64)
    add_exactly(np.ascontiguousarray(values), np.ascontiguousarray(bins), sums)
    return sums


def exact_sum(values: Floats) -> Fixed:
    """Exact sum of some values, as limbs.

    Examples
    --------
    >>> float(rounded(exact_sum(np.array([1e100, 1.0, -1e100])) + exact_sum(np.array([2.0]))))
    3.0
    """
    return np.asarray(binned_sums(values, np.zeros(len(values), dtype=np.int64), 1)[0])


def rounded(sums: Fixed) -> Floats:
    """Nearest floating-point numbers of exact sums, whose last axis are limbs."""
    flat = sums.reshape(-1, LIMBS)
    numbers = [_nearest(sum(int(row[i]) << (LIMB_BITS * int(i)) for i in np.flatnonzero(row))) for row in flat]
    return np.array(numbers, dtype=np.float64).reshape(sums.shape[:-1])


def _nearest(whole: int) -> float:
    try:
        return float(whole / 2**LOWEST)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
