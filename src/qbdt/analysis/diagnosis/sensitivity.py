"""σ_μ of a scored dataset, full and without systematics: the number that everything here is judged by."""

from __future__ import annotations

from qbdt.data import Dataset
from qbdt.inference import FitSettings, build_templates
from qbdt.inference.templates import TemplateSet
from qbdt.statistics import Sensitivity, profiled_information


def compute_sensitivity(scored: Dataset, settings: FitSettings) -> Sensitivity:
    """Build templates of scored events as the fit does, and return σ_μ from the information in them."""
    return compute_template_sensitivity(build_templates(scored, settings).templates, settings.mc_stat)


def compute_template_sensitivity(templates: TemplateSet, mc_stat: bool = True) -> Sensitivity:
    """σ_μ of templates."""
    model = templates.arrays()
    variance = model.signal + model.background + (model.mc_variance if mc_stat else 0.0)
    full = profiled_information(model.signal, model.shifts, variance)
    stat = profiled_information(model.signal, model.shifts[:0], variance)
    return Sensitivity(float(stat) ** -0.5, float(full) ** -0.5)
