"""Integrals over held-out events that say how good a score is, and which combination of the f's is best.

A score t = Σ_a v_a f_a, with f_0 = r₀ and f_k the fitted shifts, estimates μ by ∫ (N − b) t / ∫ s t. Its variance is

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

from qbdt.dtypes import Yields
from qbdt.store import LeafSums

__all__ = ["Integrals"]

RIDGE = 1e-3
"""Added to the diagonal of (G + DᵀD) scaled to ones there: below what its entries are known to."""


@dataclass
class Integrals:
    """a, G and D of r₀ and K fitted shifts, in events."""

    signal: Yields
    gram: Yields
    shifts: Yields

    @classmethod
    def of_ratio(cls, signal: float, square: float, shifts: Yields) -> Integrals:
        """Integrals with no shift fitted yet: ∫ s r₀, ∫ n r₀², ∫ Δ_k r₀."""
        size = len(shifts) + 1
        a, gram, moved = np.zeros(size), np.zeros((size, size)), np.zeros((size - 1, size))
        a[0], gram[0, 0], moved[:, 0] = signal, square, shifts
        return cls(a, gram, moved)

    def add_tree(self, held: LeafSums, outputs: Yields) -> None:
        """Take note that the f_k of each leaf's events grow by its outputs (leaf, source)."""
        mixed = held.fitted.T @ outputs
        self.signal[1:] += held.signal @ outputs
        self.gram[0, 1:] += held.ratio @ outputs
        self.gram[1:, 0] = self.gram[0, 1:]
        self.gram[1:, 1:] += mixed + mixed.T + (outputs * held.n[:, None]).T @ outputs
        self.shifts[:, 1:] += held.shifts.T @ outputs

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
        size = n_sources + 1
        shapes = {"signal": (size,), "gram": (size, size), "shifts": (n_sources, size)}
        return cls(**{name: np.array(plain[name], dtype=np.float64).reshape(shape) for name, shape in shapes.items()})

    def best(self) -> Yields:
        """Coefficients v of the best score, scaled to v_0 = 1."""
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

    def pulls(self, v: Yields) -> Yields:
        """Return c_k = ∫ Δ_k t of a score."""
        return np.asarray(self.shifts @ v)

    @property
    def plain(self) -> Yields:
        """Coefficients of the score r₀ alone."""
        v = np.zeros(len(self.signal))
        v[0] = 1.0
        return v

    def uncertainty(self, v: Yields, sources: Yields | None = None) -> float:
        """σ_μ of a score, with all sources or those marked."""
        pulls = self.pulls(v) if sources is None else self.pulls(v)[sources]
        variance = float(v @ self.gram @ v + pulls @ pulls)
        return math.sqrt(max(variance, 0.0)) / float(self.signal @ v)
