"""Records of an expected result: σ_μ with and without systematic sources, significances, and what each source adds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qbdt.tables import Table

__all__ = ["Expectation", "FittedSensitivity", "Sensitivity", "SourceExpectation", "quadratic_difference"]


def quadratic_difference(total: float, rest: float) -> float:
    """sqrt(total² − rest²): the uncertainty that is in `total` and not in `rest`; 0 where `rest` is the larger.

    Examples
    --------
    >>> quadratic_difference(5.0, 4.0)
    3.0
    """
    return math.sqrt(max(total**2 - rest**2, 0.0))


@dataclass(frozen=True)
class Sensitivity:
    """Uncertainty of the signal strength.

    Attributes
    ----------
    sigma_stat, sigma_full
        σ_μ without and with the systematic sources.
    """

    sigma_stat: float
    sigma_full: float

    @property
    def delta_mu(self) -> float:
        """Part of σ_μ from the systematic sources, the paper's Δμ = sqrt(σ_full² − σ_stat²)."""
        return quadratic_difference(self.sigma_full, self.sigma_stat)


@dataclass(frozen=True)
class FittedSensitivity(Sensitivity):
    """The same with discovery significances, which take a fit at μ = 0.

    Attributes
    ----------
    z_stat, z_full
        Discovery significance sqrt(q0) without and with the sources, in standard deviations.
    """

    z_stat: float
    z_full: float


@dataclass(frozen=True)
class SourceExpectation:
    """Expected effect of one source on σ_μ.

    Attributes
    ----------
    name
        The source.
    coefficient
        Its c_k: how far a fit pulls θ_k for one unit of μ.
    cost
        sqrt(σ_μ² − σ_μ²(without this source)) if events were ordered by s/b alone.
    profiled_cost
        The same for the trained score.
    """

    name: str
    coefficient: float
    cost: float
    profiled_cost: float


@dataclass(frozen=True)
class Expectation(Sensitivity):
    """Sensitivity of a trained score, estimated on events that took no part in its training.

    Attributes
    ----------
    unprofiled
        σ_μ with all sources if events were ordered by s/b alone.
    sources
        Each source by itself.
    parameter
        Name of the parameter whose uncertainty it is.
    """

    unprofiled: float
    sources: tuple[SourceExpectation, ...] = ()
    parameter: str = "mu"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the keys are those of model files, where no parameter is the strength "mu"."""
        sources = [asdict(source) for source in self.sources]
        known = {"stat": self.sigma_stat, "full": self.sigma_full, "unprofiled": self.unprofiled, "sources": sources}
        return known if self.parameter == "mu" else {**known, "parameter": self.parameter}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Expectation:
        """Inverse of `to_dict`."""
        sources = tuple(SourceExpectation(**source) for source in plain["sources"])
        return cls(plain["stat"], plain["full"], plain["unprofiled"], sources, plain.get("parameter", "mu"))

    @classmethod
    def mean(cls, several: Sequence[Expectation]) -> Expectation:
        """Average of the expectations of several trainings with the same sources."""
        sources = [
            SourceExpectation(same[0].name, *np.mean([(s.coefficient, s.cost, s.profiled_cost) for s in same], axis=0))
            for same in zip(*(one.sources for one in several), strict=True)
        ]
        means = np.mean([(one.sigma_stat, one.sigma_full, one.unprofiled) for one in several], axis=0)
        stat, full, unprofiled = means.tolist()
        return cls(stat, full, unprofiled, tuple(sources), several[0].parameter)

    def tables(self) -> tuple[Table, ...]:
        """σ and what each source adds to it, for the events trained on: ordered by s/b, and by the trained score.

        Where the parameter is a source itself, such as a mass, there is no order by s/b.
        """
        sigma = "σ_μ" if self.parameter == "mu" else f"σ of {self.parameter}"
        others = [source for source in self.sources if source.name != self.parameter]
        rows: list[tuple[str, ...]] = [
            ("no systematics", "", f"{self.sigma_stat:.4g}", ""),
            *((s.name, f"{s.coefficient:.2f}", f"{s.cost:.3g}", f"{s.profiled_cost:.3g}") for s in others),
            (f"{sigma}, all sources", "", f"{self.unprofiled:.4g}", f"{self.sigma_full:.4g}"),
        ]
        header: tuple[str, ...] = ("source", "c", f"added to {sigma}, ordered by s/b", "by the score")
        if len(others) < len(self.sources):
            header, rows = (*header[:2], f"added to {sigma}"), [(*row[:2], row[3] or row[2]) for row in rows]
        return (Table("Expected by the training, for its own events, on folds held out", header, tuple(rows)),)
