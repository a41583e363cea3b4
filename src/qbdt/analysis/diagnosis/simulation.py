"""Gain from more simulated events: in training, from the learning curve, and in the templates of the fit.

σ_μ of a score learnt from x times the events behaves like c + d x^−γ over the range that matters. It is fitted to the
shares of the learning curve, whose points are all evaluated on the same events, for every exponent of a grid; the
exponents count by their likelihood, so that the error of an extrapolation knows how little four points say of γ. What
MC statistics add to σ_μ in the fit needs no model: the variance of the templates is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qbdt.analysis.diagnosis.curves import LearningCurve
from qbdt.analysis.diagnosis.sensitivity import compute_template_sensitivity
from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.inference.templates import TemplateSet
from qbdt.tables import Table

FACTORS = (2.0, 10.0, None)
EXPONENTS = np.arange(0.3, 1.55, 0.1)
"""γ: 1/2 where MC noise of leaves adds linearly, 1 where it adds in quadrature; deep trees learn more slowly."""

LEAST_ERROR = 1e-3
"""Least relative error of a point: of two equal repeats the spread is no error."""


@dataclass(frozen=True)
class MoreEvents:
    """σ_μ with more simulated events of everything."""

    factor: float | None  # How many times as many; None for infinitely many
    # sigma, error: σ_μ with that many in training and in the templates, and its error
    sigma: float
    error: float
    in_templates: float  # σ_μ with that many in the templates alone, for the score as it is


@dataclass(frozen=True)
class ProcessStatistics:
    """Cost of the MC statistics of one process's templates."""

    process: str
    share: float  # Share of σ_μ² that it makes up
    # doubled, tenfold: σ_μ with 2 and 10 times its events in the templates
    doubled: float
    tenfold: float


def expect_more(
    curve: LearningCurve, templates: TemplateSet, repeats: int, mc_stat: bool = True
) -> tuple[MoreEvents, ...]:
    """Extrapolate a learning curve over shares of the training events, the last of which is all of them.

    Without `mc_stat` the fit does not know of MC statistics, and more events help training alone.
    """
    now = compute_template_sensitivity(templates, mc_stat).sigma_full
    found = []
    for factor in FACTORS:
        ratio, error = extrapolate(curve, repeats, factor)
        in_templates = _sigma(templates, [p.name for p in templates.processes], factor) if mc_stat else now
        found.append(MoreEvents(factor, in_templates * ratio, in_templates * error, in_templates))
    return tuple(found)


def extrapolate(curve: LearningCurve, repeats: int, factor: float | None) -> tuple[float, float]:
    """σ_μ with `factor` times the training events over σ_μ with all there are, and the error of this ratio.

    The curve says where σ_μ is expected; that of the one training with all events may be above or below it by chance.

    Examples
    --------
    >>> at = (0.125, 0.25, 0.5, 1.0)
    >>> exact = tuple(1 + 0.1 / x for x in at)
    >>> curve = LearningCurve("share", at, exact, (0.01,) * 4, exact, (0.01,) * 4)
    >>> ratio, error = extrapolate(curve, 3, 10.0)
    >>> abs(ratio - 1.01 / 1.1) < 2 * error
    True
    """
    chi2, values, variances = _fit_exponents(curve, repeats, factor)
    weight, now = _normalise(chi2), float(curve.full[-1])
    mean = float(weight @ values)
    error = float(np.sqrt(weight @ (variances + (values - mean) ** 2)))
    return mean / now, error / now


def weigh_exponents(curve: LearningCurve, repeats: int) -> Floats:
    """Likelihood of each of `EXPONENTS` in a learning curve, of sum 1."""
    return _normalise(_fit_exponents(curve, repeats, None)[0])


def pool_spreads(curve: LearningCurve) -> Floats:
    """Error of one training with each share x of the events, from the spreads over repeats at all shares but the last.

    Three repeats say little of their spread, so it is taken to be s₀/√x, with one s₀ for all.
    """
    x, y, spread = np.array(curve.at), np.array(curve.full), np.array(curve.full_spread)
    pooled = np.sqrt(np.mean(x[:-1] * spread[:-1] ** 2) / x)
    return np.asarray(np.hypot(pooled, LEAST_ERROR * y))


def _fit_exponents(curve: LearningCurve, repeats: int, factor: float | None) -> tuple[Floats, Floats, Floats]:
    """Fit the curve with every exponent; return χ², the values at `factor` and their variances."""
    n_trainings = np.append(np.full(len(curve.at) - 1, repeats), 1)  # all events are trained on once
    x, y, errors = np.array(curve.at), np.array(curve.full), pool_spreads(curve) / np.sqrt(n_trainings)
    fits = [_fit(x, y, errors, float(exponent), factor) for exponent in EXPONENTS]
    chi2, values, variances = (np.array(column) for column in zip(*fits, strict=True))
    return chi2, values, variances


def _normalise(chi2: Floats) -> Floats:
    weight = np.exp(-0.5 * (chi2 - chi2.min()))
    return np.asarray(weight / weight.sum())


def _fit(x: Floats, y: Floats, errors: Floats, exponent: float, factor: float | None) -> tuple[float, float, float]:
    """Fit c + d x^−γ for one γ; return χ², the value at `factor`, and its variance."""
    columns = np.column_stack([np.ones_like(x), x**-exponent])
    covariance = np.linalg.inv(columns.T @ (columns / errors[:, None] ** 2))
    c, d = covariance @ columns.T @ (y / errors**2)
    if d < 0:  # more events do not make it worse: what looks like it is noise
        c, d = float(np.average(y, weights=errors**-2)), 0.0
    chi2 = float(np.sum(((y - c - d * x**-exponent) / errors) ** 2))
    there = np.array([1.0, 0.0 if factor is None else factor**-exponent])
    return chi2, float(there @ (c, d)), float(there @ covariance @ there)


def describe_statistics(templates: TemplateSet) -> tuple[ProcessStatistics, ...]:
    """MC statistics of every background process, the most costly first; those of signal do not enter the fit."""
    now = compute_template_sensitivity(templates).sigma_full
    found = []
    for process in templates.of_role(Role.BACKGROUND):
        without, doubled, tenfold = (_sigma(templates, [process.name], factor) for factor in (None, 2.0, 10.0))
        found.append(ProcessStatistics(process.name, 1.0 - (without / now) ** 2, doubled, tenfold))
    return tuple(sorted(found, key=lambda one: -one.share))


def _sigma(templates: TemplateSet, processes: Sequence[str], factor: float | None) -> float:
    """σ_μ with so many times the events in the templates of some processes."""
    divide = 0.0 if factor is None else 1.0 / factor
    changed = [replace(p, variance=p.variance * divide) if p.name in processes else p for p in templates.processes]
    return compute_template_sensitivity(replace(templates, processes=tuple(changed))).sigma_full


def simulation_tables(
    now: float, more: Sequence[MoreEvents], statistics: Sequence[ProcessStatistics]
) -> tuple[Table, ...]:
    """Gain from more events of everything, and cost of the templates of each process."""

    def change(sigma: float) -> str:
        return f"{100 * (sigma / now - 1):+z.1f}"

    rows = tuple(
        (
            "∞" if one.factor is None else f"{one.factor:g} ×",
            f"{one.sigma:.3f} ± {one.error:.3f}",
            f"{change(one.sigma)} ± {100 * one.error / now:.1f}",
            change(one.in_templates),
        )
        for one in more
    )
    header = ("simulated events", "σ_μ", "change (%)", "of it in templates alone (%)")
    first = Table(f"More simulation: σ_μ = {now:.3f} would become", header, rows)
    rows = tuple(
        (one.process, f"{100 * one.share:.1f}", change(one.doubled), change(one.tenfold)) for one in statistics
    )
    header = ("process", "share of σ_μ² (%)", "2 × its events (%)", "10 × (%)")
    return first, Table("MC statistics of the templates by process: σ_μ changes by", header, rows)
