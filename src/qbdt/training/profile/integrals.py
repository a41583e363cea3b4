"""Integrals over held-out events that say how good a score is, and which combination of the f's is best.

A score t = Σ_a v_a f_a, with f_0 = r₀, f_1 = 1 and then the fitted shifts, estimates μ by ∫ (N − b) t / ∫ s t. Its
variance is

    σ_μ² = [∫ n t² + Σ_k (∫ Δ_k t)²] / (∫ s t)² = vᵀ (G + DᵀD) v / (a·v)²,

with a_a = ∫ s f_a, G_ab = ∫ n f_a f_b, D_ka = ∫ Δ_k f_a and unit-Gaussian priors. It is smallest for v ∝ (G + DᵀD)⁻¹ a.
For exact f's this is t* with v = (1, −c), c_k = ∫ Δ_k t*; for imperfect ones it is the best that can be done with them:
an f that is noise gets no weight, since it adds to G and removes nothing from D.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.training.profile.shift_sums import LeafSums

__all__ = ["Integrals"]

RIDGE = 1e-3
"""Added to the diagonal of (G + DᵀD) scaled to ones there, so that nearly equal f's do not cancel with large
coefficients; below the MC precision of its entries."""


@dataclass
class Integrals:
    """a, G and D of r₀, a constant and K fitted shifts, in events."""

    signal: Floats
    gram: Floats
    shifts: Floats

    @classmethod
    def without_shifts(cls, signal: Floats, gram: Floats, shifts: Floats) -> Integrals:
        """Integrals with no shift fitted yet: those of r₀ and a constant."""
        more = len(shifts)
        return cls(np.pad(signal, (0, more)), np.pad(gram, (0, more)), np.pad(shifts, ((0, 0), (0, more))))

    def add_tree(self, held: LeafSums, outputs: Floats) -> None:
        """Take note that the f_k of each leaf's events grow by its outputs (leaf, source).

        With o_k the output of the leaf j that an event falls into, f_k → f_k + o_k changes the integrals by sums over
        leaves: a_k by Σ_j s_j o_k; G_0k, G_1k by Σ_j (∫_j n r₀) o_k, Σ_j n_j o_k; G_kl by Σ_j (∫_j n f_k) o_l + (k ↔ l)
        + n_j o_k o_l; D_lk by Σ_j Δ_l,j o_k.
        """
        mixed = held.fitted.T @ outputs
        self.signal[2:] += held.signal @ outputs
        self.gram[:2, 2:] += np.stack([held.ratio, held.n]) @ outputs
        self.gram[2:, :2] = self.gram[:2, 2:].T
        self.gram[2:, 2:] += mixed + mixed.T + (outputs * held.n[:, None]).T @ outputs
        self.shifts[:, 2:] += held.shifts.T @ outputs

    def copy(self) -> Integrals:
        """Return independent numbers."""
        return Integrals(self.signal.copy(), self.gram.copy(), self.shifts.copy())

    def __add__(self, other: Integrals) -> Integrals:
        return Integrals(self.signal + other.signal, self.gram + other.gram, self.shifts + other.shifts)

    def scaled(self, factor: float) -> Integrals:
        """Integrals over so many times more events."""
        return Integrals(factor * self.signal, factor * self.gram, factor * self.shifts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name).tolist() for name in ("signal", "gram", "shifts")}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], n_sources: int) -> Integrals:
        """Inverse of `to_dict`."""
        size = n_sources + 2
        shapes = {"signal": (size,), "gram": (size, size), "shifts": (n_sources, size)}
        return cls(**{name: np.array(plain[name], dtype=np.float64).reshape(shape) for name, shape in shapes.items()})

    def best(self) -> Floats:
        """Coefficients v ∝ (G + DᵀD)⁻¹ a of the best score, scaled to v_0 = 1.

        The matrix is brought to a unit diagonal first, so that the ridge is relative, whatever the units of the f's.
        Where r₀ would count negative, which only noise does, the score is r₀ alone.
        """
        matrix = self.gram + self.shifts.T @ self.shifts
        size = np.sqrt(np.diag(matrix))
        used = size > 0
        v = np.zeros(len(size))
        unit = matrix[np.ix_(used, used)] / np.outer(size[used], size[used])
        unit[np.diag_indices_from(unit)] += RIDGE
        v[used] = np.linalg.solve(unit, self.signal[used] / size[used]) / size[used]
        if not v[0] > 0:
            v[:] = 0.0
            v[0] = 1.0
        return np.asarray(v / v[0])

    def pulls(self, v: Floats) -> Floats:
        """Return c_k = ∫ Δ_k t of a score."""
        return np.asarray(self.shifts @ v)

    def uncertainty(self) -> float:
        """σ_μ of the best score."""
        v = self.best()
        pulls = self.pulls(v)
        return math.sqrt(max(float(v @ self.gram @ v + pulls @ pulls), 0.0)) / float(self.signal @ v)
