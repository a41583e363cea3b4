"""The published split: train on odd event numbers, test on even ones, and everything the paper shows of a method."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.data import Dataset, ModuloFolds
from qbdt.inference import FitSettings, background_uncertainty, fit_asimov, fit_templates, source_significances
from qbdt.inference.templates import TemplateSet, area_under_roc, roc_points, score_histogram
from qbdt.models import write_model
from qbdt.statistics import scan_tanh
from qbdt.studies.paper.measurement import (
    SCALE,
    make_templates,
    measure_in_optimised_bins,
    measure_templates,
    score_dataset,
    smooth,
)
from qbdt.studies.paper.numbers import CASES, SOURCES
from qbdt.studies.paper.paper_methods import PaperMethod
from qbdt.studies.trainers import Trained

CURVE_POINTS = 25
"""Points of a training curve."""

EDGES = np.linspace(-1, 1, 21)
"""The paper's bins of tanh(c·y)."""


def split_by_parity(data: Dataset) -> tuple[Dataset, Dataset]:
    """Events to train on (odd event numbers) and to test on (even ones)."""
    split = data.with_folds(ModuloFolds(2, "event_number"))
    return split.fold(1), split.fold(0)


def evaluate_published_split(
    method: PaperMethod, data: Dataset, n_trees: int, seed: int, models: Path
) -> dict[str, Any]:
    """Train one method on the published split and collect the paper's numbers for it, as plain data.

    `n_trees` is the number of QBDT0, from which each method's follows; a QBDT is written to the folder `models`.
    """
    train_half, test_half = split_by_parity(data)
    trained = method.train(train_half, n_trees, seed)
    scored = score_dataset(trained.score, test_half)
    templates, c = make_templates(scored, method.c)
    on_training = score_dataset(trained.score, train_half.with_systematics([]))
    if trained.training is not None:
        models.mkdir(parents=True, exist_ok=True)
        write_model(models / f"{method.key}.qbdt", trained.training, {})
    cases = {case: _fit_case(templates, n, by_pyhf=method.stands_for is not None) for case, n in CASES.items()}
    return {
        "c": c,
        "scanned_c": None if c is None else make_templates(scored.with_systematics([]), "scan")[1],
        "optimised": measure_in_optimised_bins(scored),
        "auc": area_under_roc(scored),
        "templates": templates.to_dict(),
        "cases": cases,
        "appendix": {"plain": _appendix(templates), "smooth": _appendix(smooth(templates))},
        "roc": roc_points(scored),
        "scores": {name: score_histogram(half, EDGES, c) for name, half in (("train", on_training), ("test", scored))},
        "curve": _make_training_curve(trained, train_half, test_half),
    }


def _fit_case(templates: TemplateSet, n_sources: int, *, by_pyhf: bool) -> dict[str, Any]:
    """Fit with the first sources: by pyhf where the paper has the method, otherwise by the Newton solver."""
    kept = templates.with_sources([name for name in SOURCES if name in templates.sources][:n_sources])
    fast = {**measure_templates(kept), **_fit_by_newton(kept), "smooth": _fit_by_newton(smooth(kept))}
    return {**fast, **_fit_by_pyhf(kept)} if by_pyhf else fast


def _fit_by_pyhf(kept: TemplateSet) -> dict[str, Any]:
    summary = fit_templates(kept, FitSettings(scan=False)).expected
    uncertainty = background_uncertainty(kept, summary)
    return {
        "fit": summary.to_dict(),
        "z_stat": summary.z_stat,
        "z_full": summary.z,
        "delta_mu": summary.delta_mu,
        "sigma_b": [uncertainty.correlated, uncertainty.uncorrelated],
    }


def _fit_by_newton(templates: TemplateSet) -> dict[str, Any]:
    arrays = templates.arrays()
    result = fit_asimov(arrays)
    size = arrays.background_shifts.sum(axis=-1) * result.sigma_theta
    correlated = float(np.sqrt(max(float(size @ result.correlation[1:, 1:] @ size), 0.0)))
    return {
        "sigma_theta": dict(zip(templates.sources, result.sigma_theta.tolist(), strict=True)),
        "correlation": result.correlation.tolist(),
        "sigma_b": [correlated, float(np.sqrt(size @ size))],
    }


def _appendix(templates: TemplateSet) -> dict[str, list[float | None]]:
    rows = {}
    for row in source_significances(templates):
        values = (row.z_chi2, row.z_0, row.z_constrained, row.z_free)
        rows[row.source] = [value if np.isfinite(value) else None for value in values]
    return rows


def _make_training_curve(trained: Trained, train_half: Dataset, test_half: Dataset) -> Mapping[str, list[float]] | None:
    """Binned Q, without systematics, of each half scaled to all events, after so many trees."""
    if trained.training is None or trained.training.settings.method != "paper":
        return None
    ensemble = trained.training.ensemble
    n = len(ensemble.trees)
    kept = sorted({round(i) for i in np.linspace(1, n, min(n, CURVE_POINTS))})
    curve: dict[str, list[float]] = {"trees": [float(i) for i in kept], "weights": ensemble.weights.tolist()}
    for name, half in (("train", train_half), ("test", test_half)):
        curve[name] = []
        stages = zip(*(ensemble.staged_scores(sample.events, 1) for sample in half.samples), strict=True)
        for i, scores in enumerate(stages, start=1):
            if i in kept:
                curve[name].append(_binned_q(half, scores))
    return curve


def _binned_q(half: Dataset, scores: tuple[Any, ...]) -> float:
    by_role: dict[str, list[tuple[Any, Any]]] = {"signal": [], "background": []}
    for sample, score in zip(half.samples, scores, strict=True):
        by_role.setdefault(str(sample.role), []).append((score, sample.events.weight))
    joined = [
        np.concatenate(column) for role in ("signal", "background") for column in zip(*by_role[role], strict=True)
    ]
    return SCALE * scan_tanh(joined[0], joined[1], joined[2], joined[3]).largest_q
