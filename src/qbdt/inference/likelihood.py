"""The likelihood of a workspace and its minima: pyhf's expectation, iminuit, and second derivatives of its own.

MINUIT's HESSE is not used for uncertainties: with tens of correlated nuisance parameters its numerical derivatives are
off by 0.1 to 10 % of σ_μ. The second derivatives here are sums over bins of products of first derivatives of the
expected events, right to 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.pyhf_model import PyhfModel

TOLERANCE = 1e-2
"""MINUIT's tolerance: the estimated distance to the minimum of −2 ln L is below 0.002 of it."""
POLISHED, MAX_STEPS = 1e-10, 50
"""Newton steps end below this distance to the minimum of −ln L, or are given up."""
CHEAP_STEPS = 12
"""Steps with the Gauss–Newton matrix, before those with exact second derivatives, which cost more."""
LEAST_EIGENVALUE = 1e-6
"""Of second derivatives that are made positive, in units of the Gauss–Newton matrix."""
FORBIDDEN = 1e12
"""Value of −2 ln L where an expectation is negative: finite, so that the minimiser turns back."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """A minimum of −2 ln L: values of all parameters, and which were held fixed."""

    values: Floats
    twice_nll: float
    fixed: frozenset[str]


class Likelihood(PyhfModel):
    """−2 ln L of a workspace and its data, relative to a model that fits every bin and constraint exactly.

    `data` are counts per bin, by channel or those of all channels in the order of `channels`, to use instead of the
    observations of the workspace; for `linear` see `PyhfModel`.

    Examples
    --------
    >>> import pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background([5.0], [50.0], [5.0])
    >>> spec = pyhf.Workspace.build(model, [55.0])
    >>> best = Likelihood(spec).minimise()
    >>> best.values.round(4), abs(best.twice_nll) < 1e-9
    (array([1., 1.]), True)
    """

    def __init__(
        self, spec: Mapping[str, Any], data: Floats | Mapping[str, Floats] | None = None, linear: bool = False
    ) -> None:
        super().__init__(spec, linear)
        joined = self.join(data) if isinstance(data, Mapping) else data
        self.data = self.observations if joined is None else np.asarray(joined, dtype=float)
        if self.data.shape != self.observations.shape:
            raise FitError(f"{self.data.size} counts for a model of {self.observations.size} bins")

    def with_data(self, counts: Floats, centres: Mapping[str, float]) -> Likelihood:
        """Return the same model with other counts, and other centres of the Gaussian constraints: a toy experiment."""
        other = copy(self)
        other.data = np.asarray(counts, dtype=float)
        terms = self.constraints
        moved = [centres.get(self.names[i], old) for i, old in zip(terms.index, terms.centres, strict=True)]
        other.constraints = replace(terms, centres=np.array(moved, dtype=float))
        return other

    def twice_nll(self, values: Floats) -> float:
        """−2 ln L at a point; a very large number where an expectation is negative."""
        # Saturated Poisson terms, 2[λ − n + n ln(n/λ)], 2λ for n = 0: differences of −2 ln L keep their digits.
        expected, counts = self.expected(values), self.data
        if not np.all(expected > 0):
            return FORBIDDEN
        ratio = np.where(counts > 0, counts, 1.0) / np.where(counts > 0, expected, 1.0)
        bins = 2 * np.sum(expected - counts + counts * np.log(ratio))
        return min(float(bins) + self.constraints.twice_nll(values), FORBIDDEN)

    def gradient(self, values: Floats) -> Floats:
        """First derivatives of −2 ln L with all parameters that are not constant."""
        free = np.flatnonzero(~self.constant)
        slope = self.constraints.derivatives(values)[0]
        expected = np.maximum(self.expected(values), 1e-300)
        slope[free] += self.jacobian(values, free.tolist()) @ (1 - self.data / expected)
        return 2 * np.where(self.constant, 0.0, slope)

    def gradient_by_formula(self, values: Floats) -> Floats:
        """The same in a tenth of the time, where there is a formula and it gives finite numbers."""
        try:
            with np.errstate(all="ignore"):
                expected, jacobian = (rows[0] for rows in self.expectation.differentiate(values[None]))
                slope = self.constraints.derivatives(values)[0] + jacobian @ (1 - self.data / expected)
        except FitError:  # a modifier of another program
            return self.gradient(values)
        found = np.where(self.constant, 0.0, 2 * slope)
        return found if np.all(np.isfinite(found)) else self.gradient(values)

    def hessian(self, minimum: Minimum) -> Floats:
        """Second derivatives of −ln L at a minimum, for the parameters that are free there; zero for the others."""
        # ∂²(−ln L) = Σ_bins [n/λ² ∂λ ∂λ + (1 − n/λ) ∂²λ] + constraints. The second term vanishes where λ = n, as for
        # Asimov data; only where it does not are second derivatives of the expectation needed.
        free = self._free(minimum.fixed)
        expected = self.expected(minimum.values)
        jacobian = self.jacobian(minimum.values, free)
        block = (jacobian * (self.data / expected**2)) @ jacobian.T
        residual = 1 - self.data / expected
        if np.max(np.abs(residual)) > 1e-6:
            block += self._curvature(minimum.values, free, residual)
        matrix = np.diag(self.constraints.derivatives(minimum.values)[1])
        matrix[np.ix_(free, free)] += block
        return matrix

    def covariance(self, minimum: Minimum, hessian: Floats | None = None) -> Floats:
        """Inverse of the second derivatives of −ln L; zero for fixed parameters."""
        free = self._free(minimum.fixed)
        matrix = self.hessian(minimum) if hessian is None else hessian
        covariance = np.zeros_like(matrix)
        covariance[np.ix_(free, free)] = invert(matrix[np.ix_(free, free)], [self.names[i] for i in free])
        return covariance

    def minimise(self, hold: Mapping[str, float] | None = None, start: Floats | None = None) -> Minimum:
        """Minimise −2 ln L with MIGRAD, some parameters held at given values, and finish with Newton steps.

        Where MIGRAD fails it runs once more from its end with strategy 2, after a simplex search.
        """
        return self._minimise(hold or {}, self.start if start is None else start, self.gradient)

    def _minimise(self, hold: Mapping[str, float], start: Floats, gradient: Callable[[Floats], Floats]) -> Minimum:
        minuit = self._minuit(hold, start, gradient)
        minuit.migrad()
        if not minuit.valid:
            minuit.strategy = 2
            minuit.simplex().migrad()
        if not minuit.valid or minuit.fval >= FORBIDDEN:
            raise FitError(self._why(minuit, hold))
        fixed = frozenset(name for name in self.names if minuit.fixed[name])
        found = Minimum(np.array(minuit.values), float(minuit.fval), fixed)
        polished = self._newton(found.values, fixed)
        return found if polished is None or polished.twice_nll > found.twice_nll else polished

    def follow(self, hold: Mapping[str, float], start: Floats) -> Minimum:
        """Minimise from a good starting point: Newton steps alone, and MIGRAD where they do not converge.

        Where a bin would be negative at that point, the search starts at the nominal values; where it is negative there
        too, there is nothing to search.
        """
        fixed = frozenset(n for n, c in zip(self.names, self.constant, strict=True) if c) | frozenset(hold)
        for candidate in (start, self.start):
            point = np.clip(candidate, *self.bounds.T)
            for name, value in hold.items():
                point[self.names.index(name)] = value
            if self.twice_nll(point) < FORBIDDEN:
                # Where there is no minimum within the bounds, MIGRAD asks for thousands of gradients.
                return self._newton(point, fixed) or self._minimise(hold, point, self.gradient_by_formula)
        number = int(np.argmin(self.expected(point)))
        held = ", ".join(f"{name} = {value:g}" for name, value in hold.items())
        raise FitError(f"bin {number + 1} expects {self.expected(point)[number]:.3g} events for {held}")

    def _newton(self, start: Floats, fixed: frozenset[str]) -> Minimum | None:
        """Damped Newton steps, first with the Gauss–Newton matrix, which is never negative; None if they fail."""
        free, point = self._free(fixed), start.copy()
        low, high = self.bounds.T
        value = self.twice_nll(point)
        for step in range(MAX_STEPS):
            if value >= FORBIDDEN:
                return None
            expected = self.expected(point)
            jacobian = self.jacobian(point, free)
            first, second = (terms[free] for terms in self.constraints.derivatives(point))
            # g = Σ (1 − n/λ) ∂λ + constraints; H ≈ Σ n/λ² ∂λ ∂λ + constraints, with n → λ in empty bins. The step is
            # −H⁻¹g, and gᵀH⁻¹g/2 estimates the distance to the minimum of −ln L.
            slope = first + jacobian @ (1 - self.data / expected)
            weight = np.where(self.data > 0, self.data, expected) / expected**2
            matrix = (jacobian * weight) @ jacobian.T + np.diag(second)
            if step >= CHEAP_STEPS:
                matrix = self._sharpen(matrix, point, free, expected, jacobian)
            move = _solve(matrix, slope)
            if move is None:
                return None
            if slope @ move < POLISHED:
                return Minimum(point, value, fixed)
            point, lowered = self._shorten_step(point, free, move, value)
            if lowered > value or np.any(point < low) or np.any(point > high):
                return None
            value = lowered
        return None

    def _sharpen(
        self, matrix: Floats, point: Floats, free: Sequence[int], expected: Floats, jacobian: Floats
    ) -> Floats:
        """Second derivatives of −ln L, made positive; `matrix` where there is no formula or they are not finite."""
        # Along a flat likelihood Gauss–Newton steps gain a few per cent each where residuals are large. Their matrix
        # lacks the second derivatives of the expectation, and has n → λ in empty bins.
        try:
            curvature = self._curvature_by_formula(point, free, 1 - self.data / expected)
        except FitError:
            return matrix
        second = matrix + curvature - (jacobian * np.where(self.data > 0, 0.0, 1 / expected)) @ jacobian.T
        return turn_positive(second, matrix) if np.all(np.isfinite(second)) else matrix

    def _shorten_step(self, point: Floats, free: Sequence[int], move: Floats, value: float) -> tuple[Floats, float]:
        trial, lowered = point, np.inf
        for length in 0.5 ** np.arange(12):  # halved until −2 ln L does not rise
            trial = point.copy()
            trial[free] -= length * move
            lowered = self.twice_nll(trial)
            if lowered <= value + 1e-12 * abs(value):
                return trial, min(lowered, value)
        return trial, lowered

    def _curvature(self, values: Floats, free: Sequence[int], residual: Floats) -> Floats:
        """Second derivatives of the expectation summed with the residuals, by central differences."""
        # 2 % of each constraint's width: the error of rounding, 1e-16/0.02², is then below 1e-12 of the expectation.
        step = [0.02 * self.parameters[i].width for i in free]

        def at(*moves: tuple[int, float]) -> float:
            point = values.copy()
            for a, sign in moves:
                point[free[a]] += sign * step[a]
            return float(self.expected(point) @ residual)

        here = at()
        ahead, behind = ([at((a, sign)) for a in range(len(free))] for sign in (1.0, -1.0))
        matrix = np.zeros((len(free), len(free)))
        for a in range(len(free)):
            matrix[a, a] = (ahead[a] - 2 * here + behind[a]) / step[a] ** 2
            for b in range(a):
                both = at((a, 1.0), (b, 1.0)) + at((a, -1.0), (b, -1.0))
                single = ahead[a] + behind[a] + ahead[b] + behind[b]
                matrix[a, b] = matrix[b, a] = (both - single + 2 * here) / (2 * step[a] * step[b])
        return matrix

    def _curvature_by_formula(self, values: Floats, free: Sequence[int], residual: Floats) -> Floats:
        """The same by differences of the first derivatives."""
        # 1e-4 of the width of the constraint: as for the derivatives of pyhf's expectation.
        steps = np.array([1e-4 * self.parameters[i].width for i in free])
        moves = np.zeros((len(free), len(values)))
        moves[np.arange(len(free)), list(free)] = steps
        ahead, behind = (
            self.expectation.differentiate(values + sign * moves)[1][:, list(free)] @ residual for sign in (1, -1)
        )
        matrix = (ahead - behind) / (2 * steps[:, None])
        return np.asarray((matrix + matrix.T) / 2)

    def _free(self, fixed: frozenset[str]) -> list[int]:
        return [i for i, name in enumerate(self.names) if name not in fixed]

    def _minuit(self, hold: Mapping[str, float], start: Floats, gradient: Callable[[Floats], Floats]) -> Any:
        from iminuit import Minuit

        minuit = Minuit(self.twice_nll, np.asarray(start), grad=gradient, name=self.names)
        minuit.errordef, minuit.strategy = Minuit.LEAST_SQUARES, 0
        minuit.tol, minuit.print_level = TOLERANCE, 0  # the level is global, and cabinetry raises it
        minuit.limits = self.bounds.tolist()
        minuit.errors = [0.1 * parameter.width or 1.0 for parameter in self.parameters]
        minuit.fixed = self.constant.tolist()
        for name, value in hold.items():
            minuit.values[name] = value
            minuit.fixed[name] = True
        return minuit

    def _why(self, minuit: Any, hold: Mapping[str, float]) -> str:
        at_limit = [
            name
            for name, (low, high) in zip(self.names, self.bounds, strict=True)
            if not minuit.fixed[name]
            and min(minuit.values[name] - low, high - minuit.values[name]) < 1e-3 * (high - low)
        ]
        pulled = max(self.of_kind("source"), key=lambda name: abs(minuit.values[name]), default=None)
        poi = self.names[self.poi]
        held = f" with {poi} = {hold[poi]:g}" if poi in hold else ""
        reasons = [f"the fit{held} did not converge (distance to the minimum {minuit.fmin.edm:.2g})"]
        if at_limit:
            reasons.append(f"at the limit: {', '.join(at_limit)}")
        expected = self.expected(np.array(minuit.values))
        lowest = int(np.argmin(expected / np.maximum(self.expected(self.start), 1e-300)))
        if expected[lowest] < 0.01 * self.expected(self.start)[lowest]:
            reasons.append(f"bin {lowest + 1}, with {self.data[lowest]:g} events, is driven to an expectation of 0")
        if pulled:
            reasons.append(f"the source pulled most is {pulled} (θ = {minuit.values[pulled]:.2g})")
        return "; ".join(reasons) + ". Merge sparse bins (min_entries) or drop that source (systematics)"


def _solve(matrix: Floats, slope: Floats) -> Floats | None:
    try:
        return np.asarray(np.linalg.solve(matrix, slope))
    except np.linalg.LinAlgError:
        return None


def turn_positive(second: Floats, scale: Floats) -> Floats:
    """Symmetric matrices with their negative eigenvalues turned, so that steps go downwards; positive ones as they are.

    Eigenvalues are those in units of the diagonal of `scale`; turned matrices have none below `LEAST_EIGENVALUE`.
    """
    diagonal = np.abs(np.diagonal(scale, axis1=-2, axis2=-1))
    unit = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    units = unit[..., :, None] * unit[..., None, :]
    values, vectors = np.linalg.eigh(second / units)
    turned = np.maximum(np.abs(values), LEAST_EIGENVALUE)[..., None, :]
    positive = values[..., :1, None] > 0
    return np.where(positive, second, (vectors * turned) @ np.swapaxes(vectors, -1, -2) * units)


def invert(matrix: Floats, names: list[str]) -> Floats:
    """Inverse of a matrix that must be positive, scaled to a unit diagonal first."""
    diagonal = np.diag(matrix)
    if np.any(diagonal <= 0):
        raise FitError(f"the likelihood does not constrain {names[int(np.argmin(diagonal))]}")
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(matrix * np.outer(scale, scale))
    if values[0] <= 0:
        worst = names[int(np.argmax(np.abs(vectors[:, 0])))]
        raise FitError(f"the likelihood does not constrain {worst}: its second derivatives are not positive there")
    return np.asarray((vectors / values @ vectors.T) * np.outer(scale, scale))
