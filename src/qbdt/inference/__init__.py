"""From scores to an answer: templates, likelihood, fits, significances and uncertainties.

In: a scored dataset and `FitSettings`. Out: a `FitResult` with the expected and observed signal strength, and files
that pyhf, HistFactory and combine read. Templates and their bins are in `qbdt.inference.templates`.
"""

from qbdt.inference.asimov import fit_asimov, measure_sensitivity
from qbdt.inference.construction import build_templates, refill
from qbdt.inference.fit import fit_measurement, fit_templates, run_fit, write_fit
from qbdt.inference.fit_summary import FitSummary, Scan
from qbdt.inference.measurement import Measurement
from qbdt.inference.result import FitResult
from qbdt.inference.score_fit import fit_scores
from qbdt.inference.settings import FitSettings
from qbdt.inference.source_significance import background_uncertainty, source_significances

__all__ = [
    "FitResult",
    "FitSettings",
    "FitSummary",
    "Measurement",
    "Scan",
    "background_uncertainty",
    "build_templates",
    "fit_asimov",
    "fit_measurement",
    "fit_scores",
    "fit_templates",
    "measure_sensitivity",
    "refill",
    "run_fit",
    "source_significances",
    "write_fit",
]
