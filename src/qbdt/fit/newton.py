"""Newton's method for the linear model with MC statistics, many fits at once, in numpy.

The model is that of HistFactory with linear interpolation and one MC-statistics factor per bin (Barlow–Beeston "lite"):

    n_i ~ Poisson(γ_i λ_i),  λ_i = μ(s_i + Σθ_kΔs_ki) + b_i + Σθ_kΔb_ki,
    θ_k ~ N(aux, 1),  γ_i ~ N(aux, r_i),  r_i² = Σw²/(s_i + b_i)².

For given λ the best γ solves γ² + (r²λ − aux)γ − r²n = 0, so only μ and the θ are searched for. The likelihood of one
bin with γ profiled has the slope γ − n/λ and the curvature n/λ² − r²γ/(2γ + r²λ − aux). pyhf remains the reference;
this solver is for scans and studies of thousands of fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbdt.errors import FitError
from qbdt.templates import ModelArrays
from qbdt.templates.template_set import FloatArray

__all__ = ["NewtonFit", "maximise"]

MAX_STEPS = 200
DECREASE = 1e-10
"""A fit has converged when a full step lowers −2 ln L by less than this."""
KEEP = 0.05
"""Smallest fraction of an expectation that one step leaves, so that no bin becomes negative."""


@dataclass(frozen=True, eq=False)
class NewtonFit:
    """Best fits of a batch.

    Attributes
    ----------
    mu
        Signal strength, shape (…).
    theta
        Nuisance parameters, in standard deviations of their priors, shape (…, sources).
    gamma
        MC-statistics factors, shape (…, bins).
    twice_nll
        −2 ln L relative to a model that fits every bin exactly, shape (…).
    covariance
        Of (μ, θ), γ profiled, shape (…, 1 + sources, 1 + sources); zero in the row of a fixed μ.
    """

    mu: FloatArray
    theta: FloatArray
    gamma: FloatArray
    twice_nll: FloatArray
    covariance: FloatArray

    @property
    def sigma_mu(self) -> FloatArray:
        """Uncertainty of the signal strength."""
        return np.asarray(np.sqrt(self.covariance[..., 0, 0]))


def maximise(
    model: ModelArrays,
    data: FloatArray,
    mu: float | None = None,
    aux_theta: FloatArray | None = None,
    aux_gamma: FloatArray | None = None,
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
    signal: FloatArray
    background: FloatArray
    signal_shifts: FloatArray
    background_shifts: FloatArray
    relative: FloatArray
    data: FloatArray
    aux_theta: FloatArray
    aux_gamma: FloatArray
    mu: float | None

    @classmethod
    def make(
        cls,
        model: ModelArrays,
        data: FloatArray,
        mu: float | None,
        aux_theta: FloatArray | None,
        aux_gamma: FloatArray | None,
    ) -> _Problem:
        counts = np.asarray(data, dtype=np.float64)
        n_sources, n_bins = model.shifts.shape[-2:]
        fronts = [model.signal.shape[:-1], counts.shape[:-1], model.shifts.shape[:-2]]
        fronts += [aux.shape[:-1] for aux in (aux_theta, aux_gamma) if aux is not None]
        shape = np.broadcast_shapes(*fronts)
        n_fits = int(np.prod(shape))

        def rows(values: FloatArray, *tail: int) -> FloatArray:
            return np.broadcast_to(values, (*shape, *tail)).reshape(n_fits, *tail)

        expected = model.signal + model.background
        _require_positive(expected)
        return cls(
            shape,
            rows(model.signal, n_bins),
            rows(model.background, n_bins),
            rows(model.signal_shifts, n_sources, n_bins),
            rows(model.background_shifts, n_sources, n_bins),
            rows(model.mc_variance / expected**2, n_bins),
            rows(counts, n_bins),
            rows(np.zeros(n_sources) if aux_theta is None else aux_theta, n_sources),
            rows(np.ones(n_bins) if aux_gamma is None else aux_gamma, n_bins),
            mu,
        )

    def start(self) -> FloatArray:
        first = np.ones((len(self.data), 1)) if self.mu is None else np.full((len(self.data), 1), float(self.mu))
        return np.concatenate([first, np.zeros_like(self.aux_theta)], axis=1)

    def expected(self, point: FloatArray) -> FloatArray:
        theta = point[:, None, 1:]
        signal = self.signal + (theta @ self.signal_shifts)[:, 0]
        background = self.background + (theta @ self.background_shifts)[:, 0]
        return point[:, :1] * signal + background

    def jacobian(self, point: FloatArray) -> FloatArray:
        """Change of the expectation with each unknown, shape (fits, 1 + sources, bins)."""
        signal = self.signal + (point[:, None, 1:] @ self.signal_shifts)[:, 0]
        shifts = point[:, :1, None] * self.signal_shifts + self.background_shifts
        return np.concatenate([signal[:, None], shifts], axis=1)

    def root(self, expected: FloatArray) -> FloatArray:
        return np.sqrt((self.aux_gamma - self.relative * expected) ** 2 + 4 * self.relative * self.data)

    def gamma(self, expected: FloatArray) -> FloatArray:
        half = self.aux_gamma - self.relative * expected
        root = self.root(expected)
        with np.errstate(divide="ignore", invalid="ignore"):
            small = 2 * self.relative * self.data / (root - half)
        return np.where(half > 0, (half + root) / 2, small)

    def objective(self, point: FloatArray) -> FloatArray:
        """−2 ln L; infinite where an expectation is not positive."""
        expected = self.expected(point)
        allowed = np.all(expected > 0, axis=1)
        safe = np.where(allowed[:, None], expected, 1.0)
        gamma = self.gamma(safe)
        counts, predicted = self.data, gamma * safe
        ratio = np.where(counts > 0, counts, 1.0) / np.where(counts > 0, predicted, 1.0)
        bins = 2 * (predicted - counts + counts * np.log(ratio))
        spread = np.where(self.relative > 0, self.relative, 1.0)
        bins = bins + np.where(self.relative > 0, (gamma - self.aux_gamma) ** 2 / spread, 0.0)
        total = bins.sum(axis=1) + ((point[:, 1:] - self.aux_theta) ** 2).sum(axis=1)
        return np.where(allowed, total, np.inf)

    def derivatives(self, point: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Jacobian, slope and curvature of half of −2 ln L with the expectation of each bin."""
        expected = self.expected(point)
        gamma, root = self.gamma(expected), self.root(expected)
        slope = gamma - self.data / expected
        curvature = self.data / expected**2 - np.where(root > 0, self.relative * gamma / np.where(root > 0, root, 1), 0)
        return self.jacobian(point), slope, curvature

    def hessian(self, jacobian: FloatArray, curvature: FloatArray) -> FloatArray:
        matrix = (jacobian * curvature[:, None]) @ np.swapaxes(jacobian, 1, 2)
        prior = np.ones(jacobian.shape[1])
        prior[0] = 0.0
        return np.asarray(matrix + np.diag(prior))

    def newton_step(self, point: FloatArray) -> FloatArray:
        jacobian, slope, curvature = self.derivatives(point)
        expected = self.expected(point)
        fisher = 1.0 / (expected + self.relative * expected**2)
        matrix = self.hessian(jacobian, np.where(curvature > 0, curvature, fisher))
        gradient = (jacobian @ slope[..., None])[..., 0]
        gradient[:, 1:] += point[:, 1:] - self.aux_theta
        step = np.zeros_like(point)
        free = slice(None) if self.mu is None else slice(1, None)
        step[:, free] = -np.linalg.solve(matrix[:, free, free], gradient[:, free, None])[..., 0]
        return step

    def line_search(
        self, point: FloatArray, step: FloatArray, value: FloatArray, active: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """Shorten each step until no expectation falls below `KEEP` of itself and −2 ln L does not rise."""
        expected = self.expected(point)
        length = np.where(active, 1.0, 0.0)
        for _ in range(60):
            trial = point + length[:, None] * step
            lowered = self.objective(trial)
            bad = (lowered > value) | np.any(self.expected(trial) < KEEP * expected, axis=1)
            bad &= length > 0
            if not bad.any():
                return trial, lowered
            length = np.where(bad, length / 2, length)
        stuck = np.where(bad, 0.0, length)
        trial = point + stuck[:, None] * step
        return trial, self.objective(trial)

    def result(self, point: FloatArray, value: FloatArray) -> NewtonFit:
        jacobian, slope, curvature = self.derivatives(point)
        matrix = self.hessian(jacobian, curvature)
        mixed = (self.signal_shifts @ slope[..., None])[..., 0]
        matrix[:, 0, 1:] += mixed
        matrix[:, 1:, 0] += mixed
        covariance = np.zeros_like(matrix)
        free = slice(None) if self.mu is None else slice(1, None)
        covariance[:, free, free] = np.linalg.inv(matrix[:, free, free])
        return NewtonFit(
            point[:, 0].reshape(self.shape),
            point[:, 1:].reshape(*self.shape, -1),
            self.gamma(self.expected(point)).reshape(*self.shape, -1),
            value.reshape(self.shape),
            covariance.reshape(*self.shape, *covariance.shape[1:]),
        )

    def largest_pull(self, point: FloatArray, active: NDArray[np.bool_]) -> int:
        pulls = np.abs(point[active, 1:] - self.aux_theta[active])
        return int(np.argmax(pulls.max(axis=0))) if pulls.size else 0


def _require_positive(expected: FloatArray) -> None:
    bad = np.argwhere(~(expected > 0))
    if bad.size:
        number = int(bad[0][-1])
        raise FitError(
            f"bin {number + 1} expects {expected[tuple(bad[0])]:.3g} events: every bin needs a positive expectation, "
            "merge it with its neighbour (qbdt.templates.with_usable_bins)"
        )
