"""What boosting by residuals does row by row: pairs for the next tree, outputs of the last one, sums over leaves.

Everything that is summed is first rounded to a multiple of a power of two, so that sums are exact and do not depend on
order. Kernels pass over rows in the order in which these lie in memory: those of one leaf alone are scattered over it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from qbdt.arrays import Fixed, Floats, Indices, Rows


@njit(cache=True, nogil=True)
def exponential(x: float) -> float:
    """exp(x) for x ≤ 0 to about 10⁻¹¹, or exp(−64) below −64, where nothing is left of a row.

    The series of exp(x/256), then its 256th power: products and sums only, so that many rows are treated at once, and a
    device or another machine gives the same bits.
    """
    y = max(x, -64.0) / 256.0
    series = y * (1.0 / 40320.0) + 1.0 / 5040.0
    series = series * y + 1.0 / 720.0
    series = series * y + 1.0 / 120.0
    series = series * y + 1.0 / 24.0
    series = series * y + 1.0 / 6.0
    series = series * y + 0.5
    series = series * y + 1.0
    power = series * y + 1.0
    power *= power
    power *= power
    power *= power
    power *= power
    power *= power
    power *= power
    power *= power
    return power * power


@njit(cache=True, nogil=True, error_model="numpy")
def logistic_pairs(
    weight: Floats, log_ratio: Floats, is_signal: bool, numerator_scale: float, denominator_scale: float, out: Fixed
) -> None:
    """Minus the gradient, w (y − p), and the curvature, w p (1 − p), of the logistic loss at p = 1/(1 + exp(−F))."""
    for i in range(weight.size):
        small = exponential(-abs(log_ratio[i]))  # of the two exponentials the one that cannot overflow
        likely = 1.0 / (1.0 + small)
        unlikely = small * likely
        p, rest = (likely, unlikely) if log_ratio[i] > 0.0 else (unlikely, likely)
        gradient = weight[i] * rest if is_signal else -weight[i] * p
        out[2 * i] = np.int64(np.rint(gradient * numerator_scale))
        out[2 * i + 1] = np.int64(np.rint(weight[i] * p * rest * denominator_scale))


@njit(cache=True, nogil=True)
def number_leaves(rows: Rows, ranges: Fixed, leaf_of: Rows) -> None:
    """Write the leaf of each row: those of `ranges`, (leaf, begin, end), are `rows[begin:end]`."""
    for p in range(ranges.shape[0]):
        for i in range(ranges[p, 1], ranges[p, 2]):
            leaf_of[np.uint32(rows[i])] = ranges[p, 0]  # unsigned: numba asks of others if they are negative


@njit(cache=True, nogil=True)
def add_outputs(current: Floats, leaf_of: Rows, outputs: Floats) -> None:
    """Add the outputs of its leaf, (leaf, number), to the numbers of each row."""
    width = outputs.shape[1]
    for i in range(leaf_of.size):
        leaf = np.uint32(leaf_of[i])
        for k in range(width):
            current[i * width + k] += outputs[leaf, k]


@njit(cache=True, nogil=True)
def shift_pairs(
    weight: Floats,
    columns: Floats,
    current: Floats,
    common: float,
    column_coefficients: Floats,
    coefficients: Floats,
    mean: float,
    numerator_scale: float,
    denominator_scale: float,
    out: Fixed,
) -> None:
    """Σ_k c_k (Δ_k − n (m_k + f_k)) and n of nominal rows, n = w + w².

    Parameters
    ----------
    weight
        Weights of the rows.
    columns, column_coefficients
        Shifts given row by row, flat, and the c_k of these columns.
    current, coefficients
        The f_k of the rows so far, flat, and all c_k.
    common
        Σ_k c_k a_k for shifts that are multiples a_k of the weight.
    mean
        Σ_k c_k m_k of the mean relative shifts m_k.
    """
    n_columns, n_sources = column_coefficients.size, coefficients.size
    for i in range(weight.size):
        shift = weight[i] * common
        for j in range(n_columns):
            shift += columns[i * n_columns + j] * column_coefficients[j]
        fitted = mean
        for k in range(n_sources):
            fitted += current[i * n_sources + k] * coefficients[k]
        n = weight[i] + weight[i] * weight[i]
        out[2 * i] = np.int64(np.rint((shift - n * fitted) * numerator_scale))
        out[2 * i + 1] = np.int64(np.rint(n * denominator_scale))


@njit(cache=True, nogil=True)
def sum_weights(weight: Floats, leaf_of: Rows, scale: float, out: Fixed) -> None:
    """Add the weight of each row to the sum of its leaf."""
    for i in range(leaf_of.size):
        out[np.uint32(leaf_of[i])] += np.int64(np.rint(weight[i] * scale))


@njit(cache=True, nogil=True)
def sum_nominal(
    weight: Floats,
    ratio: Floats,
    current: Floats,
    columns: Floats,
    leaf_of: Rows,
    scales: Floats,
    current_scales: Floats,
    column_scales: Floats,
    out: Fixed,
) -> None:
    """Add w, n, n r₀ of each strength, all n f_k and all columns of nominal rows to the sums of their leaves."""
    n_columns, n_sources, n_ratios = column_scales.size, current_scales.size, scales.size - 2
    first = 2 + n_ratios
    for i in range(leaf_of.size):
        own = out[np.uint32(leaf_of[i])]
        w = weight[i]
        n = w + w * w
        own[0] += np.int64(np.rint(w * scales[0]))
        own[1] += np.int64(np.rint(n * scales[1]))
        for j in range(n_ratios):
            own[2 + j] += np.int64(np.rint(n * ratio[i * n_ratios + j] * scales[2 + j]))
        for k in range(n_sources):
            own[first + k] += np.int64(np.rint(n * current[i * n_sources + k] * current_scales[k]))
        for j in range(n_columns):
            own[first + n_sources + j] += np.int64(np.rint(columns[i * n_columns + j] * column_scales[j]))


@njit(cache=True, nogil=True)
def add_up_to(values: Indices, weight: Floats, scale: float, keys: Indices, out: Fixed) -> None:
    """Add |w| of each row, in units, to the first of some increasing keys that is not below its value."""
    # Halving without a branch, which every second row would mispredict.
    for i in range(values.size):
        value, low, n = values[i], np.int64(0), keys.size
        while n > 1:
            half = n // 2
            low += half * np.int64(keys[low + half - 1] < value)
            n -= half
        low += np.int64(keys[low] < value)
        out[low] += np.int64(np.rint(abs(weight[i]) * scale))
