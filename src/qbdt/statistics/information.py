"""Fisher information of a binned likelihood about the signal strength, with the nuisance parameters profiled out.

I* = 1/σ_μ²; templates, their binning and the profiled training share it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qbdt.arrays import Floats

__all__ = ["information_matrix", "profiled_information"]


def information_matrix(signal: ArrayLike, shifts: ArrayLike, variance: ArrayLike) -> Floats:
    """Fisher information of (μ, θ₁ … θ_K) with unit-Gaussian priors on the θ.

    I_ab = Σ_i a_i b_i / v_i + δ_ab for the θ, where a, b run over (s, Δ₁ … Δ_K) and v is the variance of the bin
    content: the expected events plus the MC variance. Leading axes are batches.

    Parameters
    ----------
    signal
        Signal per bin, shape (…, bins); events.
    shifts
        Change of the expected events for θ_k = +1, shape (…, sources, bins); may have no sources.
    variance
        Variance of the bin contents, shape (…, bins), positive; events².

    Returns
    -------
    ndarray
        Shape (…, 1 + sources, 1 + sources); the signal strength comes first.

    Examples
    --------
    >>> information_matrix([3.0, 1.0], [[2.0, 0.0]], [9.0, 1.0])
    array([[2.        , 0.66666667],
           [0.66666667, 1.44444444]])
    """
    rows = np.concatenate([np.asarray(signal, float)[..., None, :], np.asarray(shifts, float)], axis=-2)
    bins = np.asarray(variance, float)[..., None, :]
    with np.errstate(over="ignore"):
        scaled = rows / bins
    if not np.all(np.isfinite(scaled)):  # a/v leaves the range of doubles, where a²/v = (a/√v)² may be within
        rows = scaled = rows / np.sqrt(bins)
    matrix: NDArray[Any] = scaled @ np.swapaxes(rows, -1, -2)
    prior = np.ones(rows.shape[-2])
    prior[0] = 0.0
    return np.asarray(matrix + np.diag(prior), dtype=np.float64)


def profiled_information(signal: ArrayLike, shifts: ArrayLike, variance: ArrayLike) -> Floats:
    """Return I* = I_μμ − I_μθ I_θθ⁻¹ I_θμ = 1/σ_μ² of templates; shapes as in `information_matrix`.

    Examples
    --------
    >>> float(profiled_information([3.0, 1.0], [[2.0, 0.0]], [9.0, 1.0]).round(6))
    1.692308
    """
    matrix = information_matrix(signal, shifts, variance)
    nuisance, mixed = matrix[..., 1:, 1:], matrix[..., 1:, 0]
    solved = np.linalg.solve(nuisance, mixed[..., None])[..., 0]
    return np.asarray(matrix[..., 0, 0] - np.sum(mixed * solved, axis=-1))
