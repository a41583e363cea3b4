"""Integrals over held-out events that say how good a score is, and which combination of the f's is best.

A score t = Σ_a v_a f_a, with f_0 = r₀, f_1 = 1 and then the fitted shifts, estimates μ by ∫ (N − b) t / ∫ s t. Its
variance is

    σ_μ² = [∫ n t² + Σ_k (∫ Δ_k t)²] / (∫ s t)² = vᵀ (G + DᵀD) v / (a·v)²,

with a_a = ∫ s f_a, G_ab = ∫ n f_a f_b, D_ka = ∫ Δ_k f_a and unit-Gaussian priors. It is smallest for v ∝ (G + DᵀD)⁻¹ a.
For exact f's this is t* with v = (1, −c), c_k = ∫ Δ_k t*; for imperfect ones it is the best that can be done with them:
an f that is noise gets no weight, since it adds to G and removes nothing from D.

In general there are p strengths and so p ratios, f = (r₀₁ … r₀ₚ, 1, f_1 … f_K); parameters of interest may be strengths
or sources; and others know J (`Parameters`). With R the rows a and D of all parameters, what the f's can know is
I = R G⁻¹ Rᵀ, and with C = (I + J)⁻¹ the best score of parameter φ is v = G⁻¹ Rᵀ C_φ/C_φφ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qbdt.arrays import Floats
from qbdt.training.profile.parameters import Parameters, invert_information
from qbdt.training.profile.shift_sums import LeafSums

RIDGE = 1e-3
"""Added to the diagonal of (G + DᵀD) scaled to ones there, so that nearly equal f's do not cancel with large
coefficients; below the MC precision of its entries."""


class BestScores(NamedTuple):
    """Best scores of all parameters of interest.

    Attributes
    ----------
    coefficients
        v of each, as (score, f), scaled such that its own f has 1.
    pulls
        c_k of each, as (score, source).
    sigma
        Uncertainty of all parameters of interest in one number: σ of the only one, or the geometric mean of the
        half-axes of their ellipse.
    covariance
        Covariance of all parameters; None where there is one strength and constrained sources only.
    """

    coefficients: Floats
    pulls: Floats
    sigma: float
    covariance: Floats | None = None


@dataclass
class Integrals:
    """a, G and D of r₀, a constant and K fitted shifts, in events; with several strengths a has a row for each."""

    signal: Floats
    gram: Floats
    shifts: Floats

    @classmethod
    def without_shifts(cls, signal: Floats, gram: Floats, shifts: Floats) -> Integrals:
        """Integrals with no shift fitted yet: those of r₀ and a constant."""
        more = len(shifts)
        grown = np.concatenate([signal, np.zeros((*signal.shape[:-1], more))], axis=-1)
        return cls(grown, np.pad(gram, (0, more)), np.pad(shifts, ((0, 0), (0, more))))

    @property
    def n_ratios(self) -> int:
        """Ratios before the constant: one for each strength."""
        return 1 if self.signal.ndim == 1 else len(self.signal)

    def add_tree(self, held: LeafSums, outputs: Floats) -> None:
        """Take note that the f_k of each leaf's events grow by its outputs (leaf, source).

        With o_k the output of the leaf j that an event falls into, f_k → f_k + o_k changes the integrals by sums over
        leaves: a_k by Σ_j s_j o_k; G_0k, G_1k by Σ_j (∫_j n r₀) o_k, Σ_j n_j o_k; G_kl by Σ_j (∫_j n f_k) o_l + (k ↔ l)
        + n_j o_k o_l; D_lk by Σ_j Δ_l,j o_k.
        """
        mixed, first = held.fitted.T @ outputs, self.n_ratios + 1
        self.signal[..., first:] += held.signal @ outputs
        self.gram[:first, first:] += np.vstack([held.ratio, held.n]) @ outputs
        self.gram[first:, :first] = self.gram[:first, first:].T
        self.gram[first:, first:] += mixed + mixed.T + (outputs * held.n[:, None]).T @ outputs
        self.shifts[:, first:] += held.shifts.T @ outputs

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
    def from_dict(cls, plain: Mapping[str, Any], n_sources: int, n_strengths: int = 1) -> Integrals:
        """Inverse of `to_dict`."""
        size = n_strengths + 1 + n_sources
        of_signal = (size,) if n_strengths == 1 else (n_strengths, size)
        shapes = {"signal": of_signal, "gram": (size, size), "shifts": (n_sources, size)}
        return cls(**{name: np.array(plain[name], dtype=np.float64).reshape(shape) for name, shape in shapes.items()})

    def solve(self, parameters: Parameters) -> BestScores:
        """Return the best scores of all parameters of interest."""
        if parameters.is_plain:
            v = self.best()
            return BestScores(v[None], self.pulls(v)[None], self.uncertainty())
        interest = list(parameters.interest)
        rows = np.vstack([self.signal, self.shifts])
        solved = self._solve_gram(rows.T)  # G⁻¹ Rᵀ
        covariance = invert_information(rows @ solved + parameters.known)
        columns = covariance[:, interest] / np.diag(covariance)[interest]
        scores = (solved @ columns).T
        for v, parameter in zip(scores, interest, strict=True):
            _scale_to_own(v, parameters.own_component(parameter))
        of_interest = covariance[np.ix_(interest, interest)]
        sigma = math.exp(float(np.linalg.slogdet(of_interest)[1]) / (2 * len(interest)))
        return BestScores(scores, -columns[len(parameters.strengths) :].T, sigma, covariance)

    def _solve_gram(self, columns: Floats) -> Floats:
        """Return G⁻¹ times some columns, with a ridge on G scaled to a unit diagonal; zero for f's that are zero."""
        size = np.sqrt(np.diag(self.gram))
        used = size > 0
        unit = self.gram[np.ix_(used, used)] / np.outer(size[used], size[used])
        unit[np.diag_indices_from(unit)] += RIDGE
        found = np.zeros_like(columns)
        found[used] = np.linalg.solve(unit, columns[used] / size[used, None]) / size[used, None]
        return found

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


def _scale_to_own(v: Floats, own: int) -> None:
    """Scale coefficients such that a parameter's own f has 1; where it would count negative, it is all there is."""
    if v[own] > 0:
        v /= v[own]
    else:
        v[:] = 0.0
        v[own] = 1.0
