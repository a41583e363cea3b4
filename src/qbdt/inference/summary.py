"""From a likelihood to a `FitSummary`: best fit, significances, uncertainties, impacts and the parts of σ_μ.

Holding nuisance parameters at their best values leaves the best signal strength where it is, so one free fit and its
matrix of second derivatives serve all variants; each needs only its own fit at μ = 0 for the significance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.likelihood import Likelihood, Minimum
from qbdt.inference.result import FitSummary, FittedParameter, Impact, Scan, Variant

__all__ = ["profile_interval", "refit_impacts", "scan_mu", "summarise"]


def summarise(likelihood: Likelihood, data: str = "Asimov") -> FitSummary:
    """Fit and collect all results.

    Parameters
    ----------
    likelihood
        Model and data.
    data
        What the data are, for titles: "Asimov" or "recorded".
    """
    best = likelihood.minimise()
    hessian = likelihood.hessian(best)
    covariance = likelihood.covariance(best, hessian)
    errors = np.sqrt(np.diag(covariance))
    scale = np.where(errors > 0, errors, 1.0)
    prior = [0.0 if p.kind in ("poi", "free") or p.name in best.fixed else p.width for p in likelihood.parameters]
    return FitSummary(
        data=data,
        mu=float(best.values[likelihood.poi]),
        interval=profile_interval(likelihood, best, hessian),
        variants=_variants(likelihood, best, hessian),
        parameters=_parameters(likelihood, best, errors),
        correlation=covariance / np.outer(scale, scale),
        impacts=_impacts(likelihood, covariance),
        breakdown=_breakdown(likelihood, best, hessian),
        counts=likelihood.data,
        postfit=likelihood.expected_by_process(best.values),
        postfit_error=_expected_error(likelihood, best.values, covariance),
        prefit_error=_expected_error(likelihood, likelihood.start, np.diag(np.square(prior))),
        twice_nll=best.twice_nll,
    )


def profile_interval(likelihood: Likelihood, best: Minimum, hessian: Floats) -> tuple[float, float] | None:
    """Distances to the signal strengths at which the profiled −2 Δln L is 1: what MINOS looks for.

    None where an end is not found, because a bin would expect nothing before it.
    """
    sigma = _sigma_mu(likelihood, best, hessian, ())
    ends = [_crossing(likelihood, best, hessian, sign * sigma) for sign in (-1.0, 1.0)]
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def _crossing(likelihood: Likelihood, best: Minimum, hessian: Floats, distance: float) -> float | None:
    """Distance from the best μ at which −2 Δln L is 1; its root is nearly linear in the distance, so it is divided."""
    centre = float(best.values[likelihood.poi])
    low, high = likelihood.bounds[likelihood.poi]
    for _ in range(30):
        if not low < centre + distance < high:
            return None
        rise = _profiled(likelihood, best, hessian, centre + distance, {})
        if rise is None:
            return None
        root = np.sqrt(max(rise, 1e-12))
        if abs(root - 1) < 1e-7:
            return float(distance)
        distance /= min(max(root, 0.2), 5.0)
    return None


def scan_mu(likelihood: Likelihood, points: int = 21) -> Scan:
    """Profile −2 Δln L over ±2.5 standard deviations of μ, with all sources free and with them held at their best.

    Signal strengths at which a bin would expect nothing, whatever the sources do, are left out.
    """
    best = likelihood.minimise()
    hessian = likelihood.hessian(best)
    centre, sigma = float(best.values[likelihood.poi]), _sigma_mu(likelihood, best, hessian, ())
    low, high = likelihood.bounds[likelihood.poi]
    held = _held(likelihood, best.values, likelihood.of_kind("source"))
    rows = []
    for mu in np.linspace(max(centre - 2.5 * sigma, low), min(centre + 2.5 * sigma, high), points):
        values = [_profiled(likelihood, best, hessian, float(mu), fixed) for fixed in ({}, held)]
        if values[0] is not None and values[1] is not None:
            rows.append((float(mu), values[0], values[1]))
    return Scan(*(np.array(column) for column in zip(*rows, strict=True)))


def _profiled(
    likelihood: Likelihood, best: Minimum, hessian: Floats, mu: float, held: Mapping[str, float]
) -> float | None:
    """−2 Δln L at a signal strength, or None where a bin would be negative there."""
    poi = likelihood.names[likelihood.poi]
    start = _conditional(likelihood, best, hessian, poi, mu, held)
    try:
        return likelihood.follow({poi: mu, **held}, start).twice_nll - best.twice_nll
    except FitError:
        return None


def refit_impacts(likelihood: Likelihood) -> tuple[Impact, ...]:
    """Impacts by repeating the fit with each source held: slower than from the covariance, exact for large effects."""
    best = likelihood.minimise()
    hessian = likelihood.hessian(best)
    errors = np.sqrt(np.diag(likelihood.covariance(best, hessian)))

    def change(name: str, distance: float) -> float:
        at = float(best.values[likelihood.names.index(name)]) + distance
        start = _conditional(likelihood, best, hessian, name, at)
        moved = likelihood.follow({name: at}, start).values
        return float(moved[likelihood.poi] - best.values[likelihood.poi])

    impacts = []
    for name in likelihood.of_kind("source"):
        error = float(errors[likelihood.names.index(name)])
        impacts.append(Impact(name, *(change(name, distance) for distance in (error, -error, 1.0, -1.0))))
    return _ranked(impacts)


def _held(likelihood: Likelihood, values: Floats, names: Sequence[str]) -> dict[str, float]:
    return {name: float(values[likelihood.names.index(name)]) for name in names}


def _sigma_mu(likelihood: Likelihood, best: Minimum, hessian: Floats, held: Sequence[str]) -> float:
    free = [i for i, name in enumerate(likelihood.names) if name not in best.fixed and name not in held]
    inverse = np.linalg.inv(hessian[np.ix_(free, free)])
    return float(np.sqrt(inverse[free.index(likelihood.poi), free.index(likelihood.poi)]))


def _variants(likelihood: Likelihood, best: Minimum, hessian: Floats) -> tuple[Variant, ...]:
    sources, mc_stat = likelihood.of_kind("source"), likelihood.of_kind("mc_stat")
    choices: Mapping[str, tuple[str, ...]] = {
        "full": (),
        "full, no MC stat": mc_stat,
        "stat": sources,
        "stat, no MC stat": sources + mc_stat,
    }
    known: dict[tuple[str, ...], Variant] = {}
    variants = []
    for name, held in choices.items():
        if held not in known:
            fixed = _held(likelihood, best.values, held)
            z = _significance(likelihood, best, hessian, fixed)
            known[held] = Variant(name, z, _sigma_mu(likelihood, best, hessian, held))
        variants.append(Variant(name, known[held].z, known[held].sigma_mu))
    return tuple(variants)


def _conditional(
    likelihood: Likelihood, best: Minimum, hessian: Floats, name: str, value: float, held: Collection[str] = ()
) -> Floats:
    """Best values of all other parameters when one is moved, in the quadratic approximation: where to start a fit."""
    moved = likelihood.names.index(name)
    free = [i for i, n in enumerate(likelihood.names) if n not in best.fixed and n not in held and i != moved]
    start = best.values.copy()
    start[moved] = value
    shift = np.linalg.solve(hessian[np.ix_(free, free)], hessian[free, moved]) * (value - best.values[moved])
    low, high = likelihood.bounds[free].T
    start[free] = np.clip(start[free] - shift, low, high)
    return start


def _significance(likelihood: Likelihood, best: Minimum, hessian: Floats, fixed: Mapping[str, float]) -> float:
    """Discovery significance sqrt(q0); 0 for a deficit (Cowan, Cranmer, Gross, Vitells, eq. 12 and 53)."""
    if best.values[likelihood.poi] <= 0:
        return 0.0
    start = _conditional(likelihood, best, hessian, likelihood.names[likelihood.poi], 0.0, fixed)
    null = likelihood.follow({likelihood.names[likelihood.poi]: 0.0, **fixed}, start)
    return float(np.sqrt(max(null.twice_nll - best.twice_nll, 0.0)))


def _parameters(likelihood: Likelihood, best: Minimum, errors: Floats) -> tuple[FittedParameter, ...]:
    rows = zip(likelihood.parameters, best.values, errors, strict=True)
    return tuple(FittedParameter(p.name, p.kind, float(value), float(error)) for p, value, error in rows)


def _impacts(likelihood: Likelihood, covariance: Floats) -> tuple[Impact, ...]:
    """Shift of μ̂ per shift of θ in the Gaussian approximation: cov(μ, θ)/var(θ)."""
    impacts = []
    for name in likelihood.of_kind("source"):
        index = likelihood.names.index(name)
        variance = covariance[index, index]
        slope = float(covariance[likelihood.poi, index] / variance) if variance > 0 else 0.0
        post = slope * float(np.sqrt(variance))
        impacts.append(Impact(name, post, -post, slope, -slope))
    return _ranked(impacts)


def _ranked(impacts: Sequence[Impact]) -> tuple[Impact, ...]:
    return tuple(sorted(impacts, key=lambda i: max(abs(i.up), abs(i.down)), reverse=True))


def _breakdown(likelihood: Likelihood, best: Minimum, hessian: Floats) -> tuple[tuple[str, float], ...]:
    sources, mc_stat = likelihood.of_kind("source"), likelihood.of_kind("mc_stat")
    total = _sigma_mu(likelihood, best, hessian, ())

    def part(held: Sequence[str]) -> float:
        return float(np.sqrt(max(total**2 - _sigma_mu(likelihood, best, hessian, held) ** 2, 0.0)))

    rows = [("total", total), ("data statistics", _sigma_mu(likelihood, best, hessian, sources + mc_stat))]
    if mc_stat:
        rows.append(("MC statistics", part(mc_stat)))
    if sources:
        rows.append(("all sources", part(sources)))
    rows += sorted(((name, part((name,))) for name in sources), key=lambda row: -row[1])
    return tuple(rows)


def _expected_error(likelihood: Likelihood, values: Floats, covariance: Floats) -> Floats:
    """Uncertainty of the expected events per bin by linear propagation."""
    rows = []
    for index, error in enumerate(np.sqrt(np.diag(covariance))):
        step = np.zeros_like(values)
        step[index] = 0.1 * error
        change = likelihood.expected(values + step) - likelihood.expected(values - step)
        rows.append(change / (0.2 * error) if error > 0 else np.zeros_like(change))
    jacobian = np.array(rows)
    return np.asarray(np.sqrt(np.einsum("ib,ij,jb->b", jacobian, covariance, jacobian)))
