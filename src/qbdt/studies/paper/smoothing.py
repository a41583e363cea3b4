"""Smoothed shifts: what the statistical frameworks of the LHC do to variations before a fit.

The ratio of varied to nominal events is averaged over neighbouring bins until it has at most one extremum and every
averaged group is known to 5 %, and the yield of the variation is kept. The paper does not say that its templates were
smoothed; the report shows both, because the significance with systematics depends on it more than on the method.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from qbdt.arrays import Floats
from qbdt.inference.templates import ProcessTemplates, TemplateSet

__all__ = ["smoothed"]

LARGEST_ERROR = 0.05
"""Largest relative MC uncertainty of the nominal events in an averaged group."""

SAME = 1e-6
"""Ratios closer than this are the same."""


def smoothed(templates: TemplateSet) -> TemplateSet:
    """Smooth the shifts of all sources on all processes."""
    return replace(templates, processes=tuple(_process(process) for process in templates.processes))


def _process(process: ProcessTemplates) -> ProcessTemplates:
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
    edges = _well_known(_with_one_extremum(nominal, variance, varied), nominal, variance)
    flat = _ratio(nominal, varied, edges) * nominal
    return np.asarray(flat * (varied.sum() / flat.sum()))


def _ratio(nominal: Floats, varied: Floats, edges: list[int]) -> Floats:
    ratio = np.empty_like(nominal)
    for low, high in pairwise(edges):
        ratio[low:high] = varied[low:high].sum() / nominal[low:high].sum()
    return ratio


def _with_one_extremum(nominal: Floats, variance: Floats, varied: Floats) -> list[int]:
    """Edges of groups; of the stretches between extrema the flattest, by χ², is averaged until one extremum is left."""
    edges = list(range(len(nominal) + 1))
    error = np.sqrt(variance) / nominal
    while len(turns := _extrema(_ratio(nominal, varied, edges))) > 3:

        def flatness(stretch: tuple[int, int]) -> float:
            part = slice(stretch[0], stretch[1] + 1)
            mean = varied[part].sum() / nominal[part].sum()
            return float(np.sum(((varied[part] / nominal[part] - mean) / error[part]) ** 2))

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


def _well_known(edges: list[int], nominal: Floats, variance: Floats) -> list[int]:
    """Join groups from the right until the nominal events of each are known to `LARGEST_ERROR`."""
    kept, high = [edges[-1]], edges[-1]
    for low in edges[-2::-1]:
        part = slice(low, high)
        if np.sqrt(variance[part].sum()) <= LARGEST_ERROR * nominal[part].sum():
            kept.append(low)
            high = low
    if kept[-1] != edges[0]:
        kept[-1:] = [edges[0]] if len(kept) > 1 else [kept[-1], edges[0]]
    return kept[::-1]
