"""From scores to histograms: transforms of the score, binnings, and templates with all systematic sources."""

from qbdt.templates.edges import equal_yield_edges, uniform_edges
from qbdt.templates.filling import Binning, fill
from qbdt.templates.optimised import merge_by_information, optimised_binning, optimised_edges
from qbdt.templates.repair import bounded, pruned, with_usable_bins
from qbdt.templates.template_set import ModelArrays, Note, ProcessTemplates, Shift, TemplateSet
from qbdt.templates.transform import TransformScan, scan_transform, tanh_scores

__all__ = [
    "Binning",
    "ModelArrays",
    "Note",
    "ProcessTemplates",
    "Shift",
    "TemplateSet",
    "TransformScan",
    "bounded",
    "equal_yield_edges",
    "fill",
    "merge_by_information",
    "optimised_binning",
    "optimised_edges",
    "pruned",
    "scan_transform",
    "tanh_scores",
    "uniform_edges",
    "with_usable_bins",
]
