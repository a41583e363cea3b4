"""Sensitivity of a fit with some scores: the one measure by which methods are tuned and compared."""

from __future__ import annotations

from qbdt.data import Dataset
from qbdt.inference import FitSettings, build_templates, measure_sensitivity
from qbdt.statistics import FittedSensitivity

FLOOR = 10.0
"""Least effective number of simulated background events in a bin."""


def measure_scores(scored: Dataset, binning: str, bins: int, scale: float = 1.0) -> FittedSensitivity:
    """Sensitivity of a scored dataset on Asimov data, in at most `bins` bins.

    The binning is "equal_signal", or "optimised": edges for each fold chosen on the others. `scale` is the number of
    events that are expected for each one here.

    Examples
    --------
    >>> import numpy as np
    >>> from qbdt import Events, Sample, Systematic
    >>> rng = np.random.default_rng(1)
    >>> signal = Sample("s", "signal", Events({"score": rng.normal(1, 1, 2000)}, np.full(2000, 0.01)))
    >>> background = Sample("b", "background", Events({"score": rng.normal(-1, 1, 2000)}, np.full(2000, 0.1)))
    >>> scored = Dataset([signal, background], [Systematic.norm("xs", 0.1, processes=["b"])])
    >>> found = measure_scores(scored, "equal_signal", 5)
    >>> found.z_stat > found.z_full
    True
    """
    settings = FitSettings(transform="none", binning=binning, bins=bins, min_entries=FLOOR, scale=scale)
    return measure_fit(scored, settings)


def measure_fit(scored: Dataset, settings: FitSettings) -> FittedSensitivity:
    """Sensitivity of a scored dataset on Asimov data, in bins and with MC statistics as the settings of a fit say."""
    model = build_templates(scored, settings).templates.arrays()
    return measure_sensitivity(model if settings.mc_stat else model.without_mc_stat())
