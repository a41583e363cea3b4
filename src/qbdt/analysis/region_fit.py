"""From scored events of all regions to one fit: templates region by region, and the parameters of the analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from qbdt.analysis.blinding import find_open_data
from qbdt.analysis.loader import restrict_sources, training_settings
from qbdt.analysis.measured_scores import join_scores
from qbdt.analysis.region_events import RegionEvents
from qbdt.analysis.schema import Analysis, Region
from qbdt.data import Dataset, Role
from qbdt.errors import ConfigError, FitError
from qbdt.inference import FitResult, Measurement, build_templates, fit_measurement, fit_templates
from qbdt.inference.partners import JointFit, join_information, read_partner
from qbdt.inference.templates import ScoreBins, TemplateSet
from qbdt.progress import Progress, silent
from qbdt.training import STRENGTH, Partner

RegionFiller: TypeAlias = Callable[[str, float | None, ScoreBins, str], TemplateSet]
"""Fills the templates of a region from events that are elsewhere: region, constant c, bins, title of the axis."""


def fit_regions(
    events: RegionEvents, analysis: Analysis, progress: Progress = silent, filler: RegionFiller | None = None
) -> FitResult:
    """Fit all regions of an analysis together.

    Bins are settings of its regions, correlations of its sources, everything else of its fit. Where the
    scored `events` are only a sample, `filler` fills templates from all events.
    """
    fit, regions = analysis.fit, analysis.regions or {analysis.fit.channel: Region()}
    events.every_event().require_usable()
    events = join_scores(events, analysis)
    built = {name: _build(events, analysis, name, region, filler) for name, region in regions.items()}
    templates = {name: _drop_absent(one.templates) for name, one in built.items()}
    shown = find_open_data(templates, analysis)
    if shown is not None:
        templates = {name: replace(one, data=None) for name, one in templates.items()}
    chosen: dict[str, dict[str, Any]] = {
        name: {"chosen_c": one.c, "chosen_edges": [list(edges) for edges in one.bins.edges]}
        for name, one in built.items()
    }
    if _is_plain(analysis):
        result, choices = fit_templates(templates[fit.channel], fit, progress), chosen[fit.channel]
    else:
        result, choices = fit_measurement(_measurement(templates, analysis), fit, progress), {"regions": chosen}
    joint = None if analysis.training.partner_file is None else _find_joint_fit(result, templates, analysis)
    return replace(result, settings={**result.settings, **choices}, shown=shown, joint=joint)


def _find_joint_fit(result: FitResult, templates: Mapping[str, TemplateSet], analysis: Analysis) -> JointFit | None:
    """What is expected of a fit together with the workspace that training was told of, if there is one."""
    partner, path = training_settings(analysis).partner, analysis.training.partner_file
    if partner is None or path is None:
        return None
    fitted = result.measurement
    poi, words = _training_names(fitted, analysis)
    words |= dict(zip(fitted.sources, _measurement(templates, analysis).sources, strict=True))
    known = read_partner(result.workspace, poi)
    own = replace(known, names=[words.get(name, name) for name in known.names])
    words |= {} if poi is None else {poi: STRENGTH}
    named = {words.get(name, name) for name in (*fitted.factors, *fitted.sources)}
    free = [words.get(name, name) for name in (*fitted.factors, *fitted.unconstrained)]
    joint = join_information(own, partner, [name for name in own.names if name in named], free)
    each = ((one.name, words.get(one.name, one.name), one.sigma_mu) for one in result.expected.strengths)
    return JointFit(Path(path).name, {name: (sigma, joint[word]) for name, word, sigma in each if word in joint})


def read_control_regions(events: RegionEvents, analysis: Analysis) -> Partner:
    """Information of the control regions of an analysis in its fit, for training; recorded data are not seen.

    The events of all regions come with their observables; scores are not needed.
    """
    control = {name: region for name, region in analysis.regions.items() if region.is_control}
    if not control:
        raise ConfigError("training.with: control regions: no region is one, they all train or have the score")
    built = {name: _build(events, analysis, name, region, None) for name, region in control.items()}
    templates = {name: replace(_drop_absent(one.templates), data=None) for name, one in built.items()}
    measurement = _measurement(templates, _restrict(analysis, templates))
    poi, words = _training_names(measurement, analysis)
    partner = read_partner(measurement, poi, mc_stat=analysis.fit.mc_stat)
    return replace(partner, names=[words.get(name, name) for name in partner.names])


def _training_names(measurement: Measurement, analysis: Analysis) -> tuple[str | None, dict[str, str]]:
    """Strength of a fit that the training knows as that of all signals, and what it calls free backgrounds.

    It knows these by their process, whatever their factor is called in the fit.
    """
    trained, fitted = analysis.training.strengths or [STRENGTH], list(measurement.strengths)
    same = fitted[0] if len(fitted) == len(trained) == 1 else STRENGTH  # one strength of all signals, by any name
    scaled = {name: own for name, own in measurement.factors.items() if name in measurement.free and len(own) == 1}
    words = {name: Partner.name_free(*own) for name, own in scaled.items()}
    return same if STRENGTH in trained and same in fitted else None, words


def _restrict(analysis: Analysis, templates: Mapping[str, TemplateSet]) -> Analysis:
    """Leave out of the fit all names that these regions do not have, and settings that only matter for its results."""
    fit, regions = analysis.fit, templates.values()
    backgrounds = {process.name for region in regions for process in region.of_role(Role.BACKGROUND)}
    sources = {source for region in regions for source in region.sources}
    free: Any = [name for name in fit.free if name in backgrounds]
    if isinstance(fit.free, Mapping):
        there = {factor: [name for name in own if name in backgrounds] for factor, own in fit.free.items()}
        free = {factor: own for factor, own in there.items() if own}
    left = {
        "free": free,
        "of_interest": [name for name in fit.of_interest if name in sources],
        "fixed": {name: value for name, value in fit.fixed.items() if name in sources},
        "bounds": {},
        "groups": {},
    }
    return analysis.model_copy(update={"fit": fit.model_copy(update=left)})


def require_parameters(dataset: Dataset, analysis: Analysis) -> None:
    """Refuse a fit whose parameters, bounds or groups name what is not there: before training, as no scores are needed.

    Parameters
    ----------
    dataset
        Its samples and sources are those of the fit.
    analysis
        The analysis.
    """
    if _is_plain(analysis):
        return
    fitted = restrict_sources(dataset, analysis.fit.systematics)
    shift = {"up": [2.0], "down": [0.5], "mirrored": False, "factors": None}  # one bin: only names count
    processes = [
        {
            "name": sample.name,
            "role": str(Role(sample.role)),
            "nominal": [1.0],
            "variance": [1.0],
            "shifts": {source.name: shift for source in fitted.systematics if sample.name in source.processes},
        }
        for sample in fitted.samples
        if Role(sample.role) in (Role.SIGNAL, Role.BACKGROUND)
    ]
    sources = [source.name for source in fitted.systematics]
    plain = {"variable": "", "edges": [0, 1], "processes": processes, "sources": sources, "data": None, "notes": []}
    templates = TemplateSet.from_dict(plain)
    _measurement(dict.fromkeys(analysis.regions or [analysis.fit.channel], templates), analysis)


def _is_plain(analysis: Analysis) -> bool:
    """Whether there is one region, one signal strength, and nothing that `FitSettings` do not know."""
    fit = analysis.fit
    named = (
        analysis.regions,
        analysis.tied,
        analysis.split_sources,
        fit.parameters,
        fit.free,
        fit.fixed,
        fit.bounds,
        fit.groups,
        [name for name in fit.of_interest if name != fit.poi],
    )
    return not any(named)


def _measurement(regions: Mapping[str, TemplateSet], analysis: Analysis) -> Measurement:
    """Regions and parameters of an analysis; a group that names a source has all that it is split into."""
    fit = analysis.fit
    signals = dict.fromkeys(p.name for region in regions.values() for p in region.of_role(Role.SIGNAL))
    measurement = Measurement(regions, fit.parameters or {fit.poi: list(signals)}, free=fit.free)
    for process, four in analysis.tied.items():
        if set(four) <= set(regions):  # not where control regions alone are looked at
            measurement = measurement.tie(process, four)
    parts: dict[str, tuple[str, ...]] = {}
    for name, ways in analysis.split_sources.items():
        if name in measurement.sources:  # others act nowhere in the fit
            split = measurement.decorrelate(name, ways)
            parts[name] = tuple(source for source in split.sources if source not in measurement.sources)
            measurement = split
    groups = {group: [p for name in names for p in parts.get(name, (name,))] for group, names in fit.groups.items()}
    return replace(measurement, of_interest=fit.of_interest, fixed=fit.fixed, bounds=fit.bounds, groups=groups)


def _build(events: RegionEvents, analysis: Analysis, name: str, region: Region, filler: RegionFiller | None) -> Any:
    """Templates of a region, and how they came about."""
    known = analysis.variables.get(region.observable)
    title = known.title(region.observable) if known is not None and region.title is None else region.axis_title
    if analysis.fit.joins_scores and region.uses_score and region.title is None:
        title = "cell of the scores" if analysis.fit.binning == "cells" else "bin of the categories"
    own = None if filler is None else partial(filler, name)
    try:
        return build_templates(events.observe(name), region.fit_settings(analysis.fit), filler=own, title=title)
    except FitError as error:
        raise FitError(f"region {name}: {error}" if analysis.regions else str(error)) from error


def _drop_absent(templates: TemplateSet) -> TemplateSet:
    """Leave out backgrounds that have no events in a region, and sources that then act on nothing."""
    kept = tuple(p for p in templates.processes if p.role is Role.SIGNAL or np.any(p.variance > 0))
    if len(kept) == len(templates.processes):
        return templates
    acting = {name for process in kept for name in process.shifts}
    return replace(templates, processes=kept, sources=tuple(name for name in templates.sources if name in acting))
