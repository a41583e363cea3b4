"""From a likelihood to a `FitSummary`: best fit, significances, uncertainties, impacts and the parts of σ_μ.

Holding nuisance parameters at their best values leaves the best signal strength where it is, so one free fit and its
matrix of second derivatives (`BestFit`) serve all variants, the interval, the scan and the impacts; each variant needs
only its own fit at μ = 0 for the significance.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.analytic_likelihood import AnalyticLikelihood, fit_from
from qbdt.inference.fit_summary import FitSummary, FittedParameter, Scan, StrengthSummary
from qbdt.inference.impacts import measure_group_impacts, measure_impacts
from qbdt.inference.likelihood import Likelihood, Minimum
from qbdt.inference.pyhf_model import PyhfModel
from qbdt.statistics import FittedSensitivity, quadratic_difference

SCAN_REACH = 2.5
"""Standard deviations of μ on either side that a scan covers: a little more than the 2 σ line in its figure."""

FAR = 1.0
"""−2 Δln L beyond which asymmetric shapes may have another minimum than the one predicted from the best fit, so that a
second search starts from the nominal values: one standard deviation. `make fits` draws models with another at two."""

NEAR = 0.1
"""−2 Δln L beyond which asymmetric sources are turned, from where the first search ended, for a lower minimum."""

TURN = 0.5
"""Where, at least, searches on the other side of an asymmetric source start, in standard deviations."""

LONGEST_STEP = 5.0
"""Largest factor by which one step of the search for an end of the interval changes the distance."""

QUADRATIC = 6
"""Steps of that search that take −2 Δln L for quadratic: twice as many as it takes where it nearly is."""

JUMP = 1e-4
"""Share of the distance below which it is not halved further where −2 Δln L jumps, from one minimum to another."""


@dataclass(frozen=True, eq=False)
class BestFit:
    """A likelihood, its minimum with all parameters free, the second derivatives of −ln L there, and a strength."""

    likelihood: Likelihood
    minimum: Minimum
    hessian: Floats
    poi: str

    @property
    def mu(self) -> float:
        """Best signal strength."""
        return float(self.minimum.values[self.index])

    @property
    def index(self) -> int:
        """Number of the signal strength among the parameters."""
        return self.likelihood.names.index(self.poi)

    @property
    def is_strength(self) -> bool:
        """Whether it is a strength; otherwise it is a source without constraint, such as a mass."""
        return self.likelihood.parameters[self.index].is_factor

    @property
    def analytic(self) -> AnalyticLikelihood:
        """The likelihood, where it can fit many sets of counts at once; refused where it is pyhf's."""
        if not isinstance(self.likelihood, AnalyticLikelihood):
            raise FitError("limits, scans, toys and yields need the likelihood with derivatives by formula")
        return self.likelihood

    def value(self, name: str) -> float:
        """Best value of one parameter."""
        return float(self.minimum.values[self.likelihood.names.index(name)])

    def hold(self, names: Sequence[str]) -> dict[str, float]:
        """Return the best values of some parameters, to hold them there."""
        return {name: self.value(name) for name in names}

    def sigma_mu(self, held: Collection[str] = ()) -> float:
        """σ_μ from the inverse of the second derivatives, less the rows and columns of parameters that are held."""
        names = self.likelihood.names
        free = [i for i, name in enumerate(names) if name not in self.minimum.fixed and name not in held]
        poi = free.index(self.index)
        return float(np.sqrt(np.linalg.inv(self.hessian[np.ix_(free, free)])[poi, poi]))

    def rise(self, mu: float, held: Mapping[str, float]) -> float:
        """−2 Δln L at a signal strength, all parameters that are not held fitted again.

        Raises `FitError` where a bin would be negative whatever they are.
        """
        return self.profile(mu, held).twice_nll - self.minimum.twice_nll

    def profile(self, mu: float, held: Mapping[str, float]) -> Minimum:
        """Fit all parameters that are not held, at a signal strength."""
        hold, start = {self.poi: mu, **held}, self.predict(self.poi, mu, held)
        found = self.likelihood.follow(hold, start)
        rise = found.twice_nll - self.minimum.twice_nll
        if rise > FAR:
            again = self.likelihood.follow(hold, self.likelihood.start)
            found = again if again.twice_nll < found.twice_nll - 1e-6 else found
        return _turn_sources(self.likelihood, found, hold) if rise > NEAR else found

    def predict(self, name: str, value: float, held: Collection[str] = ()) -> Floats:
        """Best values of all other parameters when one is moved, in the quadratic approximation: where to start a fit.

        With H the second derivatives, the free parameters f follow the moved one m by −H_ff⁻¹ H_fm (m − m̂).
        """
        names, moved = self.likelihood.names, self.likelihood.names.index(name)
        free = [i for i, n in enumerate(names) if n not in self.minimum.fixed and n not in held and i != moved]
        start = self.minimum.values.copy()
        distance = value - start[moved]
        start[moved] = value
        shift = np.linalg.solve(self.hessian[np.ix_(free, free)], self.hessian[free, moved]) * distance
        low, high = self.likelihood.bounds[free].T
        start[free] = np.clip(start[free] - shift, low, high)
        return start


def fit_freely(likelihood: Likelihood) -> BestFit:
    """Minimise −2 ln L with all parameters free: the one fit that all results start from."""
    minimum = _turn_sources(likelihood, likelihood.minimise(), {})
    return BestFit(likelihood, minimum, likelihood.hessian(minimum), likelihood.names[likelihood.poi])


def _turn_sources(likelihood: Likelihood, found: Minimum, hold: Mapping[str, float]) -> Minimum:
    """Look for a lower minimum on the other side of each asymmetric source; return the lowest."""
    if found.twice_nll < 1e-6:  # there is none below 0
        return found
    try:
        turned = [i for i in likelihood.expectation.asymmetric if likelihood.names[i] not in found.fixed]
    except FitError:  # a modifier of another program, without a formula here
        return found
    if not turned:
        return found
    starts = np.tile(found.values, (len(turned), 1))
    value = found.values[turned]
    starts[np.arange(len(turned)), turned] = np.where(value > 0, -1.0, 1.0) * np.maximum(np.abs(value), TURN)
    others = fit_from(likelihood, starts, {name: found.values[likelihood.names.index(name)] for name in found.fixed})
    lowest = int(np.argmin(np.where(np.isfinite(others.twice_nll), others.twice_nll, np.inf)))
    if not others.twice_nll[lowest] < found.twice_nll - 1e-6:
        return found
    return likelihood.follow(hold, others.values[lowest])


def summarise(
    best: BestFit,
    data: str = "Asimov",
    refit: bool = False,
    of_interest: Sequence[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
) -> FitSummary:
    """Collect all results of a free fit.

    Parameters
    ----------
    data
        Kind of data, for titles: "Asimov" or "recorded".
    refit
        Whether impacts come from fits with each source moved, otherwise from the covariance matrix.
    of_interest
        Strengths, and sources without constraint, to give results for; that of `best` if not given.
    groups
        Names of groups of parameters and their members, for impacts and parts of σ_μ.
    """
    likelihood, values = best.likelihood, best.minimum.values
    covariance = likelihood.covariance(best.minimum, best.hessian)
    errors = np.sqrt(np.diag(covariance))
    scale = np.where(errors > 0, errors, 1.0)
    strengths = [replace(best, poi=name) for name in of_interest or (best.poi,)]
    return FitSummary(
        data=data,
        strengths=tuple(_summarise_strength(one, covariance, refit, groups or {}) for one in strengths),
        parameters=_parameters(best, errors),
        correlation=covariance / np.outer(scale, scale),
        regions=likelihood.channels,
        counts=likelihood.data,
        postfit=likelihood.expected_by_process(values),
        postfit_error=expected_error(likelihood, values, covariance),
        prefit_error=expected_error(likelihood, likelihood.start, likelihood.prior_covariance(best.minimum.fixed)),
        twice_nll=best.minimum.twice_nll,
    )


def _summarise_strength(
    best: BestFit, covariance: Floats, refit: bool, groups: Mapping[str, Sequence[str]]
) -> StrengthSummary:
    mc_stat = best.likelihood.of_kind("mc_stat")
    sensitivity = _sensitivity(best)
    return StrengthSummary(
        name=best.poi,
        mu=best.mu,
        interval=_interval(best),
        sensitivity=sensitivity,
        without_mc_stat=_sensitivity(best, mc_stat) if mc_stat else sensitivity,
        impacts=measure_impacts(best, covariance, refit),
        group_impacts=measure_group_impacts(best, covariance, groups, refit),
        breakdown=_breakdown(best, groups),
        is_strength=best.is_strength,
    )


def scan_mu(best: BestFit, points: int = 21) -> Scan:
    """Profile −2 Δln L over ±2.5 standard deviations of μ, with all sources free and with them held at their best.

    Signal strengths at which a bin would expect nothing, whatever the sources do, are left out.
    """
    reach = SCAN_REACH * best.sigma_mu()
    low, high = best.likelihood.bounds[best.index]
    held = best.hold(best.likelihood.of_kind("source"))
    rows = []
    for mu in np.linspace(max(best.mu - reach, low), min(best.mu + reach, high), points).tolist():
        try:
            rows.append((mu, best.rise(mu, {}), best.rise(mu, held)))
        except FitError:
            continue
    return Scan(*(np.array(column) for column in zip(*rows, strict=True)))


def _interval(best: BestFit) -> tuple[float, float] | None:
    """Distances to the signal strengths at which the profiled −2 Δln L is 1, as MINOS finds them.

    None where an end is not found, because a bin would expect nothing before it.
    """
    sigma = best.sigma_mu()
    low, high = (_find_crossing(best, sign * sigma) for sign in (-1.0, 1.0))
    return None if low is None or high is None else (low, high)


def _find_crossing(best: BestFit, distance: float) -> float | None:
    """Distance from the best μ at which −2 Δln L is 1, from a first guess of it."""
    low, high = best.likelihood.bounds[best.index]
    inside, outside = 0.0, math.inf  # nearest distances known to be too short and too long
    before: tuple[float, float] | None = None
    for step in range(30):
        if not low < best.mu + distance < high:
            return None
        try:
            rise = best.rise(best.mu + distance, {})
        except FitError:
            return None
        # −2 Δln L is nearly quadratic: its root r is nearly proportional to the distance, which is r times too long.
        root = float(np.sqrt(max(rise, 1e-12)))
        if abs(root - 1) < 1e-7:
            return float(distance)
        inside, outside = (abs(distance), outside) if root < 1 else (inside, abs(distance))
        divisor = root
        if step >= QUADRATIC and before is not None and root != before[1]:
            # Where it is not, steps are too short or overshoot: a straight line through the last two.
            divisor = 1 / max(1 + (1 - root) / (root - before[1]) * (1 - before[0] / distance), 1 / LONGEST_STEP)
        before = distance, root
        distance /= min(max(divisor, 1 / LONGEST_STEP), LONGEST_STEP)
        if not inside < abs(distance) < outside:
            # It jumps, as where another minimum takes over, and steps go back and forth: halved until it is narrow.
            distance = math.copysign((inside + outside) / 2 if outside < math.inf else 2 * inside, distance)
            if outside - inside < JUMP * inside:
                return float(distance)
    return None


def _sensitivity(best: BestFit, held: tuple[str, ...] = ()) -> FittedSensitivity:
    """σ_μ and Z with some parameters held, without (these and the sources held) and with the sources."""
    stat = best.likelihood.of_kind("source") + held
    return FittedSensitivity(
        best.sigma_mu(stat), best.sigma_mu(held), _significance(best, stat), _significance(best, held)
    )


def _significance(best: BestFit, held: tuple[str, ...]) -> float:
    """Discovery significance sqrt(q0), q0 = −2 ln L(0)/L(μ̂), 0 for a deficit and for what is no strength.

    Cowan, Cranmer, Gross, Vitells, arXiv:1007.1727, eq. 12 and 53.
    """
    if best.mu <= 0 or not best.is_strength:
        return 0.0
    return float(np.sqrt(max(best.rise(0.0, best.hold(held)), 0.0)))


def _parameters(best: BestFit, errors: Floats) -> tuple[FittedParameter, ...]:
    rows = zip(best.likelihood.parameters, best.minimum.values, errors, strict=True)
    return tuple(FittedParameter(p.name, p.kind, float(value), float(error)) for p, value, error in rows)


def _breakdown(best: BestFit, given: Mapping[str, Sequence[str]]) -> tuple[tuple[str, float], ...]:
    """Parts of σ_μ: its decrease in quadrature when one group of parameters is held at its best values."""
    sources, mc_stat = best.likelihood.of_kind("source"), best.likelihood.of_kind("mc_stat")
    total = best.sigma_mu()
    rows = [("total", total), ("data statistics", best.sigma_mu(sources + mc_stat))]
    others = tuple(
        name for name in (best.likelihood.of_kind("poi") + best.likelihood.of_kind("free")) if name != best.poi
    )
    own = [(group, tuple(name for name in members if name != best.poi)) for group, members in given.items()]
    groups = [("MC statistics", mc_stat), ("all sources", sources), ("free parameters", others), *own]
    rows += [(name, quadratic_difference(total, best.sigma_mu(held))) for name, held in groups if held]
    single = [(name, quadratic_difference(total, best.sigma_mu((name,)))) for name in sources]
    return (*rows, *sorted(single, key=lambda row: -row[1]))


def expected_error(model: PyhfModel, values: Floats, covariance: Floats) -> Floats:
    """Uncertainty of the expected events per bin by linear propagation, sqrt(Jᵀ V J).

    The derivatives J are central differences over a tenth of each parameter's uncertainty.
    """
    rows = []
    for index, error in enumerate(np.sqrt(np.diag(covariance))):
        step = np.zeros_like(values)
        step[index] = 0.1 * error
        change = model.expected(values + step) - model.expected(values - step)
        rows.append(change / (0.2 * error) if error > 0 else np.zeros_like(change))
    jacobian = np.array(rows)
    return np.asarray(np.sqrt(np.einsum("ib,ij,jb->b", jacobian, covariance, jacobian)))
