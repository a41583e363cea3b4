"""`Answers`: limits, contours, goodness of fit and yields of one fit, made from its minimum without another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from qbdt.inference.analytic_likelihood import AnalyticLikelihood
from qbdt.inference.answers.goodness import GoodnessOfFit, measure_goodness
from qbdt.inference.answers.limits import UpperLimit, find_limit, find_limit_with_toys
from qbdt.inference.answers.scans import PairScan, scan_pair
from qbdt.inference.answers.yields import Yields, measure_yields
from qbdt.inference.measurement import Measurement
from qbdt.inference.settings import FitSettings
from qbdt.inference.summary import BestFit
from qbdt.tables import Table


@dataclass(frozen=True, eq=False)
class Answers:
    """Results beyond the fit."""

    yields: Yields  # Yields by region and process before and after the fit
    limits: tuple[UpperLimit, ...] = ()  # Upper limit on each strength of interest; empty where not asked for
    contours: tuple[PairScan, ...] = ()  # Profile likelihood of each pair of parameters of interest, where asked for
    # Goodness of the fit to recorded data; None where there are none, or it was not asked for
    goodness: GoodnessOfFit | None = None

    def tables(self) -> tuple[Table, ...]:
        """Limits, goodness of fit and yields."""
        limits = [table for limit in self.limits for table in limit.tables()]
        goodness = () if self.goodness is None else self.goodness.tables()
        return (*limits, *goodness, *self.yields.tables())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; `from_dict` reads it back."""
        return {
            "yields": self.yields.to_dict(),
            "limits": [limit.to_dict() for limit in self.limits],
            "contours": [scan.to_dict() for scan in self.contours],
            "goodness": None if self.goodness is None else self.goodness.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Answers:
        """Inverse of `to_dict`."""
        return cls(
            Yields.from_dict(plain["yields"]),
            tuple(UpperLimit.from_dict(limit) for limit in plain["limits"]),
            tuple(PairScan.from_dict(scan) for scan in plain["contours"]),
            None if plain["goodness"] is None else GoodnessOfFit(**plain["goodness"]),
        )


def collect_answers(
    best: BestFit, measurement: Measurement, spec: Mapping[str, Any], settings: FitSettings, recorded: bool
) -> Answers:
    """Collect the answers that the settings ask for, from the free fit of a measurement and its workspace.

    Where the data are not recorded ones, limits are expected ones and there is no goodness of fit.
    """
    best = replace(best, likelihood=AnalyticLikelihood(spec, data=best.likelihood.data))
    strengths = tuple(measurement.of_interest)
    limits = [_limit(replace(best, poi=name), settings, recorded) for name in strengths if settings.limits != "none"]
    contours = [scan_pair(best, pair) for pair in combinations(strengths, 2) if settings.contours]
    goodness = None
    if recorded and settings.goodness != "none":
        goodness = measure_goodness(best, settings.toys if settings.goodness == "toys" else 0)
    return Answers(measure_yields(best, recorded), tuple(limits), tuple(contours), goodness)


def _limit(best: BestFit, settings: FitSettings, recorded: bool) -> UpperLimit:
    if settings.limits == "toys":
        return find_limit_with_toys(best, settings.toys, observed=recorded)
    return find_limit(best, observed=recorded)
