"""Figures of merit of scores: what an Asimov fit of their templates quotes, with all sources and MC statistics."""

from __future__ import annotations

from qbdt.data import Dataset
from qbdt.inference import FitSettings, build_templates, measure_sensitivity
from qbdt.statistics import Sensitivity

__all__ = ["BINNINGS", "BINS", "FLOOR", "merit"]

BINNINGS = ("equal_signal", "optimised")
BINS = (10, 20)

FLOOR = 10.0
"""Least effective number of simulated background events in a bin."""


def merit(scored: Dataset, binning: str, bins: int, scale: float = 1.0) -> Sensitivity:
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
    >>> found.z_stat > found.z_full
    True
    """
    settings = FitSettings(transform="none", binning=binning, bins=bins, min_entries=FLOOR, scale=scale)
    return measure_sensitivity(build_templates(scored, settings).templates.arrays())
