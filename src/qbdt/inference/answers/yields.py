"""Yields before and after the fit with their uncertainties: of each process and region, and in other variables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.files.records import read_float
from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.fit_summary import FitSummary
from qbdt.inference.measurement import Measurement
from qbdt.inference.pyhf_model import FormulaModel, PyhfModel
from qbdt.inference.summary import BestFit, expected_error
from qbdt.inference.workspace import describe_expectation
from qbdt.tables import Table

TOTAL = "total"
"""Row of the sum of all processes."""

ROUNDING = 1e-9
"""Errors below this share of the events are none: a source that leaves a yield does so up to the last digits."""


EVENTS = ("prefit", "prefit_error", "postfit", "postfit_error")
"""Numbers of a `Yield`."""


@dataclass(frozen=True)
class Yield:
    """Events of one process, or of all, in one region: expected before and after the fit, with uncertainties."""

    region: str
    process: str
    prefit: float
    prefit_error: float
    postfit: float
    postfit_error: float


@dataclass(frozen=True, eq=False)
class Yields:
    """Yields of all regions and processes, and the fitted data of each region."""

    rows: tuple[Yield, ...]
    data: dict[str, float]
    recorded: bool

    def tables(self) -> tuple[Table, ...]:
        """One table for each region."""
        return tuple(self._table(region) for region in self.data)

    def table(self) -> Table:
        """All regions in one table of numbers, for CSV."""
        header = ("region", "process", *EVENTS)
        rows = [(y.region, y.process, *(f"{getattr(y, name):.6g}" for name in EVENTS)) for y in self.rows]
        rows += [(region, "data", *[f"{n:g}", "0"] * 2) for region, n in self.data.items() if self.recorded]
        return Table("Yields", header, tuple(rows))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; `from_dict` reads it back."""
        return {"rows": [dict(vars(row)) for row in self.rows], "data": self.data, "recorded": self.recorded}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Yields:
        """Inverse of `to_dict`."""
        rows = tuple(
            Yield(str(row["region"]), str(row["process"]), *(read_float(row[name]) for name in EVENTS))
            for row in plain["rows"]
        )
        return cls(rows, {name: read_float(n) for name, n in plain["data"].items()}, bool(plain["recorded"]))

    def _table(self, region: str) -> Table:
        rows = [
            (y.process, _round(y.prefit, y.prefit_error), _round(y.postfit, y.postfit_error))
            for y in self.rows
            if y.region == region
        ]
        if self.recorded:
            rows.append(("data", f"{self.data[region]:g}", f"{self.data[region]:g}"))
        return Table(f"Yields in {region}", ("process", "before the fit", "after the fit"), tuple(rows))


def _round(events: float, error: float) -> str:
    """Events and their uncertainty, to two digits of it and at least to whole events."""
    digits = 1 if error <= ROUNDING * events else min(max(1 - math.floor(math.log10(error)), 0), 6)
    return f"{events:.{digits}f} ± {error:.{digits}f}"


def measure_yields(best: BestFit, recorded: bool = False) -> Yields:
    """Yields before and after a fit, uncertainties by linear propagation of all parameters with their correlations."""
    likelihood = best.analytic
    before = _propagate(likelihood, likelihood.start, likelihood.prior_covariance(best.minimum.fixed))
    after = _propagate(likelihood, best.minimum.values, likelihood.covariance(best.minimum, best.hessian))
    rows = tuple(Yield(*key, *before[key], *after[key]) for key in before)
    data = {name: float(counts.sum()) for name, counts in likelihood.split(likelihood.data).items()}
    return Yields(rows, data, recorded)


def _propagate(
    likelihood: AnalyticLikelihood, values: Floats, covariance: Floats
) -> dict[tuple[str, str], tuple[float, float]]:
    """Yield and uncertainty by region and process: sqrt(JᵀVJ), J by differences over each uncertainty, as cabinetry."""
    errors = np.sqrt(np.diag(covariance))
    moved = np.flatnonzero(errors > 0)
    steps = np.zeros((len(moved), len(values)))
    steps[np.arange(len(moved)), moved] = errors[moved]
    points = np.concatenate([values[None], values + steps, values - steps])
    found: dict[tuple[str, str], tuple[float, float]] = {}
    by_process = dict(likelihood.expectation.by_sample(points))
    by_process[TOTAL] = np.asarray(np.sum(list(by_process.values()), axis=0))
    for region in likelihood.channels:
        for process, bins in by_process.items():
            sums = likelihood.split(bins)[region].sum(axis=1)
            slopes = (sums[1 : len(moved) + 1] - sums[len(moved) + 1 :]) / (2 * errors[moved])
            variance = float(slopes @ covariance[np.ix_(moved, moved)] @ slopes)
            if sums[0] != 0 or variance > 0:
                found[region, process] = (float(sums[0]), float(np.sqrt(max(variance, 0.0))))
    return found


def predict(measurement: Measurement, summary: FitSummary) -> FitSummary:
    """Expectation of histograms that were not fitted, with the uncertainty that the parameters of the fit have.

    Parameters
    ----------
    measurement
        Templates of other variables of the same events, with the strengths, factors and sources of the fit.
    summary
        The fit. Its values, uncertainties and correlations are those of the parameters; the MC statistics of the new
        bins, which no data constrain, are added.

    Returns
    -------
    FitSummary
        The fit with the bins of these templates in place of its own; `counts` are the Asimov data.
    """
    kind = FormulaModel if measurement.unconstrained else PyhfModel  # which has no parabola
    model = kind(describe_expectation(measurement), needs_poi=False)  # nothing is fitted to these bins
    prior = model.prior_covariance(np.array(model.names)[model.constant])
    values, covariance = _take_over(model, summary, prior)
    return replace(
        summary,
        regions=model.channels,
        counts=model.join(measurement.asimov),
        postfit=model.expected_by_process(values),
        postfit_error=expected_error(model, values, covariance),
        prefit_error=expected_error(model, model.start, prior),
    )


def _take_over(model: PyhfModel, summary: FitSummary, prior: Floats) -> tuple[Floats, Floats]:
    """Values and covariance of the parameters of a fit; parameters that it does not have stay nominal."""
    fitted = {p.name: i for i, p in enumerate(summary.parameters) if p.kind != "mc_stat"}
    shared = [(i, fitted[name]) for i, name in enumerate(model.names) if name in fitted]
    mine, its = (np.array([pair[k] for pair in shared], dtype=np.intp) for k in (0, 1))
    values, covariance = model.start.copy(), prior.copy()
    values[mine] = [summary.parameters[i].value for i in its]
    errors = np.array([summary.parameters[i].error for i in its])
    covariance[np.ix_(mine, mine)] = summary.correlation[np.ix_(its, its)] * np.outer(errors, errors)
    return values, covariance
