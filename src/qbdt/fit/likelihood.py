"""The likelihood of a workspace: pyhf evaluates it, iminuit minimises it, its second derivatives are taken here.

MINUIT's HESSE is not used for uncertainties: with tens of correlated nuisance parameters its numerical derivatives are
off by 0.1 to 10 % of σ_μ. Central differences with steps of a fixed fraction of each parameter's own uncertainty are
right to 1e-5 and cost the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from qbdt.errors import FitError
from qbdt.templates.template_set import FloatArray

__all__ = ["Likelihood", "Minimum", "Parameter"]

STEP = 0.02
"""Step of the central differences in units of the uncertainty; truncation and rounding are both below 1e-5."""
TOLERANCE = 2e-3
"""MINUIT's tolerance: the estimated distance to the minimum of −2 ln L is below 0.002 of it."""
FOLLOWED, MAX_FOLLOWED = 1e-8, 25
"""Newton steps with a fixed matrix end below this distance to the minimum of −ln L, or are given up."""
FORBIDDEN = 1e12
"""Value of −2 ln L where an expectation is negative: finite, so that the minimiser turns back."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of the model.

    Attributes
    ----------
    name
        Name in the workspace, with the bin in brackets for MC statistics.
    kind
        "poi", "source" (a systematic source), "mc_stat" (one bin) or "free" (without constraint).
    width
        Standard deviation of its constraint; 1 where there is none.
    """

    name: str
    kind: str
    width: float


@dataclass(frozen=True, eq=False)
class Minimum:
    """A minimum of −2 ln L: values of all parameters, which were held fixed, and MINUIT's state where it found it."""

    values: FloatArray
    twice_nll: float
    fixed: frozenset[str]
    minuit: Any = None


class Likelihood:
    """−2 ln L of a workspace and its data.

    Parameters
    ----------
    spec
        pyhf workspace.
    data
        Counts per bin, to use instead of the observations of the workspace.
    linear
        Interpolate shapes piecewise linearly (code 0), as the Newton solver does. Otherwise as pyhf's command line,
        cabinetry and ROOT do: code 4p for shapes and code 4 for normalisations, smooth at θ = 0 and linear or
        exponential beyond ±1. For shapes with up and down symmetric about the nominal the two are the same. (pyhf's
        Python interface has yet another default, codes 0 and 1.)

    Examples
    --------
    >>> import pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background([5.0], [50.0], [5.0])
    >>> spec = pyhf.Workspace.build(model, [55.0])
    >>> [p.name for p in Likelihood(spec).parameters]
    ['mu', 'uncorr_bkguncrt[0]']
    """

    def __init__(self, spec: Mapping[str, Any], data: FloatArray | None = None, linear: bool = False) -> None:
        import pyhf

        settings = {"histosys": {"interpcode": "code0" if linear else "code4p"}, "normsys": {"interpcode": "code4"}}
        try:
            workspace = pyhf.Workspace(spec)
            self.model = workspace.model(modifier_settings=settings)
        except (pyhf.exceptions.InvalidModel, pyhf.exceptions.InvalidSpecification) as error:
            raise FitError(f"the workspace is not a valid model: {error}") from error
        config = self.model.config
        if config.poi_index is None:
            raise FitError("the workspace has no parameter of interest")
        counts = np.asarray(workspace.data(self.model, include_auxdata=False) if data is None else data, dtype=float)
        if counts.shape != (config.nmaindata,):
            raise FitError(f"{counts.size} counts for a model of {config.nmaindata} bins")
        self.data = np.concatenate([counts, np.asarray(config.auxdata, dtype=float)])
        self.poi = int(config.poi_index)
        self.start = np.asarray(config.suggested_init(), dtype=float)
        self.bounds = [tuple(pair) for pair in config.suggested_bounds()]
        self.constant = np.asarray(config.suggested_fixed(), dtype=bool)
        self.parameters = tuple(_parameters(self.model))
        self.names = tuple(parameter.name for parameter in self.parameters)

    def with_data(self, counts: FloatArray, centres: Mapping[str, float]) -> Likelihood:
        """Return the same model with other counts, and other centres of the Gaussian constraints: a toy experiment."""
        other = copy(self)
        config = self.model.config
        labels = [label for name in config.auxdata_order for label in config.par_names[config.par_slice(name)]]
        aux = [centres.get(label, old) for label, old in zip(labels, config.auxdata, strict=True)]
        other.data = np.concatenate([counts, np.asarray(aux, dtype=float)])
        return other

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Names of the parameters of one kind."""
        return tuple(p.name for p in self.parameters if p.kind == kind)

    def twice_nll(self, values: FloatArray) -> float:
        """−2 ln L at a point; a very large number where an expectation is negative."""
        with np.errstate(all="ignore"):
            value = -2.0 * float(self.model.logpdf(values, self.data)[0])
        return value if np.isfinite(value) else FORBIDDEN

    def expected(self, values: FloatArray) -> FloatArray:
        """Expected events per bin at a point."""
        return np.asarray(self.model.expected_actualdata(values), dtype=float)

    def expected_by_process(self, values: FloatArray) -> dict[str, FloatArray]:
        """Expected events per bin of each process at a point."""
        rows = self.model.main_model.expected_data(values, return_by_sample=True)
        return {name: np.asarray(row, dtype=float) for name, row in zip(self.model.config.samples, rows, strict=True)}

    def minimise(self, hold: Mapping[str, float] | None = None, start: FloatArray | None = None) -> Minimum:
        """Minimise −2 ln L with some parameters held at given values.

        MIGRAD runs with strategy 1; where it fails, once more from its end with strategy 2, after a simplex search.
        """
        minuit = self._minuit(hold or {}, self.start if start is None else start)
        minuit.migrad()
        if not minuit.valid:
            minuit.strategy = 2
            minuit.simplex().migrad()
        if not minuit.valid or minuit.fval >= FORBIDDEN:
            raise FitError(self._why(minuit, hold or {}))
        fixed = frozenset(name for name in self.names if minuit.fixed[name])
        return Minimum(np.array(minuit.values), float(minuit.fval), fixed, minuit)

    def follow(self, hold: Mapping[str, float], start: FloatArray, hessian: FloatArray) -> Minimum:
        """Minimise from a good starting point, with the second derivatives of a minimum near by.

        Newton steps with a fixed matrix: several times faster than MIGRAD, which takes over where they do not converge.
        """
        fixed = frozenset(n for n, c in zip(self.names, self.constant, strict=True) if c) | frozenset(hold)
        free = [i for i, name in enumerate(self.names) if name not in fixed]
        low, high = np.array(self.bounds).T
        point = np.clip(start, low, high)
        for name, value in hold.items():
            point[self.names.index(name)] = value
        matrix = hessian[np.ix_(free, free)]
        step = 0.05 * STEP / np.sqrt(np.diag(matrix))
        for _ in range(MAX_FOLLOWED):
            ahead, behind = (
                np.array([self._at(point, {i: s * h}) for i, h in zip(free, step, strict=True)]) for s in (1, -1)
            )
            slope = (ahead - behind) / (4 * step)
            move = np.linalg.solve(matrix, slope)
            distance = float(slope @ move)
            if not distance < 100:
                break
            point[free] -= move
            if np.any(point < low) or np.any(point > high):
                break
            if distance < FOLLOWED:
                return Minimum(point, self.twice_nll(point), fixed)
        return self.minimise(hold, start)

    def interval(self, minimum: Minimum) -> tuple[float, float] | None:
        """Distances of the ends of the 68 % interval of the signal strength by MINOS; None where one is not found."""
        if minimum.minuit is None:
            hold = {name: float(minimum.values[self.names.index(name)]) for name in minimum.fixed}
            minimum = self.minimise(hold, minimum.values)
        poi = self.names[self.poi]
        try:
            minimum.minuit.minos(poi)
        except RuntimeError:
            return None
        errors = minimum.minuit.merrors[poi]
        return (float(errors.lower), float(errors.upper)) if errors.is_valid else None

    def covariance(self, minimum: Minimum, hessian: FloatArray | None = None) -> FloatArray:
        """Inverse of the second derivatives of −ln L; zero for fixed parameters."""
        free = np.array([name not in minimum.fixed for name in self.names])
        matrix = self.hessian(minimum) if hessian is None else hessian
        covariance = np.zeros_like(matrix)
        names = [name for name in self.names if name not in minimum.fixed]
        covariance[np.ix_(free, free)] = _inverse(matrix[np.ix_(free, free)], names)
        return covariance

    def hessian(self, minimum: Minimum) -> FloatArray:
        """Second derivatives of −ln L at a minimum by central differences, for the parameters that are free there."""
        free = [i for i, name in enumerate(self.names) if name not in minimum.fixed]
        step = STEP * self._scales(minimum, free)
        centre, here = minimum.values, self.twice_nll(minimum.values)
        ahead, behind = (np.array([self._at(centre, {i: sign * step[i]}) for i in free]) for sign in (1.0, -1.0))
        matrix = np.zeros((len(centre), len(centre)))
        for a, i in enumerate(free):
            matrix[i, i] = (ahead[a] - 2 * here + behind[a]) / (2 * step[i] ** 2)
            for b, j in enumerate(free[:a]):
                both = self._at(centre, {i: step[i], j: step[j]}) + self._at(centre, {i: -step[i], j: -step[j]})
                mixed = (both - ahead[a] - behind[a] - ahead[b] - behind[b] + 2 * here) / (4 * step[i] * step[j])
                matrix[i, j] = matrix[j, i] = mixed
        return matrix

    def _scales(self, minimum: Minimum, free: list[int]) -> FloatArray:
        """Rough uncertainty of each parameter with all others fixed: where −2 ln L has risen by about 1."""
        here = minimum.twice_nll
        scales = np.array([parameter.width for parameter in self.parameters])
        for i in free:
            for _ in range(20):
                rise = self._at(minimum.values, {i: scales[i]}) - here
                if rise < 4.0:
                    break
                scales[i] /= min(np.sqrt(rise), 10.0)
        return scales

    def _at(self, centre: FloatArray, moves: Mapping[int, float]) -> float:
        point = centre.copy()
        for index, move in moves.items():
            point[index] += move
        return self.twice_nll(point)

    def _minuit(self, hold: Mapping[str, float], start: FloatArray) -> Any:
        from iminuit import Minuit

        minuit = Minuit(self.twice_nll, np.asarray(start), name=self.names)
        minuit.errordef = Minuit.LEAST_SQUARES
        minuit.tol, minuit.print_level = TOLERANCE, 0  # the level is global, and cabinetry raises it
        minuit.limits = self.bounds
        minuit.errors = [0.1 * parameter.width for parameter in self.parameters]
        minuit.fixed = list(self.constant)
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
        held = (
            f" with {', '.join(f'{k} = {v:g}' for k, v in hold.items() if k == self.names[self.poi])}" if hold else ""
        )
        parts = [f"the fit{held} did not converge (distance to the minimum {minuit.fmin.edm:.2g})"]
        if at_limit:
            parts.append(f"at the limit: {', '.join(at_limit)}")
        if pulled:
            parts.append(f"the source pulled most is {pulled} (θ = {minuit.values[pulled]:.2g})")
        return "; ".join(parts) + ". Merge sparse bins (min_entries) or drop that source (systematics)"


def _parameters(model: Any) -> Iterator[Parameter]:
    config = model.config
    for name in config.par_order:
        param = config.param_set(name)
        labels = config.par_names[config.par_slice(name)]
        widths = param.width() if param.constrained else [1.0] * param.n_parameters
        for label, width in zip(labels, widths, strict=True):
            yield Parameter(label, _kind(param, name == config.poi_name), float(width))


def _kind(param: Any, is_poi: bool) -> str:
    if is_poi:
        return "poi"
    if not param.is_scalar:
        return "mc_stat"
    return "source" if param.constrained else "free"


def _inverse(matrix: FloatArray, names: list[str]) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    if values[0] <= 0:
        worst = names[int(np.argmax(np.abs(vectors[:, 0])))]
        raise FitError(f"the likelihood does not constrain {worst}: its second derivatives are not positive there")
    return np.asarray(vectors / values @ vectors.T)
