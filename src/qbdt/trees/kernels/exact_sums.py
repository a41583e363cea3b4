"""Exact sums of floating-point numbers: integers that add up over partitions in any order, and are rounded once."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from qbdt.arrays import Fixed, Floats

LIMB_BITS = 32
"""A sum is an integer cut into limbs of so many bits; in 64 bits, limbs take 2^31 additions without a carry."""

LOWEST = 1126
"""The first limb's lowest bit is worth 2^−1126: that of the mantissa of the smallest number there is."""

LIMBS = 68
"""Enough for the largest number there is, and what spills over."""


@njit(cache=True, nogil=True)
def add_exactly(values: Floats, bins: Fixed, out: Fixed) -> None:
    """Add finite values to the sums (bin, limb) of their bins, and carry, so that 2^31 of such sums can be added."""
    mask = np.int64(2**LIMB_BITS - 1)
    for i in range(values.size):
        fraction, exponent = math.frexp(values[i])
        whole = np.int64(fraction * 2.0**53)
        position = exponent - 53 + LOWEST
        limb, shift = position >> 5, position & 31
        low = (whole & mask) << shift
        high = (whole >> LIMB_BITS) << shift  # carries the sign
        out[bins[i], limb] += low & mask
        out[bins[i], limb + 1] += (low >> LIMB_BITS) + (high & mask)
        out[bins[i], limb + 2] += high >> LIMB_BITS
    for b in range(out.shape[0]):
        for limb in range(LIMBS - 1):
            out[b, limb + 1] += out[b, limb] >> LIMB_BITS
            out[b, limb] &= mask


def sum_in_bins(values: Floats, bins: Fixed, n_bins: int) -> Fixed:
    """Exact sums of the values in each bin, as (bin, limb): what `round_sums` reads, and what may be added up."""
    sums = np.zeros((n_bins, LIMBS), dtype=np.int64)
    given = np.ascontiguousarray(values).view()
    given.flags.writeable = False  # of all values, or the kernel is compiled twice
    add_exactly(given, np.ascontiguousarray(bins), sums)
    return sums


def exact_sum(values: Floats) -> Fixed:
    """Exact sum of some values, as limbs.

    Examples
    --------
    >>> float(round_sums(exact_sum(np.array([1e100, 1.0, -1e100])) + exact_sum(np.array([2.0]))))
    3.0
    """
    return np.asarray(sum_in_bins(values, np.zeros(len(values), dtype=np.int64), 1)[0])


def round_sums(sums: Fixed) -> Floats:
    """Nearest floating-point numbers of exact sums, whose last axis are limbs."""
    flat = sums.reshape(-1, LIMBS)
    numbers = [_nearest(sum(int(row[i]) << (LIMB_BITS * int(i)) for i in np.flatnonzero(row))) for row in flat]
    return np.array(numbers, dtype=np.float64).reshape(sums.shape[:-1])


def _nearest(whole: int) -> float:
    try:
        return float(whole / 2**LOWEST)
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
