"""σ_μ of a scored dataset, full and without systematics: the number that everything here is judged by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbdt.data import Dataset
from qbdt.inference import FitSettings, build_templates
from qbdt.inference.templates import TemplateSet
from qbdt.statistics import profiled_information

__all__ = ["Strength", "strength_of", "strength_of_templates"]


@dataclass(frozen=True)
class Strength:
    """Expected uncertainty of the signal strength at μ = 1.

    Attributes
    ----------
    full
        σ_μ with all sources and MC statistics as in the fit.
    stat
        σ_μ without the sources.
    """

    full: float
    stat: float

    @property
    def systematic(self) -> float:
        """Part of σ_μ from the sources, sqrt(full² − stat²)."""
        return float(np.sqrt(max(self.full**2 - self.stat**2, 0.0)))


def strength_of(scored: Dataset, settings: FitSettings) -> Strength:
    """Build templates of scored events as the fit does, and return σ_μ from the information in them.

    Examples
    --------
    >>> from qbdt import Events, Sample, Systematic
    >>> rng = np.random.default_rng(1)
    >>> signal = Sample("s", "signal", Events({"score": rng.normal(1, 1, 2000)}, np.full(2000, 0.01)))
    >>> background = Sample("b", "background", Events({"score": rng.normal(-1, 1, 2000)}, np.full(2000, 0.1)))
    >>> scored = Dataset([signal, background], [Systematic.norm("xs", 0.1, processes=["b"])])
    >>> found = strength_of(scored, FitSettings(bins=5))
    >>> found.full > found.stat > 0
    True
    """
    return strength_of_templates(build_templates(scored, settings).templates, settings.mc_stat)


def strength_of_templates(templates: TemplateSet, mc_stat: bool = True) -> Strength:
    """σ_μ of templates."""
    model = templates.arrays()
    variance = model.signal + model.background + (model.mc_variance if mc_stat else 0.0)
    full = profiled_information(model.signal, model.shifts, variance)
    stat = profiled_information(model.signal, model.shifts[:0], variance)
    return Strength(float(full) ** -0.5, float(stat) ** -0.5)
