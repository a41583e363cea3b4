"""Figures of merit of scores: what an Asimov fit of their templates quotes, with all sources and MC statistics."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from qbdt.data import Dataset
from qbdt.inference import FitSettings, asimov, build_templates

__all__ = ["BINNINGS", "BINS", "FLOOR", "Merit", "merit"]

BINNINGS = ("equal_signal", "optimised")
BINS = (10, 20)

FLOOR = 10.0
"""Least effective number of simulated background events in a bin."""


@dataclass(frozen=True)
class Merit:
    """Expected results of one fit.

    Attributes
    ----------
    z_stat, z_full
        Discovery significance without and with systematic sources.
    sigma_stat, sigma_full
        Uncertainty of the signal strength without and with systematic sources.
    bins
        Bins that the floor on simulated events left.
    """

    z_stat: float
    z_full: float
    sigma_stat: float
    sigma_full: float
    bins: int

    @property
    def delta_mu(self) -> float:
        """Part of the uncertainty that the sources make, sqrt(σ_full² − σ_stat²)."""
        return math.sqrt(max(self.sigma_full**2 - self.sigma_stat**2, 0.0))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "delta_mu": self.delta_mu}


def merit(scored: Dataset, binning: str, bins: int, scale: float = 1.0) -> Merit:
    """Fit the templates of a scored dataset on Asimov data.

    Parameters
    ----------
    scored
        Dataset with one feature, the score, and folds where the binning is "optimised".
    binning
        "equal_signal", or "optimised": edges for each fold chosen on the others.
    bins
        Number of bins asked for.
    scale
        Events that are expected for each one here.

    Examples
    --------
    >>> import numpy as np
    >>> from qbdt import Events, Sample, Systematic
    >>> rng = np.random.default_rng(1)
    >>> signal = Sample("s", "signal", Events({"score": rng.normal(1, 1, 2000)}, np.full(2000, 0.01)))
    >>> background = Sample("b", "background", Events({"score": rng.normal(-1, 1, 2000)}, np.full(2000, 0.1)))
    >>> found = merit(Dataset([signal, background], [Systematic.norm("xs", 0.1, processes=["b"])]), "equal_signal", 5)
    >>> found.z_stat > found.z_full, found.bins  # one bin had fewer than ten simulated background events
    (True, 4)
    """
    settings = FitSettings(transform="none", binning=binning, bins=bins, min_entries=FLOOR, scale=scale)
    templates = build_templates(scored, settings).templates
    model = templates.arrays()
    stat, full = asimov(model.without_systematics()), asimov(model)
    return Merit(float(stat.z), float(full.z), float(stat.sigma_mu), float(full.sigma_mu), templates.n_bins)
