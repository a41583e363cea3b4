"""The quantities of the paper's appendices, for one source at a time and for the total background.

They need templates only, no fit, except for the uncertainty of the total background, which takes the post-fit
uncertainties and correlations of the sources.
"""

from __future__ import annotations

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.errors import FitError
from qbdt.inference.fit_summary import FitSummary
from qbdt.inference.newton_fit import maximise
from qbdt.inference.result import BackgroundUncertainty, SourceSignificance
from qbdt.inference.templates.template_set import ModelArrays, TemplateSet
from qbdt.statistics import significance


def source_significances(templates: TemplateSet) -> tuple[SourceSignificance, ...]:
    """Significances of appendix A for each source acting alone on the background, without MC statistics."""
    if np.any(templates.background <= 0):
        number = int(np.flatnonzero(templates.background <= 0)[0])
        raise FitError(
            f"bin {number + 1} has no background: merge it first (qbdt.inference.templates.repair.merge_unusable_bins)"
        )
    s, b = templates.signal, templates.background
    return tuple(_measure_source(name, s, b, _delta(templates, name)) for name in templates.sources)


def background_uncertainty(templates: TemplateSet, summary: FitSummary) -> BackgroundUncertainty:
    """Uncertainty of the total background from the sources, eq:sigmab0: sqrt(ΔᵀCΔ) with Δ_k = σ(θ_k) Σ_bins Δ_k."""
    names = [p.name for p in summary.parameters if p.kind == "source"]
    index = [i for i, p in enumerate(summary.parameters) if p.kind == "source"]
    size = np.array([_delta(templates, name).sum() * summary.parameter(name).error for name in names])
    correlation = summary.correlation[np.ix_(index, index)]
    return BackgroundUncertainty(float(np.sqrt(max(size @ correlation @ size, 0.0))), float(np.sqrt(size @ size)))


def _delta(templates: TemplateSet, source: str) -> Floats:
    return np.asarray(np.sum([p.linear_shift(source) for p in templates.of_role(Role.BACKGROUND)], axis=0))


def _measure_source(name: str, s: Floats, b: Floats, delta: Floats) -> SourceSignificance:
    # eq:Zchi2 and eq:ZQ take Δ as independent in each bin; the others have one θ for all bins, with its prior of width
    # A = 1 or without (A = ∞), at first order and exactly.
    chi2 = float(np.sqrt(np.sum(s**2 / (b + delta**2))))
    independent = float(np.sqrt(np.sum(significance(s, b, delta**2))))
    none = np.zeros((1, len(s)))
    exact = maximise(ModelArrays(s, b, none, delta[None], np.zeros_like(s)), s + b, mu=0.0).twice_nll
    constrained, free = (_first_order(s, b, delta, inverse) for inverse in (1.0, 0.0))
    return SourceSignificance(name, chi2, independent, constrained, free, float(np.sqrt(max(float(exact), 0.0))))


def _first_order(s: Floats, b: Floats, delta: Floats, inverse_a2: float) -> float:
    """Z_Q(A) with the paper's first-order θ; `inverse_a2` is 1/A². NaN where that θ makes a bin negative."""
    # The θ at which the derivative of −2 ln L(μ = 0), expanded to first order in θ, vanishes.
    scale = inverse_a2 + np.sum((1 + s / b) * delta**2 / b)
    theta = float(np.sum(s / b * delta) / scale) if scale > 0 else 0.0
    expected = b + theta * delta
    if np.any(expected <= 0):
        return float("nan")
    q = np.sum(2 * ((s + b) * np.log((s + b) / expected) - (s - theta * delta))) + theta**2 * inverse_a2
    return float(np.sqrt(max(float(q), 0.0)))
