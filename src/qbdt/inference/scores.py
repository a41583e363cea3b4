"""Numbers about scores that reports show: ROC curves and histograms of nominal signal and background."""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Role
from qbdt.inference.templates.filling import collect_scores

__all__ = ["area_under_roc", "nominal_scores", "roc_points", "score_histogram"]

ROC_POINTS = 201


def nominal_scores(scored: Dataset) -> dict[str, tuple[Floats, Floats]]:
    """Scores and weights of nominal signal and background, of a dataset whose one feature is the score."""
    return {str(role): collect_scores(scored, role) for role in (Role.SIGNAL, Role.BACKGROUND)}


def area_under_roc(scored: Dataset) -> float:
    """Probability that a signal event has a larger score than a background event; ties count half."""
    parts = nominal_scores(scored)
    (signal, s_weight), (background, b_weight) = parts["signal"], parts["background"]
    order = np.argsort(background, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(b_weight[order])])
    left, right = (np.searchsorted(background[order], signal, side=side) for side in ("left", "right"))
    share = (below[left] + below[right]) / 2
    return float(np.sum(share * s_weight) / (s_weight.sum() * b_weight.sum()))


def roc_points(scored: Dataset) -> dict[str, list[float]]:
    """Background rejection at evenly spaced signal efficiencies."""
    parts = nominal_scores(scored)
    cuts, efficiency = _passing(*parts["signal"])
    wanted = np.linspace(0, 1, ROC_POINTS)
    threshold = np.interp(wanted, efficiency, cuts)
    at, passing = _passing(*parts["background"])
    rejection = 1 - np.interp(threshold, at[::-1], passing[::-1], left=1.0, right=0.0)
    return {"efficiency": wanted.tolist(), "rejection": rejection.tolist()}


def score_histogram(scored: Dataset, edges: Floats, c: float | None = None) -> dict[str, Any]:
    """Contents and variances of signal and background in bins of the score, or of tanh(c·score); overflow folded in."""
    content: dict[str, Any] = {"edges": edges.tolist()}
    for name, (score, weight) in nominal_scores(scored).items():
        place = np.clip(score if c is None else np.tanh(c * score), edges[0], edges[-1])
        content[name] = np.histogram(place, edges, weights=weight)[0].tolist()
        content[f"{name}_variance"] = np.histogram(place, edges, weights=weight**2)[0].tolist()
    return content


def _passing(score: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Scores in falling order and the share of the yield at or above each."""
    order = np.argsort(-score, kind="stable")
    share = np.maximum.accumulate(np.cumsum(weight[order]))
    return score[order], share / share[-1]
