"""Newton's method for the linear model with MC statistics, many fits at once, in numpy.

The model is that of HistFactory with linear interpolation and one MC-statistics factor per bin (Barlow–Beeston "lite"):

    n_i ~ Poisson(λ_i),  λ_i = S_i + γ_i B_i,  S_i = μ(s_i + Σθ_kΔs_ki),  B_i = b_i + Σθ_kΔb_ki,
    θ_k ~ N(aux, 1),  γ_i ~ N(aux, r_i),  r_i² = Σw²/b_i² of the background.

For given S and B the best λ solves λ² + (r²B² − S − aux·B)λ − r²B²n = 0, so only μ and the θ are searched for. The
factor acts on the background only: one that also scales the signal would have the width sqrt(Σw²)/(s + b) and so take
from the background, at μ = 0, the share s/(s + b) of its MC uncertainty. pyhf remains the reference; this solver is for
scans and studies of thousands of fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.templates.template_set import ModelArrays

MAX_STEPS = 200
"""Newton steps before a fit is given up: only one that does not converge takes so many."""
DECREASE = 1e-10
"""A fit has converged when a full step lowers −2 ln L by less than this."""
KEEP = 0.05
"""Smallest fraction of a background that one step leaves, so that no bin becomes negative."""


@dataclass(frozen=True, eq=False)
class NewtonFit:
    """Best fits of a batch."""

    mu: Floats  # Signal strength, shape (…)
    theta: Floats  # Nuisance parameters, in standard deviations of their priors, shape (…, sources)
    gamma: Floats  # MC-statistics factors on the background, shape (…, bins)
    twice_nll: Floats  # −2 ln L relative to a model that fits every bin exactly, shape (…)
    covariance: Floats  # Of (μ, θ), γ profiled, shape (…, 1 + sources, 1 + sources); zero in the row of a fixed μ

    @property
    def sigma_mu(self) -> Floats:
        """Uncertainty of the signal strength."""
        return np.asarray(np.sqrt(self.covariance[..., 0, 0]))


def maximise(
    model: ModelArrays,
    data: Floats,
    mu: float | None = None,
    aux_theta: Floats | None = None,
    aux_gamma: Floats | None = None,
) -> NewtonFit:
    """Fit the model to counts; all leading axes are fits.

    Parameters
    ----------
    model
        Templates; axes that are missing at the front are broadcast.
    data
        Counts, shape (…, bins).
    mu
        Value to hold the signal strength at; None to fit it.
    aux_theta, aux_gamma
        Centres of the constraints, for toys; 0 and 1 if not given.

    Examples
    --------
    >>> s, b = np.array([1.0, 4.0]), np.array([90.0, 10.0])
    >>> none = np.zeros((0, 2))
    >>> fit = maximise(ModelArrays(s, b, none, none, np.zeros(2)), 2 * s + b)
    >>> round(float(fit.mu), 6), round(float(fit.sigma_mu), 4)
    (2.0, 1.0542)
    """
    problem = _Problem.make(model, data, mu, aux_theta, aux_gamma)
    point = problem.start()
    value = problem.objective(point)
    active: NDArray[np.bool_] = np.ones(value.shape, dtype=bool)
    for _ in range(MAX_STEPS):
        step = problem.newton_step(point)
        point, lowered = problem.line_search(point, step, value, active)
        active &= value - lowered > DECREASE
        value = lowered
        if not active.any():
            return problem.result(point, value)
    raise FitError(
        f"{int(active.sum())} of {active.size} fits did not converge in {MAX_STEPS} Newton steps; "
        f"the largest pull is that of source number {problem.largest_pull(point, active)}"
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """One batch: model and data broadcast to (fits, …), one row of unknowns (μ, θ) per fit."""

    shape: tuple[int, ...]
    signal: Floats
    background: Floats
    signal_shifts: Floats
    background_shifts: Floats
    relative: Floats
    data: Floats
    aux_theta: Floats
    aux_gamma: Floats
    mu: float | None

    @classmethod
    def make(
        cls,
        model: ModelArrays,
        data: Floats,
        mu: float | None,
        aux_theta: Floats | None,
        aux_gamma: Floats | None,
    ) -> _Problem:
        counts = np.asarray(data, dtype=np.float64)
        n_sources, n_bins = model.shifts.shape[-2:]
        fronts: list[tuple[int, ...]] = [model.signal.shape[:-1], counts.shape[:-1], model.shifts.shape[:-2]]
        fronts += [aux.shape[:-1] for aux in (aux_theta, aux_gamma) if aux is not None]
        shape = np.broadcast_shapes(*fronts)
        n_fits = int(np.prod(shape))

        def rows(values: Floats, *tail: int) -> Floats:
            return np.broadcast_to(values, (*shape, *tail)).reshape(n_fits, *tail)

        _require_positive(model.background)
        return cls(
            shape,
            rows(model.signal, n_bins),
            rows(model.background, n_bins),
            rows(model.signal_shifts, n_sources, n_bins),
            rows(model.background_shifts, n_sources, n_bins),
            rows(model.mc_variance / model.background**2, n_bins),
            rows(counts, n_bins),
            rows(np.zeros(n_sources) if aux_theta is None else aux_theta, n_sources),
            rows(np.ones(n_bins) if aux_gamma is None else aux_gamma, n_bins),
            mu,
        )

    def start(self) -> Floats:
        first = np.ones((len(self.data), 1)) if self.mu is None else np.full((len(self.data), 1), float(self.mu))
        return np.concatenate([first, np.zeros_like(self.aux_theta)], axis=1)

    def expected(self, point: Floats) -> tuple[Floats, Floats]:
        """Signal S and background B without its MC factor, shape (fits, bins)."""
        theta = point[:, None, 1:]
        signal = point[:, :1] * (self.signal + (theta @ self.signal_shifts)[:, 0])
        return signal, self.background + (theta @ self.background_shifts)[:, 0]

    def profiled(self, signal: Floats, background: Floats) -> tuple[Floats, Floats]:
        """Expectation λ and factor γ that are best for given S and B."""
        # With v = r²B² the quadratic is λ² − (S + aux·B − v)λ − v n = 0. Its positive root is written without the
        # difference of two nearly equal numbers: (h + root)/2 for h > 0, otherwise 2vn/(root − h).
        spread = self.relative * background**2
        half = signal + self.aux_gamma * background - spread
        root = np.sqrt(half**2 + 4 * spread * self.data)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = np.where(half > 0, (half + root) / 2, 2 * spread * self.data / (root - half))
            gamma = np.where(spread > 0, (expected - signal) / background, self.aux_gamma)
        return expected, gamma

    def objective(self, point: Floats) -> Floats:
        """−2 ln L; infinite where an expectation or a background is not positive."""
        signal, background = self.expected(point)
        allowed = np.all((background > 0) & (signal + background > 0), axis=1)
        signal, background = np.where(allowed[:, None], (signal, background), 1.0)
        expected, gamma = self.profiled(signal, background)
        # Saturated Poisson terms, 2[λ − n + n ln(n/λ)], which are 2λ for n = 0, and the constraints of γ and θ.
        counts = self.data
        ratio = np.where(counts > 0, counts, 1.0) / np.where(counts > 0, expected, 1.0)
        bins = 2 * (expected - counts + counts * np.log(ratio))
        spread = np.where(self.relative > 0, self.relative, 1.0)
        bins = bins + np.where(self.relative > 0, (gamma - self.aux_gamma) ** 2 / spread, 0.0)
        total = bins.sum(axis=1) + ((point[:, 1:] - self.aux_theta) ** 2).sum(axis=1)
        return np.where(allowed, total, np.inf)

    def slopes(self, point: Floats) -> _Slopes:
        # ∂S/∂μ = s + ΣθΔs, ∂S/∂θ_k = μΔs_k, ∂B/∂θ_k = Δb_k. As γ is at its best, d(−ln L)/dx = (1 − n/λ)(∂S + γ∂B)/∂x.
        signal, background = self.expected(point)
        expected, gamma = self.profiled(signal, background)
        of_signal = self.signal + (point[:, None, 1:] @ self.signal_shifts)[:, 0]
        to_signal = np.concatenate([of_signal[:, None], point[:, :1, None] * self.signal_shifts], axis=1)
        to_background = np.concatenate([np.zeros_like(of_signal)[:, None], self.background_shifts], axis=1)
        residual = 1.0 - self.data / np.where(expected > 0, expected, 1.0)
        return _Slopes(expected, background, to_signal + gamma[:, None] * to_background, to_background, residual)

    def newton_step(self, point: Floats) -> Floats:
        """Newton step with the Gauss–Newton matrix, the second derivatives without the terms that can be negative."""
        # Fixed γ would give the weight n/λ²; profiling γ, which adds v = r²B² to the variance, makes it n/(λ² + v n).
        # Empty bins, whose weight would be 0, get that of their expectation: only the length of the step depends on it.
        slopes = self.slopes(point)
        expected, spread = slopes.expected, self.relative * slopes.background**2
        counts = np.where(self.data > 0, self.data, expected)
        curvature = counts / np.where(counts > 0, expected**2 + spread * counts, 1.0)
        matrix = (slopes.to_expected * curvature[:, None]) @ np.swapaxes(slopes.to_expected, 1, 2) + self.prior()
        gradient = (slopes.to_expected @ slopes.residual[..., None])[..., 0]
        gradient[:, 1:] += point[:, 1:] - self.aux_theta
        step = np.zeros_like(point)
        free = self.free()
        step[:, free] = -np.linalg.solve(matrix[:, free, free], gradient[:, free, None])[..., 0]
        return step

    def hessian(self, point: Floats) -> Floats:
        """Second derivatives of −ln L with γ profiled: H_xx − H_xγ H_γγ⁻¹ H_γx, γ of each bin for itself."""
        slopes = self.slopes(point)
        weight = self.data / np.where(self.data > 0, slopes.expected, 1.0) ** 2
        matrix = (slopes.to_expected * weight[:, None]) @ np.swapaxes(slopes.to_expected, 1, 2) + self.prior()
        # H_xγ = (n/λ²) B ∂λ/∂x + (1 − n/λ) ∂B/∂x and H_γγ = (n/λ²) B² + 1/r².
        mixed = weight[:, None] * slopes.background[:, None] * slopes.to_expected
        mixed += slopes.residual[:, None] * slopes.to_background
        width = self.relative / (1.0 + self.relative * weight * slopes.background**2)
        matrix -= (mixed * width[:, None]) @ np.swapaxes(mixed, 1, 2)
        # The expectation is bilinear in μ and θ: ∂²λ/∂μ∂θ_k = Δs_k.
        mixed = (self.signal_shifts @ slopes.residual[..., None])[..., 0]
        matrix[:, 0, 1:] += mixed
        matrix[:, 1:, 0] += mixed
        return np.asarray(matrix)

    def prior(self) -> Floats:
        return np.diag([0.0, *np.ones(self.aux_theta.shape[1])])

    def free(self) -> slice:
        return slice(None) if self.mu is None else slice(1, None)

    def line_search(
        self, point: Floats, step: Floats, value: Floats, active: NDArray[np.bool_]
    ) -> tuple[Floats, Floats]:
        """Shorten each step until no background falls below `KEEP` of itself and −2 ln L does not rise."""
        background = self.expected(point)[1]
        length = np.where(active, 1.0, 0.0)
        for _ in range(60):
            trial = point + length[:, None] * step
            lowered = self.objective(trial)
            bad = (lowered > value) | np.any(self.expected(trial)[1] < KEEP * background, axis=1)
            bad &= length > 0
            if not bad.any():
                return trial, lowered
            length = np.where(bad, length / 2, length)
        stuck = np.where(bad, 0.0, length)
        trial = point + stuck[:, None] * step
        return trial, self.objective(trial)

    def result(self, point: Floats, value: Floats) -> NewtonFit:
        matrix = self.hessian(point)
        covariance = np.zeros_like(matrix)
        free = self.free()
        covariance[:, free, free] = np.linalg.inv(matrix[:, free, free])
        return NewtonFit(
            point[:, 0].reshape(self.shape),
            point[:, 1:].reshape(*self.shape, -1),
            self.profiled(*self.expected(point))[1].reshape(*self.shape, -1),
            value.reshape(self.shape),
            covariance.reshape(*self.shape, *covariance.shape[1:]),
        )

    def largest_pull(self, point: Floats, active: NDArray[np.bool_]) -> int:
        pulls = np.abs(point[active, 1:] - self.aux_theta[active])
        return int(np.argmax(pulls.max(axis=0))) if pulls.size else 0


class _Slopes(NamedTuple):
    """Values and first derivatives at a point, per bin: of λ with γ fixed, and of B."""

    expected: Floats
    background: Floats
    to_expected: Floats
    to_background: Floats
    residual: Floats


def _require_positive(background: Floats) -> None:
    bad = np.argwhere(~(background > 0))
    if bad.size:
        number = int(bad[0][-1])
        raise FitError(
            f"bin {number + 1} expects {background[tuple(bad[0])]:.3g} background events: every bin needs some, "
            "merge it with its neighbour (qbdt.inference.templates.repair.merge_unusable_bins)"
        )
