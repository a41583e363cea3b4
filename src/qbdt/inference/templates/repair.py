"""Rules that make templates fit to be fitted, each leaving a `Note`.

* A bin without background, or with fewer effective simulated background events than asked for, is merged with its
  neighbour on the background side (the lower scores; the first bin with the second).
* A shifted template never falls below a small fraction of the nominal content of the bin, so that no expectation is
  negative within one standard deviation.
* A source that moves no bin by more than a threshold can be dropped, process by process.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qbdt.arrays import Floats
from qbdt.errors import FitError
from qbdt.inference.templates.template_set import Note, ProcessTemplates, Shift, TemplateSet

SMALLEST_SHIFTED = 1e-3
"""Smallest content of a shifted bin, relative to the nominal content: positive, and below any shift that is meant."""


def merge_unusable_bins(templates: TemplateSet, min_entries: float = 0.0) -> TemplateSet:
    """Merge bins with no or negative background, or too few effective simulated background events.

    `min_entries` is the smallest (Σw)²/Σw² of the background in a bin; 0 asks only for a positive yield.

    Examples
    --------
    >>> from qbdt.data import Role
    >>> s = ProcessTemplates("s", Role.SIGNAL, np.array([1.0, 2.0, 3.0]), np.ones(3))
    >>> b = ProcessTemplates("b", Role.BACKGROUND, np.array([9.0, 4.0, 0.0]), np.array([9.0, 4.0, 0.0]))
    >>> merged = merge_unusable_bins(TemplateSet("score", np.arange(4.0), (s, b)))
    >>> merged.signal, str(merged.notes[0])
    (array([1., 5.]), 'bin 3 (2 to 3): no background; merged with bin 2')
    """
    starts = list(range(templates.n_bins))
    notes: list[Note] = []
    while True:
        current = templates.merged(starts)
        entries = current.effective_background
        bad = np.flatnonzero((entries < min_entries) | (current.background <= 0))
        if not bad.size:
            return current.with_notes(notes)
        worst = int(bad[-1])
        reason = _reason(current.background[worst], entries[worst], min_entries)
        if len(starts) == 1:
            raise FitError(f"all bins together: {reason}; there is no background to fit")
        partner = worst - 1 if worst > 0 else 1
        where = f"bin {worst + 1} ({current.edges[worst]:.4g} to {current.edges[worst + 1]:.4g})"
        notes.append(Note(where, f"{reason}; merged with bin {partner + 1}"))
        del starts[max(worst, partner)]


def bound_shifts(templates: TemplateSet) -> TemplateSet:
    """Bound shifted contents from below by `SMALLEST_SHIFTED` × nominal (by the nominal content where that is ≤ 0)."""
    notes: list[Note] = []
    processes = tuple(_bound_process(process, notes) for process in templates.processes)
    return replace(templates, processes=processes).with_notes(notes)


def prune_sources(templates: TemplateSet, threshold: float) -> TemplateSet:
    """Drop a source from a process when it moves no bin by more than `threshold` × the events of that role there.

    A source that acts on no process any more leaves the set. With a threshold of 0 only sources without any effect go.
    """
    notes: list[Note] = []
    processes = []
    for process in templates.processes:
        reference = np.abs(templates.total(process.role))
        largest = {name: _largest(shift, process.nominal, reference) for name, shift in process.shifts.items()}
        kept = {name: shift for name, shift in process.shifts.items() if largest[name] > threshold}
        processes.append(replace(process, shifts=kept))
        notes += [
            Note(f"source {name}", f"dropped from {process.name}: moves no bin by more than {largest[name]:.2g}")
            for name in process.shifts
            if name not in kept
        ]
    acting = tuple(name for name in templates.sources if any(name in p.shifts for p in processes))
    return replace(templates, processes=tuple(processes), sources=acting).with_notes(notes)


def _reason(background: float, entries: float, min_entries: float) -> str:
    if background < 0:
        return f"negative background {background:.3g}"
    if background == 0:
        return "no background"
    return f"{entries:.3g} effective simulated background events, fewer than {min_entries:g}"


def _bound_process(process: ProcessTemplates, notes: list[Note]) -> ProcessTemplates:
    limit = np.where(process.nominal > 0, SMALLEST_SHIFTED * process.nominal, process.nominal)
    shifts, negative = {}, process.nominal < 0
    if process.shifts and negative.any():
        where = f"negative in bin {_list_bins(negative)}: no source makes it more so"
        notes.append(Note(f"process {process.name}", where))
    for name, shift in process.shifts.items():
        low = ((shift.up < limit) | (shift.down < limit)) & ~negative
        if low.any():
            how = "its reflection would be negative" if shift.mirrored else "it leaves almost nothing"
            where = f"bounded from below on {process.name} in bin {_list_bins(low)}: {how}"
            notes.append(Note(f"source {name}", where))
        shifts[name] = replace(shift, up=np.maximum(shift.up, limit), down=np.maximum(shift.down, limit))
    return replace(process, shifts=shifts)


def _list_bins(chosen: NDArray[np.bool_]) -> str:
    return ", ".join(str(i + 1) for i in np.flatnonzero(chosen))


def _largest(shift: Shift, nominal: Floats, reference: Floats) -> float:
    """Largest change of any bin relative to the events of the role in it; infinite where there are none."""
    change = np.maximum(np.abs(shift.up - nominal), np.abs(shift.down - nominal))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = change / reference
    return float(np.max(np.where(change == 0, 0.0, relative), initial=0.0))
