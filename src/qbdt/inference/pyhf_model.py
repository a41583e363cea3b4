"""The expectation of a workspace, computed by pyhf, with its derivatives and the terms of the constraints.

Derivatives are taken of the expected events, where they lose no digits, not of the likelihood, whose large values
cancel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.expected_events import ExpectedEvents, list_pois
from qbdt.inference.mc_statistics import take_constraints

STEP = 1e-4
"""Step of the central differences of the expectation, in units of the width of each constraint: errors of the third
order, 1e-8, and of rounding, 1e-16/1e-4, are then both far below 1e-6."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of the model."""

    name: str  # Name in the workspace, with the bin in brackets for MC statistics
    kind: str  # "poi", "source" (a systematic source), "mc_stat" (one bin) or "free" (without constraint)
    width: float  # Standard deviation of its constraint; 1 where there is none
    is_factor: bool  # Whether it is a strength or a normalisation, whose nominal value is 1; sources interpolate


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraint terms, one entry per constrained parameter."""

    index: Any  # Which parameters
    centres: Floats  # Auxiliary data: values for Gaussian terms, counts for Poisson ones
    widths: Floats  # Standard deviations of the Gaussian terms
    rates: Floats  # For Poisson terms the expected counts per unit of the parameter; 0 for Gaussian ones

    def twice_nll(self, values: Floats) -> float:
        """−2 ln of all terms, each relative to its best value."""
        at = values[self.index]
        gauss = self.rates == 0
        total = float(np.sum(((at - self.centres)[gauss] / self.widths[gauss]) ** 2))
        counts, expected = self.centres[~gauss], (self.rates * at)[~gauss]
        if np.any(expected <= 0):
            return float("inf")
        return total + float(np.sum(2 * (expected - counts + counts * np.log(counts / expected))))

    def derivatives(self, values: Floats) -> tuple[Floats, Floats]:
        """First and second derivatives of −ln of the terms with all parameters."""
        # Gaussian: (x − c)²/2σ². Poisson with auxiliary count c and rate τ: τx − c ln x.
        first, second = np.zeros_like(values), np.zeros_like(values)
        gauss = self.rates == 0
        at = np.where(gauss, 1.0, values[self.index])
        pull = (values[self.index] - self.centres) / self.widths**2
        first[self.index] = np.where(gauss, pull, self.rates - self.centres / at)
        second[self.index] = np.where(gauss, 1.0 / self.widths**2, self.centres / at**2)
        return first, second


class PyhfModel:
    """Parameters and expectation of a pyhf workspace.

    Parameters
    ----------
    spec
        pyhf workspace.
    linear
        Interpolate shapes piecewise linearly (code 0), as the Newton solver does. Otherwise as pyhf's command line,
        cabinetry and ROOT do: code 4p for shapes and code 4 for normalisations, smooth at θ = 0 and linear or
        exponential beyond ±1. For shapes with up and down symmetric about the nominal the two are the same. (pyhf's
        Python interface has yet another default, codes 0 and 1.)
    needs_poi
        Whether a workspace without a parameter of interest is refused; otherwise `poi` is −1 for one.

    A source that is the parameter of interest of one of the measurements has no constraint, as any other parameter that
    is measured; pyhf would constrain it.
    """

    def __init__(self, spec: Mapping[str, Any], linear: bool = False, needs_poi: bool = True) -> None:
        import pyhf

        settings = {"histosys": {"interpcode": "code0" if linear else "code4p"}, "normsys": {"interpcode": "code4"}}
        try:
            workspace = pyhf.Workspace(spec)
            self.spec, poisson = take_constraints(spec)
            if poisson:
                workspace = pyhf.Workspace(self.spec)
            first = workspace.measurement_names[0]
            self.pyhf = workspace.model(measurement_name=first, modifier_settings=settings)
            self.observations = np.asarray(workspace.data(self.pyhf, include_auxdata=False), dtype=float)
            config = self.pyhf.config
            self.start = np.asarray(config.suggested_init(), dtype=float)
            self.bounds = np.asarray(config.suggested_bounds(), dtype=float)
            self.constant = np.asarray(config.suggested_fixed(), dtype=bool)
        except MemoryError:
            raise
        except Exception as error:  # pyhf has errors of its own, and stumbles over what its schema lets pass
            reason = str(error) or type(error).__name__
            raise FitError(f"the workspace is not a valid model: {reason}") from error
        if config.poi_index is None and needs_poi:
            raise FitError("the workspace has no parameter of interest")
        self.poi = -1 if config.poi_index is None else int(config.poi_index)
        free = list_pois(spec)
        self.parameters = tuple(_parameters(config, free))
        self.names = tuple(parameter.name for parameter in self.parameters)
        self.constraints = _constraints(config, poisson, free)
        self.channels = {name: int(config.channel_nbins[name]) for name in config.channels}
        self.linear = linear

    @cached_property
    def expectation(self) -> ExpectedEvents:
        """Expectation and derivatives by formula, for many points at once."""
        config = self.pyhf.config
        first = {name: config.par_slice(name).start for name in config.par_order}
        return ExpectedEvents(self.spec, tuple(self.channels), first, self.linear)

    def join(self, counts: Mapping[str, Floats]) -> Floats:
        """Put the bins of all channels one after the other, in pyhf's order, which is that of `channels`."""
        if missing := [name for name in self.channels if name not in counts]:
            raise FitError(f"no counts for region {missing[0]}")
        return np.concatenate([np.asarray(counts[name], dtype=float) for name in self.channels])

    def split(self, values: Floats) -> dict[str, Floats]:
        """Inverse of `join`: the bins of each channel."""
        ends = np.cumsum(list(self.channels.values()))[:-1]
        return dict(zip(self.channels, np.split(np.asarray(values), ends, axis=-1), strict=True))

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Names of the parameters of one kind."""
        return tuple(p.name for p in self.parameters if p.kind == kind)

    def prior_covariance(self, fixed: Collection[str] = ()) -> Floats:
        """Covariance of all parameters before a fit: the squared widths of constraints, zero where there are none."""
        free = ("poi", "free")
        widths = [0.0 if p.kind in free or p.name in fixed else p.width for p in self.parameters]
        return np.diag(np.square(widths))

    def expected(self, values: Floats) -> Floats:
        """Expected events per bin at a point; not finite where an interpolation overflows."""
        with np.errstate(all="ignore"):
            return np.asarray(self.pyhf.main_model.expected_data(values), dtype=float)

    def expected_by_process(self, values: Floats) -> dict[str, Floats]:
        """Expected events per bin of each process at a point."""
        rows = self.pyhf.main_model.expected_data(values, return_by_sample=True)
        return {name: np.asarray(row, dtype=float) for name, row in zip(self.pyhf.config.samples, rows, strict=True)}

    def jacobian(self, values: Floats, free: Sequence[int]) -> Floats:
        """Change of the expected events with each free parameter, shape (free parameters, bins)."""
        rows = []
        for i in free:
            step = STEP * self.parameters[i].width
            ahead, behind = values.copy(), values.copy()
            ahead[i] += step
            behind[i] -= step
            rows.append((self.expected(ahead) - self.expected(behind)) / (2 * step))
        return np.array(rows, dtype=float).reshape(len(free), len(self.observations))


class FormulaModel(PyhfModel):
    """`PyhfModel` with expectation and derivatives by formula; sources of interest have their parabola."""

    def expected(self, values: Floats) -> Floats:
        """Expected events per bin at a point."""
        with np.errstate(all="ignore"):
            return np.asarray(self.expectation(values[None])[0])

    def expected_by_process(self, values: Floats) -> dict[str, Floats]:
        """Expected events per bin of each process at a point."""
        return {name: rows[0] for name, rows in self.expectation.by_sample(values[None]).items()}

    def jacobian(self, values: Floats, free: Sequence[int]) -> Floats:
        """Change of the expected events with each free parameter, shape (free parameters, bins)."""
        with np.errstate(all="ignore"):
            return np.asarray(self.expectation.differentiate(values[None])[1][0][list(free)])


def _parameters(config: Any, free: Collection[str]) -> Iterator[Parameter]:
    for name in config.par_order:
        param = config.param_set(name)
        labels = config.par_names[config.par_slice(name)]
        constrained = param.constrained and name not in free
        widths = param.width() if constrained else [1.0] * param.n_parameters
        kind = _kind(param, name == config.poi_name, constrained)
        for label, width in zip(labels, widths, strict=True):
            yield Parameter(label, kind, float(width), not param.constrained)


def _kind(param: Any, is_poi: bool, constrained: bool) -> str:
    if is_poi:
        return "poi"
    if not param.is_scalar:
        return "mc_stat"
    return "source" if constrained else "free"


def _constraints(config: Any, shared_poisson: Collection[str], free: Collection[str]) -> Constraints:
    """Terms of all constraints; factors of the bins of several samples are Gaussian in pyhf, those named are not."""
    index, centres, widths, rates = [], [], [], []
    for name in (one for one in config.auxdata_order if one not in free):
        param, where = config.param_set(name), config.par_slice(name)
        fixed = config.suggested_fixed()[where]
        shared, poisson = name in shared_poisson, param.pdf_type == "poisson"
        for i, width, centre, is_fixed in zip(
            range(where.start, where.stop), param.width(), param.auxdata, fixed, strict=True
        ):
            if not is_fixed:
                index.append(i)
                centres.append(1 / width**2 if shared else centre)
                widths.append(width)
                rates.append(param.factors[i - where.start] if poisson else shared / width**2)
    return Constraints(np.array(index, dtype=int), *(np.array(v, dtype=float) for v in (centres, widths, rates)))
