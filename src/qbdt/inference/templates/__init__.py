"""Histograms of the score for a fit.

In: a scored dataset, with its systematic sources. Out: a `TemplateSet`, for each process the events per bin, their MC
variance and the shifts of each source; and ROC curves and histograms of scores for reports.
"""

from qbdt.inference.templates.cells import CellTarget, choose_cells
from qbdt.inference.templates.optimised_bins import optimise_edges
from qbdt.inference.templates.repair import bound_shifts, merge_unusable_bins
from qbdt.inference.templates.score_bins import ScoreBins, equal_yield_edges
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.scores import area_under_roc, rank_scores, roc_points, score_histogram, tanh_scores
from qbdt.inference.templates.template_set import ModelArrays, ProcessTemplates, TemplateSet

__all__ = [
    "CellTarget",
    "ModelArrays",
    "ProcessTemplates",
    "ScoreBins",
    "TemplateSet",
    "area_under_roc",
    "bound_shifts",
    "choose_cells",
    "equal_yield_edges",
    "fill",
    "merge_unusable_bins",
    "optimise_edges",
    "rank_scores",
    "roc_points",
    "score_histogram",
    "tanh_scores",
]
