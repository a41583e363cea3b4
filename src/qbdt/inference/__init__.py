"""Front door of inference."""

from qbdt.inference.appendix import background_uncertainty, source_significances
from qbdt.inference.asimov import asimov, measure_sensitivity
from qbdt.inference.building import build_templates, refill
from qbdt.inference.fit import fit_templates, run_fit, write_fit
from qbdt.inference.reading import scan_from_dict, summary_from_dict
from qbdt.inference.result import FitResult, FitSummary, Scan
from qbdt.inference.scores import area_under_roc, roc_points, score_histogram
from qbdt.inference.settings import FitSettings

__all__ = [
    "FitResult",
    "FitSettings",
    "FitSummary",
    "Scan",
    "area_under_roc",
    "asimov",
    "background_uncertainty",
    "build_templates",
    "fit_templates",
    "measure_sensitivity",
    "refill",
    "roc_points",
    "run_fit",
    "scan_from_dict",
    "score_histogram",
    "source_significances",
    "summary_from_dict",
    "write_fit",
]
