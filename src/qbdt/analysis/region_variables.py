"""Variables in the regions of a run, before and after its fit: what `draw` of a region asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from qbdt.analysis.blinding import find_open_data
from qbdt.analysis.inputs import choose_edges, fill_variable
from qbdt.analysis.run_folder import RunFolder
from qbdt.analysis.schema import Analysis, Variable
from qbdt.arrays import Floats
from qbdt.files import choose_words
from qbdt.inference import FitSummary, Measurement
from qbdt.inference.answers import predict
from qbdt.inference.templates import TemplateSet, bound_shifts, merge_unusable_bins
from qbdt.report import Figure
from qbdt.report.figures import stacked


def draw_region_variables(run: RunFolder) -> list[Figure]:
    """Figures of all variables that regions ask for; none where the events could not be read again."""
    if run.analysis is None or run.drawn is None:
        return []
    found = []
    for region, given in run.analysis.regions.items():
        for name, word in zip(given.draw, choose_words(given.draw), strict=True):
            templates = _fill(run, region, name)
            summary = predict(_measure(templates, region, run), run.summary)
            for after in (False, True):
                found.append(_draw(run.analysis, (region, name, word), templates, summary, after))
    return found


def _fill(run: RunFolder, region: str, name: str) -> TemplateSet:
    """Histograms of a variable in a region, in bins that can be drawn."""
    assert run.analysis is not None
    assert run.drawn is not None
    events = run.drawn.select(region)
    variable = run.analysis.variables.get(name, Variable())
    sources = run.analysis.fit.systematics
    events = events if sources is None else events.with_systematics(sources)
    filled = fill_variable(events, name, choose_edges(events, name, variable), variable.title(name))
    return bound_shifts(merge_unusable_bins(filled.scaled(run.analysis.fit.scale)))


def _measure(templates: TemplateSet, region: str, run: RunFolder) -> Measurement:
    """Templates of a variable with the parameters of the fit."""
    assert run.analysis is not None
    present = {process.name for process in templates.processes}
    factors = {name: run.measurement.factors[name] for name in run.measurement.free}
    free = {name: [p for p in own if p in present] for name, own in factors.items()}
    tied = {process: regions for process, regions in run.measurement.abcd.items() if process in present}
    plain = replace(templates, data=None)
    measurement = Measurement(
        {region: plain}, run.measurement.strengths, free={n: own for n, own in free.items() if own}, abcd=tied
    )
    for source, ways in run.analysis.split_sources.items():
        if source in measurement.sources:
            measurement = measurement.decorrelate(source, ways)
    renamed = measurement.rename_reserved()
    fixed = {name: value for name, value in run.measurement.fixed.items() if name in renamed.sources}
    measured = [name for name in run.measurement.unconstrained if name in renamed.sources]
    return replace(renamed, fixed=fixed, of_interest=(*renamed.of_interest, *measured))


def _draw(
    analysis: Analysis, named: tuple[str, str, str], templates: TemplateSet, summary: FitSummary, after: bool
) -> Figure:
    region, name, word = named
    shown = find_open_data({region: templates}, analysis)
    if shown is None and templates.data is not None:
        summary = replace(summary, counts=templates.data)
    hidden: Floats | None = None if shown is None else shown[region]
    drawn = stacked(templates, summary, after, analysis.figure_labels(), region=region, shown=hidden)
    yields = summary.postfit if after else {p.name: p.nominal for p in templates.processes}
    columns: dict[str, Sequence[Any]] = {"low": templates.edges[:-1].tolist(), "high": templates.edges[1:].tolist()}
    columns |= {process: np.asarray(values).tolist() for process, values in yields.items()}
    columns |= {"error": (summary.postfit_error if after else summary.prefit_error).tolist()}
    when = "after" if after else "before"
    caption = f"{name} in region {region} {when} the fit, with the uncertainty of all its parameters."
    return Figure(f"region-{region}-{word}-{when}", drawn, caption, columns)
