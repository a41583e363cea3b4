"""How much of each shift a prediction gives up, found on held-out events.

With g the prediction of the smallest loss, h_k the fitted relative shifts Δ_k/n and S_k(f) = ∫ Δ_k f − f̄ ∫ Δ_k, the
shift of the sum of predictions f under source k, the prediction f = g + Σ_k c_k h_k has

    L = ∫ n (z − c·h)² + Σ_k S_k(g + c·h)²        (docs/regression.md),

with z the influence of an event, y − g for the squared loss. It is smallest for (G + DᵀD) c = a − Dᵀ d, where
a_k = ∫ n z h_k, G_kl = ∫ n h_k h_l, D_kl = S_k(h_l) and d_k = S_k(g); all functions less their means, since a constant
is free. The pulls are S_k of the result, and for exact h_k the same as −c_k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qbdt.arrays import Floats
from qbdt.training.profile.integrals import RIDGE, Integrals
from qbdt.training.regression.regression_events import Scales

PREDICTION, INFLUENCE, CONSTANT = 0, 1, 2
"""Places of g, z and 1 before the fitted shifts, in integrals."""


class ProfiledShifts(NamedTuple):
    """Result of profiling."""

    # coefficients, constant: c_k, and what is added to all predictions so that their mean stays
    coefficients: Floats
    constant: float
    # unprofiled, pulls: s_k of g, and of the result
    unprofiled: Floats
    pulls: Floats
    loss: float  # L of the result less that of g


def profile_shifts(integrals: Integrals, scales: Scales, known: Floats) -> ProfiledShifts:
    """Best coefficients of the fitted shifts; of each source's squared effects the share `known` is no MC noise."""
    gram, shifts, fitted = integrals.gram, integrals.shifts, slice(CONSTANT + 1, None)
    means = gram[CONSTANT] / gram[CONSTANT, CONSTANT]
    centred = gram - np.outer(means, means) * gram[CONSTANT, CONSTANT]
    effects = shifts - np.outer(shifts[:, CONSTANT], means)
    unprofiled = effects[:, PREDICTION] * scales.prediction
    weighted = np.sqrt(known)[:, None] * effects[:, fitted]
    own = centred[fitted, fitted]
    linear = centred[INFLUENCE, fitted] * scales.influence - weighted.T @ (np.sqrt(known) * unprofiled)
    c = _solve(own + weighted.T @ weighted, linear)
    pulls = unprofiled + effects[:, fitted] @ c
    charged = float(known @ (pulls**2 - unprofiled**2))
    loss = charged + float(c @ own @ c - 2 * c @ centred[INFLUENCE, fitted] * scales.influence)
    constant = float(means[INFLUENCE] * scales.influence - means[fitted] @ c)
    return ProfiledShifts(c, constant, unprofiled, pulls, loss)


def _solve(matrix: Floats, column: Floats) -> Floats:
    """Solve with a ridge on the matrix scaled to a unit diagonal; zero for functions that are zero."""
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    used = size > 0
    unit = matrix[np.ix_(used, used)] / np.outer(size[used], size[used])
    unit[np.diag_indices_from(unit)] += RIDGE
    found = np.zeros(len(column))
    found[used] = np.linalg.solve(unit, column[used] / size[used]) / size[used]
    return found


def effects_in_blocks(blocks: Floats, mean: float) -> Floats:
    """S_k of g in blocks of events, as (block, source, 1), from ∫ Δ_k f as (block, source, f) and the mean of g."""
    return np.asarray(blocks[:, :, [PREDICTION]] - mean * blocks[:, :, [CONSTANT]])
