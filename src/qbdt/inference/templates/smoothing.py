"""Smoothing of shifts that is as strong as their statistical noise asks for, and no stronger; symmetrisation.

The relative shift r of a process, with its error σ in each bin, is replaced by the values that minimise

    Σ ((r̂ − r)/σ)² + λ Σ (d-th differences of r̂)²,

a linear function r̂ = H r. Order d = 1 or 2 and strength λ are those with the smallest unbiased estimate of the distance
to the truth, Σ ((r̂ − r)/σ)² + 2 tr H (Mallows' C_p): a shift that is well measured stays as it is, one that is all
noise becomes a constant. The change of the yield is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qbdt.arrays import Floats
from qbdt.inference.templates.template_set import Note, ProcessTemplates, Shift, TemplateSet

STRENGTHS = (0.0, *np.geomspace(1e-2, 1e8, 21).tolist())
"""Strengths λ that are tried, in units of the mean of 1/σ²: from nothing to a constant or a straight line."""


def smooth_shifts(templates: TemplateSet, sources: Sequence[str] | None = None) -> TemplateSet:
    """Smooth the shifts of sources (all by default) that are shapes and whose statistical errors are known."""
    wanted = templates.sources if sources is None else sources
    notes: list[Note] = []
    processes = tuple(_smooth_process(process, wanted, notes) for process in templates.processes)
    return replace(templates, processes=processes).with_notes(notes)


def smooth_values(values: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Smooth one sequence of numbers with errors; returns the smoothed ones and the matrix H that made them.

    Examples
    --------
    >>> noise = np.random.default_rng(1).normal(0, 0.1, 30)
    >>> smooth, _ = smooth_values(noise, np.full(30, 0.1))
    >>> float(np.abs(smooth).max()) < 0.1
    True
    """
    weight = 1 / np.square(errors)
    scale = float(weight.mean())
    found = []
    for order in (1, 2):
        if len(values) <= order:
            continue
        differences = np.diff(np.eye(len(values)), n=order, axis=0)
        penalty = differences.T @ differences
        for strength in STRENGTHS:
            matrix = np.linalg.solve(np.diag(weight) + strength * scale * penalty, np.diag(weight))
            distance = np.sum(weight * np.square(matrix @ values - values)) + 2 * np.trace(matrix)
            found.append((float(distance), matrix))
    matrix = min(found, key=lambda one: one[0])[1] if found else np.eye(len(values))
    return matrix @ values, matrix


def symmetrise_shifts(templates: TemplateSet, rule: str) -> TemplateSet:
    """Make up and down mirror images about the nominal.

    With the rule "average" by half the difference of up and down, with "largest" by the larger of the two changes in
    each bin, with the sign of half the difference.
    """
    processes = []
    for process in templates.processes:
        shifts = {
            name: shift if shift.factors is not None else _symmetrise(process.nominal, shift, rule)
            for name, shift in process.shifts.items()
        }
        processes.append(replace(process, shifts=shifts))
    return replace(templates, processes=tuple(processes))


def _smooth_process(process: ProcessTemplates, wanted: Sequence[str], notes: list[Note]) -> ProcessTemplates:
    shifts = dict(process.shifts)
    for name, shift in process.shifts.items():
        if name not in wanted or shift.factors is not None or shift.variance is None:
            continue
        smoothed, freedom = _smooth_shift(process.nominal, shift)
        shifts[name] = smoothed
        if freedom is not None and freedom < 0.9 * len(process.nominal):
            message = f"smoothed on {process.name}: {freedom:.1f} of {len(process.nominal)} degrees of freedom are left"
            notes.append(Note(f"source {name}", message))
    return replace(process, shifts=shifts)


def _smooth_shift(nominal: Floats, shift: Shift) -> tuple[Shift, float | None]:
    """Smoothed shift, and the degrees of freedom that are left, tr H; None where nothing can be done."""
    assert shift.variance is not None
    usable = (nominal > 0) & (shift.variance > 1e-12 * np.square(nominal))
    if usable.sum() < 3:
        return shift, None
    part = nominal[usable]
    errors = np.sqrt(shift.variance[usable]) / part
    _, matrix = smooth_values((shift.up - shift.down)[usable] / (2 * part), errors)
    sides = []
    for side in (shift.up, shift.down):
        relative = side[usable] / part - 1
        smooth = matrix @ relative
        smooth += (np.sum(part * relative) - np.sum(part * smooth)) / part.sum()  # the yield stays
        values = side.copy()
        values[usable] = part * (1 + smooth)
        sides.append(values)
    return replace(shift, up=sides[0], down=sides[1]), float(np.trace(matrix))


def _symmetrise(nominal: Floats, shift: Shift, rule: str) -> Shift:
    half = (shift.up - shift.down) / 2
    if rule == "largest":
        half = np.sign(half) * np.maximum(np.abs(shift.up - nominal), np.abs(shift.down - nominal))
    return replace(shift, up=nominal + half, down=nominal - half, mirrored=True)
