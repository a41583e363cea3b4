"""From a trained method to numbers: scores of all events and variations, templates, and Asimov results."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from qbdt.data import Dataset, Events, HashFolds
from qbdt.inference import FitSettings, build_templates, fit_asimov, measure_sensitivity
from qbdt.inference.templates import ModelArrays, TemplateSet, bound_shifts, merge_unusable_bins
from qbdt.statistics import quadratic_difference
from qbdt.studies.methods import Scorer
from qbdt.studies.paper.smoothing import smoothed

__all__ = ["Constant", "measure", "measure_in_optimised_bins", "scored_with", "templates_of"]

FLOOR = 10.0
"""Least effective number of simulated background events in a bin, where a floor is asked for."""

SCALE = 2.0
"""The test half stands for all events."""

Constant: TypeAlias = float | Literal["scan"] | None
"""Constant of tanh(c·y), "scan" for the paper's scan of it; None: no transform, optimised bins of the score itself."""

EDGE_FOLDS, EDGE_SALT = 5, 20_000
"""Optimised edges of each fifth of the test half are chosen on the other four; the salt is none of the halves'."""


def scored_with(score: Scorer, data: Dataset) -> Dataset:
    """Score nominal and varied events; rows that a source only reweights are scored once."""
    known: dict[bytes, NDArray[np.float64]] = {}

    def compute(events: Events) -> dict[str, NDArray[np.float64]]:
        key = np.ascontiguousarray(events.matrix()).tobytes()
        if key not in known:
            known[key] = score(events)
        return {"score": known[key]}

    return data.transform(compute)


def templates_of(scored: Dataset, c: Constant) -> tuple[TemplateSet, float | None]:
    """Templates in at most 20 bins, and the constant c of tanh(c·y): in the paper's bins, or in optimised ones."""
    if c is None:
        settings = FitSettings(scale=SCALE, transform="none", binning="optimised", min_entries=FLOOR)
        scored = scored.with_folds(HashFolds(EDGE_FOLDS, ("event_number",), EDGE_SALT))
    else:
        settings = FitSettings(scale=SCALE, min_entries=0, c=c)
    built = build_templates(scored, settings)
    return built.templates, built.c


def measure_in_optimised_bins(scored: Dataset) -> dict[str, float]:
    """Significances and Δμ in the bins of the profiled method: the one comparison with equal bins for all methods."""
    arrays = templates_of(scored, None)[0].arrays()
    found = measure_sensitivity(arrays)
    return {f"{name}_optimised": getattr(found, name) for name in ("z_stat", "z_full", "delta_mu")}


def measure(templates: TemplateSet) -> dict[str, float]:
    """Significances and σ_μ of one set of templates: as they are, with smoothed shifts, and with a floor.

    The floor joins bins until each has ten effective simulated background events: the paper's rule asks for one event
    in the last bin, and rewards a score that puts exactly one there.
    """
    plain = templates.arrays()
    stat = fit_asimov(plain.without_systematics())
    results: dict[str, float] = {"z_stat": float(stat.z), "sigma_stat": float(stat.sigma_mu)}
    variants: dict[str, ModelArrays] = {
        "": plain,
        "_smooth": smoothed(templates).arrays(),
        "_floor": bound_shifts(merge_unusable_bins(templates, FLOOR)).arrays(),
    }
    for suffix, arrays in variants.items():
        full = fit_asimov(arrays)
        results[f"z_full{suffix}"] = float(full.z)
        results[f"sigma_full{suffix}"] = float(full.sigma_mu)
        if suffix != "_floor":
            results[f"delta_mu{suffix}"] = quadratic_difference(float(full.sigma_mu), float(stat.sigma_mu))
    results["z_stat_floor"] = float(fit_asimov(variants["_floor"].without_systematics()).z)
    return results
