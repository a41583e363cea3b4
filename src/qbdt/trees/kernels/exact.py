"""Sums of floating-point numbers without any rounding, whatever their order and size."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from qbdt.arrays import Fixed, Floats

__all__ = ["LIMBS", "LIMB_BITS", "LOWEST", "add_exactly"]

LIMB_BITS = 32
"""A sum is an integer cut into limbs of so many bits; in 64 bits, limbs take 2^31 additions without a carry."""

LOWEST = 1126
"""The first limb's lowest bit is worth 2^−1126: that of the mantissa of the smallest number there is."""

LIMBS = 68
"""Enough for the largest number there is, and what spills over."""


@njit(cache=True, nogil=True)
def add_exactly(values: Floats, bins: Fixed, out: Fixed) -> None:
    """Add finite values to the sums of their bins, and carry, so that 2^31 of such sums can be added.

    Parameters
    ----------
    values, bins
        Numbers, and the sum that each belongs to.
    out
        The sums that are added to, as (bin, limb).
    """
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
