"""From a trained method to numbers: scores of all events and variations, templates, smoothed shifts, Asimov results.

Smoothing is that of the statistical frameworks of the LHC: the ratio of varied to nominal events is averaged over
neighbouring bins until it has at most one extremum and every averaged group is known to 5 %; the yield of the variation
is kept. The paper does not say that its templates were smoothed; the report shows both, because the significance with
systematics depends on it more than on the method.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, HashFolds
from qbdt.inference import FitSettings, build_templates, fit_asimov, measure_sensitivity
from qbdt.inference.templates import ModelArrays, ProcessTemplates, TemplateSet, bound_shifts, merge_unusable_bins
from qbdt.statistics import quadratic_difference
from qbdt.studies.trainers import Scorer

FLOOR = 10.0
"""Least effective number of simulated background events in a bin, where a floor is asked for."""

SCALE = 2.0
"""The test half stands for all events."""

Constant: TypeAlias = float | Literal["scan"] | None
"""Constant of tanh(c·y), "scan" for the paper's scan of it; None: no transform, optimised bins of the score itself."""

EDGE_FOLDS, EDGE_SALT = 5, 20_000
"""Optimised edges of each fifth of the test half are chosen on the other four; the salt is none of the halves'."""


def score_dataset(score: Scorer, data: Dataset) -> Dataset:
    """Score nominal and varied events; rows that a source only reweights are scored once."""
    known: dict[bytes, Floats] = {}

    def compute(events: Events) -> dict[str, Floats]:
        key = np.ascontiguousarray(events.matrix()).tobytes()
        if key not in known:
            known[key] = score(events)
        return {"score": known[key]}

    return data.transform(compute)


def make_templates(scored: Dataset, c: Constant) -> tuple[TemplateSet, float | None]:
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
    arrays = make_templates(scored, None)[0].arrays()
    found = measure_sensitivity(arrays)
    return {f"{name}_optimised": getattr(found, name) for name in ("z_stat", "z_full", "delta_mu")}


def measure_templates(templates: TemplateSet) -> dict[str, float]:
    """Significances and σ_μ of one set of templates: as they are, with smoothed shifts, and with a floor.

    The floor joins bins until each has ten effective simulated background events: the paper's rule asks for one event
    in the last bin, and rewards a score that puts exactly one there.
    """
    plain = templates.arrays()
    stat = fit_asimov(plain.without_systematics())
    results: dict[str, float] = {"z_stat": float(stat.z), "sigma_stat": float(stat.sigma_mu)}
    variants: dict[str, ModelArrays] = {
        "": plain,
        "_smooth": smooth(templates).arrays(),
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


LARGEST_ERROR = 0.05
"""Largest relative MC uncertainty of the nominal events in an averaged group."""

SAME = 1e-6
"""Ratios closer than this are the same."""


def smooth(templates: TemplateSet) -> TemplateSet:
    """Smooth the shifts of all sources on all processes."""
    return replace(templates, processes=tuple(_smooth_process(process) for process in templates.processes))


def _smooth_process(process: ProcessTemplates) -> ProcessTemplates:
    shifts = {}
    for name, shift in process.shifts.items():
        up = _smooth(process.nominal, process.variance, shift.up)
        down = 2 * process.nominal - up
        if not shift.mirrored:
            down = _smooth(process.nominal, process.variance, shift.down)
        shifts[name] = replace(shift, up=up, down=down)
    return replace(process, shifts=shifts)


def _smooth(nominal: Floats, variance: Floats, varied: Floats) -> Floats:
    """Averaged ratio × nominal, scaled to the yield of the variation; as it is where a bin has no nominal events."""
    if np.any(nominal <= 0):
        return varied
    edges = _join_uncertain(_join_extrema(nominal, variance, varied), nominal, variance)
    flat = _ratio(nominal, varied, edges) * nominal
    return np.asarray(flat * (varied.sum() / flat.sum()))


def _ratio(nominal: Floats, varied: Floats, edges: list[int]) -> Floats:
    ratio = np.empty_like(nominal)
    for low, high in pairwise(edges):
        ratio[low:high] = varied[low:high].sum() / nominal[low:high].sum()
    return ratio


def _join_extrema(nominal: Floats, variance: Floats, varied: Floats) -> list[int]:
    """Edges of groups; of the stretches between extrema the flattest, by χ², is averaged until one extremum is left."""
    edges = list(range(len(nominal) + 1))
    error = np.sqrt(variance) / nominal
    while len(turns := _extrema(_ratio(nominal, varied, edges))) > 3:

        def flatness(stretch: tuple[int, int]) -> float:
            group = slice(stretch[0], stretch[1] + 1)
            mean = varied[group].sum() / nominal[group].sum()
            return float(np.sum(((varied[group] / nominal[group] - mean) / error[group]) ** 2))

        low, high = min(pairwise(turns), key=flatness)
        edges = [edge for edge in edges if not low < edge <= high]
    return edges


def _extrema(ratio: Floats) -> list[int]:
    """First bin, bins where the ratio turns, last bin."""
    turns, direction = [0], 0
    for i in range(1, len(ratio)):
        step = ratio[i] - ratio[i - 1]
        sign = 0 if abs(step) <= SAME else int(np.sign(step))
        if sign and direction and sign != direction:
            turns.append(i - 1)
        direction = sign or direction
    return [*turns, len(ratio) - 1]


def _join_uncertain(edges: list[int], nominal: Floats, variance: Floats) -> list[int]:
    """Join groups from the right until the nominal events of each are known to `LARGEST_ERROR`."""
    kept, high = [edges[-1]], edges[-1]
    for low in edges[-2::-1]:
        group = slice(low, high)
        if np.sqrt(variance[group].sum()) <= LARGEST_ERROR * nominal[group].sum():
            kept.append(low)
            high = low
    if kept[-1] != edges[0]:
        kept[-1:] = [edges[0]] if len(kept) > 1 else [kept[-1], edges[0]]
    return kept[::-1]
