"""The fit of any parameter: of sources that have no constraint, such as a mass, beside strengths and free backgrounds.

Templates are interpolated: with n the nominal content of a bin and u, d those for θ = ±1,

    n(θ) = n + θ (u − d)/2 + θ² (u + d − 2n)/2

up to |θ| = 1, and along the tangent beyond. HistFactory, and so pyhf, has constraints on all parameters that
interpolate; hence this fit of its own. MC statistics are one factor γ per bin (Barlow–Beeston "lite"), solved for in
closed form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.errors import FitError
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.cells import CellTarget, choose_cells
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.template_set import TemplateSet
from qbdt.tables import Table

STEP = 1e-3
"""Step of the derivatives of the expectation: of second order in every parameter, so that only rounding counts."""


@dataclass(frozen=True, eq=False)
class ParameterFit:
    """Fitted parameters.

    Attributes
    ----------
    names
        All parameters: strengths, sources, then free normalisations `norm_PROCESS`.
    values
        Their fitted values: 1 is nominal for strengths and normalisations, 0 for sources.
    covariance
        Of all parameters.
    of_interest
        Names of those that are measured.
    n_bins
        Number of bins.
    """

    names: tuple[str, ...]
    values: Floats
    covariance: Floats
    of_interest: tuple[str, ...]
    n_bins: int

    def value(self, name: str) -> float:
        """Fitted value of a parameter."""
        return float(self.values[self.names.index(name)])

    def sigma(self, name: str) -> float:
        """Uncertainty of a parameter."""
        place = self.names.index(name)
        return math.sqrt(float(self.covariance[place, place]))

    def correlation(self, one: str, other: str) -> float:
        """Correlation of two parameters."""
        return float(self.covariance[self.names.index(one), self.names.index(other)]) / (
            self.sigma(one) * self.sigma(other)
        )

    def tables(self) -> tuple[Table, ...]:
        """Parameters of interest, then all others."""
        order = [*self.of_interest, *(name for name in self.names if name not in self.of_interest)]
        rows = tuple((name, f"{self.value(name):.4g}", f"{self.sigma(name):.4g}") for name in order)
        return (Table("Fitted parameters", ("parameter", "value", "σ"), rows),)


def fit_parameters(
    scored: Dataset,
    of_interest: Sequence[str],
    strengths: Mapping[str, Sequence[str]] | None = None,
    settings: FitSettings | None = None,
    *,
    free: Sequence[str] = (),
    choose_on: Dataset | None = None,
) -> ParameterFit:
    """Measure parameters of which some are sources without a constraint.

    Parameters
    ----------
    scored
        Dataset whose features are the scores of a model that was trained with the same `of_interest`.
    of_interest
        What is measured: sources, or strengths.
    strengths
        Signal strengths, and the signal processes of each; one, "mu", for all by default. They are free.
    settings
        `bins` is the largest number of cells, 20 by default, `min_entries` the floor of each, `mc_stat` whether MC
        statistics count.
    free
        Backgrounds whose normalisation is free.
    choose_on
        Other events with scores to choose the cells on. Without it they are chosen fold by fold on the other folds.

    Returns
    -------
    ParameterFit
        Of the recorded data where there are some, otherwise of the Asimov data.

    Examples
    --------
    >>> from qbdt import Events, ModuloFolds, Sample, Systematic
    >>> rng = np.random.default_rng(1)
    >>> def sample(name, role, at, width, total):
    ...     x = rng.normal(at, width, 5000)
    ...     return Sample(name, role, Events({"m": x}, np.full(5000, total / 5000), {"event": np.arange(5000)}))
    >>> peak, rest = sample("peak", "signal", 125, 2, 400), sample("rest", "background", 120, 20, 2000)
    >>> at, rest_of = peak.events.column("m"), (peak.events.weight, {"event": np.arange(5000)})
    >>> moved = [Events({"m": at + shift}, *rest_of) for shift in (1, -1)]
    >>> mass = Systematic.shape("mass", {"peak": moved[0]}, {"peak": moved[1]})
    >>> found = fit_parameters(Dataset([peak, rest], [mass], ModuloFolds(2, "event")), ["mass"], free=["rest"])
    >>> abs(found.value("mass")) < 1e-6, 0.1 < found.sigma("mass") < 0.2
    (True, True)
    """
    settings = settings or FitSettings()
    wanted = [s.name for s in scored.systematics] if settings.systematics is None else settings.systematics
    scored = scored.require_usable().with_systematics(wanted)
    signals = tuple(sample.name for sample in scored.of_role(Role.SIGNAL))
    named = {name: tuple(own) for name, own in (strengths or {"mu": signals}).items()}
    target = CellTarget(named, tuple(of_interest), tuple(free))
    chosen = scored if choose_on is None else choose_on.with_systematics(wanted)
    cells = choose_cells(chosen, settings.bins, target, settings.min_entries, by_folds=choose_on is None)
    templates = fill(scored, cells, "cell of the scores").scaled(settings.scale)
    return _ParameterModel(templates, target, settings.mc_stat).fit()


class _ParameterModel:
    """Expectation of templates as a function of all parameters, and −2 ln L."""

    def __init__(self, templates: TemplateSet, target: CellTarget, mc_stat: bool) -> None:
        self._templates, self._target = templates, target
        self.names = (*target.strengths, *templates.sources, *(f"norm_{name}" for name in target.free))
        self._factors = {p: name for name, own in target.strengths.items() for p in own}
        self._factors |= {p: f"norm_{p}" for p in target.free}
        self.start = np.array([0.0 if name in templates.sources else 1.0 for name in self.names])
        self._constrained = np.array([n in templates.sources and n not in target.chosen for n in self.names])
        squares = templates.arrays().mc_variance if mc_stat else np.zeros(templates.n_bins)
        self.nominal = self.expected(self.start)
        if np.any(self.nominal <= 0):
            raise FitError(f"bin {int(np.argmin(self.nominal)) + 1} expects {self.nominal.min():.3g} events")
        self._relative = squares / self.nominal**2
        self.data = self.nominal if templates.data is None else templates.data

    def expected(self, values: Floats) -> Floats:
        """Expected events per bin."""
        at = dict(zip(self.names, values.tolist(), strict=True))
        total = np.zeros(self._templates.n_bins)
        for process in self._templates.processes:
            content = process.nominal.copy()
            for name, shift in process.shifts.items():
                content += _interpolate(process.nominal, shift.up, shift.down, at[name])
            total += at.get(self._factors.get(process.name, ""), 1.0) * content
        return total

    def twice_nll(self, values: Floats) -> float:
        """−2 ln L, relative to expectations that are the data; large where a bin would be negative."""
        expected = self.expected(np.asarray(values))
        if np.any(expected <= 0):
            return 1e12
        gamma = self._solve_gamma(expected)
        mean, n = gamma * expected, self.data
        logs = np.where(n > 0, n * np.log(np.where(n > 0, n, 1.0) / mean), 0.0)
        mc = np.where(self._relative > 0, (gamma - 1) ** 2 / np.where(self._relative > 0, self._relative, 1.0), 0.0)
        pulls = np.asarray(values)[self._constrained]
        return float(np.sum(2 * (mean - n + logs) + mc) + pulls @ pulls)

    def _solve_gamma(self, expected: Floats) -> Floats:
        """Best MC-statistics factors: γ² + γ(r²λ − 1) − r²n = 0."""
        half = (1 - self._relative * expected) / 2
        return np.asarray(half + np.sqrt(half**2 + self._relative * self.data))

    def fit(self) -> ParameterFit:
        """Minimise, and find the covariance from the expected information at the minimum."""
        values = self.start if self._templates.data is None else self._minimise()
        rows = []
        for i in range(len(values)):
            ahead, behind = values.copy(), values.copy()
            ahead[i] += STEP
            behind[i] -= STEP
            rows.append((self.expected(ahead) - self.expected(behind)) / (2 * STEP))
        d, expected = np.array(rows), self.expected(values)
        variance = expected * (1 + self._relative * expected)
        information = (d / variance) @ d.T + np.diag(self._constrained.astype(float))
        return ParameterFit(
            self.names, values, _invert(information, self.names), self._target.chosen, self._templates.n_bins
        )

    def _minimise(self) -> Floats:
        from iminuit import Minuit

        minuit = Minuit(self.twice_nll, self.start, name=self.names)
        minuit.errordef, minuit.print_level = Minuit.LEAST_SQUARES, 0
        minuit.migrad()
        if not minuit.valid:
            minuit.simplex().migrad()
        if not minuit.valid:
            raise FitError(f"the fit did not converge (distance to the minimum {minuit.fmin.edm:.2g})")
        return np.array(minuit.values)


def _interpolate(nominal: Floats, up: Floats, down: Floats, theta: float) -> Floats:
    """Change of a template: of second order up to |θ| = 1, along the tangent beyond."""
    slope, bend = (up - down) / 2, (up + down - 2 * nominal) / 2
    inside = max(-1.0, min(1.0, theta))
    return np.asarray(inside * slope + inside**2 * bend + (theta - inside) * (slope + 2 * inside * bend))


def _invert(information: Floats, names: Sequence[str]) -> Floats:
    diagonal = np.diag(information)
    if np.any(diagonal <= 0):
        raise FitError(f"the templates do not depend on {names[int(np.argmin(diagonal))]}: nothing measures it")
    size = 1 / np.sqrt(diagonal)
    unit = information * np.outer(size, size)
    if np.linalg.eigvalsh(unit)[0] < 1e-10:
        one, other = divmod(int(np.argmax(np.abs(unit - np.eye(len(unit))))), len(unit))
        raise FitError(f"{names[one]} and {names[other]} cannot be told apart in these templates")
    return np.asarray(np.linalg.inv(unit) * np.outer(size, size))
