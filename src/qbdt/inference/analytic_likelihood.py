"""The likelihood with derivatives by formula, and fits of many sets of counts at once.

The same −2 ln L as `Likelihood`, whose expectation is pyhf's; this one serves what takes many fits: limits, contours,
goodness of fit and toys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.likelihood import Likelihood, Minimum, turn_positive
from qbdt.inference.pyhf_model import FormulaModel

MAX_STEPS = 40
"""Newton steps after which fits that have not converged are given to MIGRAD, one by one. Where there is a minimum, 18
were enough; a strength runs away where a source can make its templates vanish."""
FIRST_STEPS = 8
"""Steps with the Gauss–Newton matrix, before those with exact second derivatives, which cost more."""
DECREASE = 1e-9
"""A fit has converged when the next step would lower −ln L by less than this."""
REPULSION = 7.75
"""How many times its expectation a step takes from an empty bin that alone matters: halved three times, 97 % of it."""
CHUNK = 4_000_000
"""Numbers in the derivatives of one batch, 32 MB: larger ones are cut."""


class AnalyticLikelihood(FormulaModel, Likelihood):
    """`Likelihood` with expectation and derivatives by formula; parameters as there.

    Examples
    --------
    >>> from qbdt.data import Role
    >>> from qbdt.inference.templates import ProcessTemplates, TemplateSet
    >>> from qbdt.inference.workspace import build_workspace
    >>> s = ProcessTemplates("s", Role.SIGNAL, np.array([1.0, 4.0]), np.zeros(2))
    >>> b = ProcessTemplates("b", Role.BACKGROUND, np.array([90.0, 10.0]), np.array([9.0, 1.0]))
    >>> likelihood = AnalyticLikelihood(build_workspace(TemplateSet("score", np.arange(3.0), (s, b))))
    >>> likelihood.expected(likelihood.start)
    array([91., 14.])
    """

    def __init__(
        self, spec: Mapping[str, Any], data: Floats | Mapping[str, Floats] | None = None, linear: bool = False
    ) -> None:
        super().__init__(spec, data, linear)
        _ = self.expectation  # refuses modifiers without a formula

    def _newton(self, start: Floats, fixed: frozenset[str]) -> Minimum | None:
        """Newton steps as for many fits; None if they fail."""
        hold = {name: start[[self.names.index(name)]] for name in fixed}
        found = _Batch(self, self.data[None], self.constraints.centres[None], hold).search(start)
        if not np.isfinite(found.twice_nll[0]):
            return None
        return Minimum(found.values[0], float(found.twice_nll[0]), fixed)

    def _curvature(self, values: Floats, free: Sequence[int], residual: Floats) -> Floats:
        """Second derivatives of the expectation summed with the residuals, from the first ones by formula."""
        return self._curvature_by_formula(values, free, residual)


@dataclass(frozen=True, eq=False)
class ManyFits:
    """Best fits of many sets of counts: all parameters (fits, parameters) and −2 ln L, NaN where there is none."""

    values: Floats
    twice_nll: Floats


def fit_many(
    likelihood: AnalyticLikelihood,
    counts: Floats,
    centres: Floats,
    hold: Mapping[str, float | Floats] | None = None,
    start: Floats | None = None,
) -> ManyFits:
    """Minimise −2 ln L for many sets of counts, or many values of held parameters, at once.

    Parameters
    ----------
    counts, centres
        Events per bin, shape (fits, bins), and auxiliary data of the constraints, shape (fits, constraints).
    hold
        Values of parameters that are held: one for all fits, or one each.
    start
        Where the searches begin, shape (parameters); the nominal values if not given.
    """
    size = max(1, CHUNK // (len(likelihood.names) * counts.shape[1]))
    found: list[ManyFits] = []
    for first in range(0, len(counts), size):
        part = slice(first, first + size)
        held = {name: np.broadcast_to(value, len(counts))[part] for name, value in (hold or {}).items()}
        found.append(_Batch(likelihood, counts[part], centres[part], held).minimise(start))
    return ManyFits(np.concatenate([f.values for f in found]), np.concatenate([f.twice_nll for f in found]))


def fit_from(likelihood: Likelihood, starts: Floats, hold: Mapping[str, float]) -> ManyFits:
    """Fit the data of a likelihood from several points at once, by Newton steps alone; NaN where they fail."""
    n = len(starts)
    held = {name: np.full(n, value) for name, value in hold.items()}
    counts, centres = (np.tile(values, (n, 1)) for values in (likelihood.data, likelihood.constraints.centres))
    return _Batch(likelihood, counts, centres, held).search(starts)


class _Batch:
    """One batch of fits: Newton steps with the Gauss–Newton matrix, parameters at a bound held there."""

    def __init__(self, likelihood: Likelihood, counts: Floats, centres: Floats, hold: Mapping[str, Floats]) -> None:
        self.likelihood, self.counts, self.centres, self.hold = likelihood, counts, centres, hold
        self.fixed = likelihood.constant | np.isin(likelihood.names, list(hold))
        self.terms = likelihood.constraints

    def minimise(self, start: Floats | None) -> ManyFits:
        """Newton steps, and MIGRAD for fits in which they fail."""
        found = self.search(start)
        return self.finish(found.values, found.twice_nll)

    def search(self, start: Floats | None) -> ManyFits:
        """Newton steps alone; −2 ln L of fits in which they fail is not finite."""
        first = self.likelihood.start if start is None else start
        point = np.broadcast_to(first, (len(self.counts), first.shape[-1])).copy()
        for name, values in self.hold.items():
            point[:, self.likelihood.names.index(name)] = values
        value = self.twice_nll(point)
        active = np.isfinite(value)
        for step in range(MAX_STEPS):
            if not active.any():
                break
            rows = np.flatnonzero(active)
            move, decrease = self.newton_step(point[rows], rows, exact=step >= FIRST_STEPS)
            running = decrease > DECREASE
            active[rows[~running]] = False
            rows, move = rows[running], move[running]
            point[rows], value[rows], moved = self.shorten(point[rows], move, value[rows], rows)
            active[rows[~moved]] = False
            stuck = rows[~moved]
            value[stuck] = np.nan
        return ManyFits(point, np.where(active, np.nan, value))

    def twice_nll(self, point: Floats, rows: NDArray[np.intp] | None = None) -> Floats:
        """−2 ln L; infinite where an expectation is not positive."""
        counts = self.counts if rows is None else self.counts[rows]
        with np.errstate(all="ignore"):
            expected = self.likelihood.expectation(point)
        allowed = np.all(expected > 0, axis=1) & np.all(np.isfinite(expected), axis=1)
        expected = np.where(allowed[:, None], expected, 1.0)
        ratio = np.where(counts > 0, counts, 1.0) / np.where(counts > 0, expected, 1.0)
        bins = 2 * np.sum(expected - counts + counts * np.log(ratio), axis=1)
        return np.where(allowed, bins + self.constraint_terms(point, rows), np.inf)

    def constraint_terms(self, point: Floats, rows: NDArray[np.intp] | None) -> Floats:
        # Gaussian: ((x − c)/σ)². Poisson with auxiliary count c and rate τ: 2[τx − c + c ln(c/τx)].
        terms, centres = self.terms, self.centres if rows is None else self.centres[rows]
        at, gauss = point[:, terms.index], terms.rates == 0
        total = np.sum(np.where(gauss, ((at - centres) / terms.widths) ** 2, 0.0), axis=1)
        if gauss.all():
            return np.asarray(total)
        expected, aux = (terms.rates * at)[:, ~gauss], centres[:, ~gauss]
        with np.errstate(all="ignore"):
            logs = np.where(aux > 0, aux * np.log(np.where(aux > 0, aux, 1.0) / expected), 0.0)
        poisson = np.sum(2 * (expected - aux + logs), axis=1)
        return np.asarray(total + np.where(np.all(expected > 0, axis=1), poisson, np.inf))

    def newton_step(self, point: Floats, rows: NDArray[np.intp], exact: bool) -> tuple[Floats, Floats]:
        """Steps −H⁻¹g and the decreases gᵀH⁻¹g/2 they predict."""
        slope, matrix = self.differentiate(point, rows)
        low, high = self.likelihood.bounds.T
        held = self.fixed | ((point <= low) & (slope > 0)) | ((point >= high) & (slope < 0))
        if exact:
            matrix = self.sharpen(matrix, point, rows, held)
        slope = np.where(held, 0.0, slope)
        matrix = np.where(held[:, :, None] | held[:, None, :], 0.0, matrix)
        every = np.arange(matrix.shape[1])
        size = np.abs(matrix[:, every, every])  # 0 for what has no effect here, as a mass where the strength is 0
        matrix[:, every, every] += np.where(held | (size == 0), 1.0, 1e-12 * size)
        move = np.linalg.solve(matrix, slope[..., None])[..., 0]
        decrease: Floats = np.asarray(np.sum(slope * move, axis=1) / 2, dtype=np.float64)
        return np.asarray(-move, dtype=np.float64), decrease

    def differentiate(self, point: Floats, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """First derivatives of −ln L and the Gauss–Newton matrix, which is never negative; see `Likelihood`."""
        counts, terms = self.counts[rows], self.terms
        expected, jacobian = self.likelihood.expectation.differentiate(point)
        expected = np.maximum(expected, 1e-300)
        weight = np.where(counts > 0, counts / expected, 1.0) / expected
        matrix = (jacobian * weight[:, None]) @ np.swapaxes(jacobian, 1, 2)
        slope = (jacobian @ (1 - counts / expected)[..., None])[..., 0]
        at, gauss = point[:, terms.index], terms.rates == 0
        safe, centres = np.where(gauss, 1.0, at), self.centres[rows]
        slope[:, terms.index] += np.where(gauss, (at - centres) / terms.widths**2, terms.rates - centres / safe)
        matrix[:, terms.index, terms.index] += np.where(gauss, 1 / terms.widths**2, centres / safe**2)
        return np.asarray(slope, dtype=np.float64), np.asarray(matrix)

    def sharpen(self, matrix: Floats, point: Floats, rows: NDArray[np.intp], held: NDArray[np.bool_]) -> Floats:
        """Second derivatives of −ln L by differences of the first, made positive where they are not."""
        # Gauss–Newton steps converge slowly where residuals are large and shapes asymmetric; a few fits in a thousand.
        steps = np.array([1e-4 * p.width for p in self.likelihood.parameters])
        second = np.empty_like(matrix)
        for some in np.array_split(np.arange(len(steps)), np.clip(len(rows) * len(steps) // 500, 1, len(steps))):
            moves = np.zeros((len(some), len(steps)))
            moves[np.arange(len(some)), some] = steps[some]
            which = np.repeat(rows, len(some))
            sides = [(point[:, None] + sign * moves).reshape(-1, len(steps)) for sign in (1.0, -1.0)]
            ahead, behind = (self.differentiate(side, which)[0] for side in sides)
            second[:, some] = ((ahead - behind).reshape(len(rows), len(some), -1)) / (2 * steps[some, None])
        second = (second + np.swapaxes(second, 1, 2)) / 2 + self.repel(point, rows)
        reduced = np.where(held[:, :, None] | held[:, None, :], np.eye(len(steps)), second)
        usable = np.all(np.isfinite(reduced), axis=(1, 2))
        found = matrix.copy()
        found[usable] = turn_positive(reduced[usable], matrix[usable])
        return found

    def repel(self, point: Floats, rows: NDArray[np.intp]) -> Floats:
        """Second derivatives that keep steps where empty bins expect something.

        A bin without events pulls its expectation λ to 0: there is a wall in the place of a minimum. With ∂λ ∂λ/λ in
        the matrix each step takes a share of λ, until nothing is left to gain; without it steps run into the wall.
        """
        empty = self.counts[rows] == 0
        if not empty.any():
            return np.zeros(())
        expected, jacobian = self.likelihood.expectation.differentiate(point)
        weight = np.where(empty, 1 / (REPULSION * np.maximum(expected, 1e-300)), 0.0)
        return np.asarray((jacobian * weight[:, None]) @ np.swapaxes(jacobian, 1, 2))

    def shorten(
        self, point: Floats, move: Floats, value: Floats, rows: NDArray[np.intp]
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Halve each step until −2 ln L does not rise; says which ended up with a step."""
        low, high = np.where(self.fixed, -np.inf, self.likelihood.bounds.T)
        length, done = np.ones(len(point)), np.zeros(len(point), dtype=bool)
        best, lowest = point.copy(), value.copy()
        for _ in range(40):
            todo = np.flatnonzero(~done)
            trial = np.clip(point[todo] + length[todo, None] * move[todo], low, np.where(self.fixed, np.inf, high))
            found = self.twice_nll(trial, rows[todo])
            better = found <= value[todo] + 1e-12 * np.abs(value[todo])
            best[todo[better]], lowest[todo[better]] = trial[better], found[better]
            done[todo[better]] = True
            length[todo[~better]] /= 2
            if done.all():
                break
        return best, lowest, done

    def finish(self, point: Floats, value: Floats) -> ManyFits:
        """Give fits that failed to MIGRAD, one by one."""
        for row in np.flatnonzero(~np.isfinite(value)):
            names = [self.likelihood.names[i] for i in self.terms.index]
            toy = self.likelihood.with_data(self.counts[row], dict(zip(names, self.centres[row], strict=True)))
            hold = {name: float(values[row]) for name, values in self.hold.items()}
            try:
                found = toy.minimise(hold)
            except FitError:
                value[row] = np.nan
                continue
            point[row], value[row] = found.values, found.twice_nll
        return ManyFits(point, value)
