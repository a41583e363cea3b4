"""Sending the rows of a node to its two children.

Row numbers of all nodes live in one array; a node owns one range of it per segment, in increasing order, so that later
gathers walk forwards through memory. One thread divides a node in place. Where threads share a node, each divides its
share into a scratch array first and copies it to its place afterwards.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from qbdt.arrays import FEATURES_PER_WORD, Fixed, Rows, Words


@njit(cache=True, nogil=True)
def divide_in_place(
    codes: NDArray[np.uint8],
    step: int,
    goes_right: NDArray[np.uint8],
    rows: Rows,
    whole: bool,
    ranges: Fixed,
    scratch: Rows,
) -> Fixed:
    """Divide all rows of a node by their codes of one feature; return where the right ones begin in each range.

    `codes` begin with that of row 0, and rows are `step` codes apart; the others are as for `divide_rows`; `scratch` is
    used up.
    """
    # Every row is written to both places and one of the two is kept: no branch to mispredict. A left row takes a place
    # that was read before. All places are unsigned: numba asks of others whether they count from the end.
    one, apart = np.uint64(1), np.uint64(step)
    middles = np.empty(ranges.shape[0], np.int64)
    for p in range(ranges.shape[0]):
        begin, end = np.uint64(ranges[p, 1]), np.uint64(ranges[p, 2])
        left, right = begin, begin
        for i in range(begin, end):
            row = np.uint32(i) if whole else np.uint32(rows[i])
            to_right = np.uint64(goes_right[codes[np.uint64(row) * apart]])
            rows[left] = row
            scratch[right] = row
            left += one - to_right
            right += to_right
        middles[p] = left
        for i in range(begin, right):
            rows[left] = scratch[i]
            left += one
    return middles


@njit(cache=True, nogil=True)
def divide_rows(
    words: Words,
    feature: int,
    goes_right: NDArray[np.uint8],
    rows: Rows,
    whole: bool,
    share: Fixed,
    scratch: Rows,
) -> Fixed:
    """Divide a share of a node's rows by their codes of one feature; return how many went left in each of its ranges.

    `goes_right` is 1 for each of the 256 codes whose rows go right. `scratch` receives, for each range of the share,
    the left rows from its begin upwards and the right ones from its end downwards. The others are as for `add_rows`.
    """
    # As above; the right rows are written from the end downwards.
    column = words[feature // FEATURES_PER_WORD]
    shift, byte, one = np.uint64(8 * (feature % FEATURES_PER_WORD)), np.uint64(255), np.uint64(1)
    counts = np.zeros(share.shape[0], np.int64)
    for p in range(share.shape[0]):
        begin, end = np.uint64(share[p, 1]), np.uint64(share[p, 2])
        left, right = begin, end - one
        for i in range(begin, end):
            row = np.uint32(i) if whole else np.uint32(rows[i])
            to_right = np.uint64(goes_right[column[row] >> shift & byte])
            scratch[right] = row
            scratch[left] = row
            left += one - to_right
            right -= to_right
        counts[p] = left - begin
    return counts


@njit(cache=True, nogil=True)
def copy_divided(scratch: Rows, share: Fixed, counts: Fixed, lefts: Fixed, rights: Fixed, rows: Rows) -> None:
    """Copy divided rows to `rows`: of range p of the share the left ones to `lefts[p]`, the right to `rights[p]`."""
    for p in range(share.shape[0]):
        begin, end = share[p, 1], share[p, 2]
        n_left = counts[p]
        for i in range(n_left):
            rows[lefts[p] + i] = scratch[begin + i]
        for i in range(end - begin - n_left):
            rows[rights[p] + i] = scratch[end - 1 - i]
