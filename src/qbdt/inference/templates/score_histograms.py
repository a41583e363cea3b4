"""Histograms of a scored dataset: nominal events and every variation through the same bins, as a `TemplateSet`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Dataset, Events, Role, Sample, Systematic, Variation
from qbdt.inference.templates.score_bins import Bins
from qbdt.inference.templates.shift_errors import measure_shift_variance
from qbdt.inference.templates.template_set import ProcessTemplates, Shift, TemplateSet


def fill(scored: Dataset, bins: Bins, variable: str = "score", errors: bool = False) -> TemplateSet:
    """Histogram a dataset with one feature, the score: nominal, Σw² and the shifts of all sources.

    A one-sided source is reflected: down = 2 · nominal − up. Norm sources keep their factors, so that they stay
    normalisations in the workspace. With `errors` the statistical variances of the shifts are computed, which takes
    time where events are replaced.

    Examples
    --------
    >>> from qbdt import Dataset, Events, Sample, Systematic
    >>> from qbdt.inference.templates import ScoreBins
    >>> signal = Sample("higgs", "signal", Events({"score": [0.9, 0.7]}, [1.0, 1.0]))
    >>> background = Sample("ttbar", "background", Events({"score": [0.1, 0.2, 0.8]}, [10.0, 10.0, 5.0]))
    >>> scored = Dataset([signal, background], [Systematic.norm("xs", 0.1, processes=["ttbar"])])
    >>> templates = fill(scored, ScoreBins.of([0, 0.5, 1]))
    >>> templates.background, templates.process("ttbar").shifts["xs"].up
    (array([20.,  5.]), array([22. ,  5.5]))
    """
    processes = tuple(
        _process(scored, sample, bins, errors) for sample in scored.samples if sample.role is not Role.DATA
    )
    recorded = scored.of_role(Role.DATA)
    data = None
    if recorded:
        data = np.sum([_histogram(s.events, bins, f"sample {s.name}")[0] for s in recorded], axis=0)
    return TemplateSet(variable, bins.axis, processes, tuple(s.name for s in scored.systematics), data)


def _process(scored: Dataset, sample: Sample, bins: Bins, errors: bool) -> ProcessTemplates:
    nominal, variance = _histogram(sample.events, bins, f"sample {sample.name}")
    shifts = {
        source.name: _shift(source, sample, nominal, bins, errors)
        for source in scored.systematics
        if sample.name in source.processes
    }
    return ProcessTemplates(sample.name, sample.role, nominal, variance, shifts)


def _shift(source: Systematic, sample: Sample, nominal: Floats, bins: Bins, errors: bool) -> Shift:
    sides: dict[str, Floats] = {}
    changes = {direction: effect[sample.name] for direction, effect in source.directions}
    for direction, change in changes.items():
        what = f"systematic {source.name}, {direction} variation of {sample.name}"
        sides[direction] = _histogram(change.apply(sample.events), bins, what)[0]
    factors = _factors(changes)
    if "down" not in sides:
        found = Shift(sides["up"], 2 * nominal - sides["up"], mirrored=True, factors=factors)
    else:
        found = Shift(sides["up"], sides["down"], factors=factors)
    if not errors or factors is not None:
        return found
    return replace(found, variance=measure_shift_variance(source, sample, bins))


def _factors(changes: Mapping[str, Variation]) -> tuple[float, float] | None:
    """Factors down and up of a source that scales the whole process; None for anything that can change a shape."""
    up = changes["up"].relative_size
    down = changes["down"].relative_size if "down" in changes else None if up is None else -up
    return None if down is None or up is None else (1.0 + down, 1.0 + up)


def _histogram(events: Events, bins: Bins, what: str) -> tuple[Floats, Floats]:
    index = bins.index(events, what)
    values = np.bincount(index, weights=events.weight, minlength=bins.n_bins)
    squares = np.bincount(index, weights=np.square(events.weight), minlength=bins.n_bins)
    return values.astype(np.float64), squares.astype(np.float64)
