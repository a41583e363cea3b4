"""Front door of inference.templates."""

from qbdt.inference.templates.score_bins import equal_yield_edges
from qbdt.inference.templates.score_histograms import Binning, fill
from qbdt.inference.templates.optimised_bins import optimised_edges
from qbdt.inference.templates.repair import bounded, with_usable_bins
from qbdt.inference.templates.template_set import ModelArrays, ProcessTemplates, TemplateSet
from qbdt.inference.templates.transform import tanh_scores

__all__ = [
    "Binning",
    "ModelArrays",
    "ProcessTemplates",
    "TemplateSet",
    "bounded",
    "equal_yield_edges",
    "fill",
    "optimised_edges",
    "tanh_scores",
    "with_usable_bins",
]
