"""From a scored dataset and settings to templates that can be fitted: transform, binning, filling, repairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from qbdt.data import Dataset, Role
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.optimised_bins import find_scale, optimise_bins, optimise_edges
from qbdt.inference.templates.repair import bound_shifts, merge_unusable_bins, prune_sources
from qbdt.inference.templates.score_bins import ScoreBins, equal_yield_edges
from qbdt.inference.templates.score_histograms import fill
from qbdt.inference.templates.scores import scan_transform, score_range, tanh_scores
from qbdt.inference.templates.shift_errors import take_shift_errors
from qbdt.inference.templates.smoothing import smooth_shifts, symmetrise_shifts
from qbdt.inference.templates.template_set import Note, TemplateSet


@dataclass(frozen=True, eq=False)
class BuiltTemplates:
    """Templates and how they came about: the bins, and the constant c of tanh(c·y) where there was one."""

    templates: TemplateSet
    bins: ScoreBins
    c: float | None


Filler: TypeAlias = Callable[[float | None, ScoreBins, str], TemplateSet]
"""Fills templates from events that are elsewhere: constant c, bins, title of the axis."""


def build_templates(
    scored: Dataset,
    settings: FitSettings,
    choose_on: Dataset | None = None,
    filler: Filler | None = None,
    title: str = "score",
) -> BuiltTemplates:
    """Make templates of a scored dataset.

    Parameters
    ----------
    scored
        Dataset with one feature, the score; larger is more signal-like.
    settings
        Transform, binning, floor, sources, pruning.
    choose_on
        Other events with scores, to choose c and the edges on. Without it c and equal-yield edges are chosen on the
        nominal events of `scored`, optimised edges fold by fold on the other folds.
    filler
        Where `scored` is only a sample: fills the templates from all events.
    title
        Name of the one feature, for the axis.

    Examples
    --------
    >>> import numpy as np
    >>> from qbdt import Events, Sample
    >>> rng = np.random.default_rng(1)
    >>> signal = Sample("s", "signal", Events({"score": rng.normal(1, 1, 2000)}, np.full(2000, 0.01)))
    >>> background = Sample("b", "background", Events({"score": rng.normal(-1, 1, 2000)}, np.full(2000, 1.0)))
    >>> settings = FitSettings(binning="equal_signal", bins=5, min_entries=0)
    >>> built = build_templates(Dataset([signal, background]), settings)
    >>> built.templates.signal.round(1)
    array([4., 4., 4., 4., 4.])
    """
    wanted = [s.name for s in scored.systematics] if settings.systematics is None else settings.systematics
    scored = scored.with_systematics(wanted)
    choose_on = None if choose_on is None else choose_on.with_systematics(wanted)
    c = _constant(scored if choose_on is None else choose_on, settings)
    if c is not None:
        scored = tanh_scores(scored, c)
        choose_on = None if choose_on is None else tanh_scores(choose_on, c)
    bins = _choose_bins(scored, settings, choose_on)
    templates = _fill_and_repair(scored, settings, bins, c, filler, title)
    if 1 < bins.n_bins < settings.bins and settings.binning != "edges":
        short = Note("binning", f"{bins.n_bins} bins instead of {settings.bins}: more would break the floor or ties")
        templates = templates.with_notes([short])
    return BuiltTemplates(templates, bins, c)


def refill(scored: Dataset, settings: FitSettings, like: BuiltTemplates) -> TemplateSet:
    """Make templates of other scores of the same events with the choices (c, edges) of an earlier filling."""
    if settings.systematics is not None:
        scored = scored.with_systematics(settings.systematics)
    return _fill_and_repair(scored if like.c is None else tanh_scores(scored, like.c), settings, like.bins, like.c)


def _fill_and_repair(
    scored: Dataset,
    settings: FitSettings,
    bins: ScoreBins,
    c: float | None,
    filler: Filler | None = None,
    title: str = "score",
) -> TemplateSet:
    title = title if c is None else f"tanh({c:g} · {title})"
    title = title if bins.folds is None else f"bin of {title}"
    errors = settings.noise or settings.smooth != "none"
    filled = fill(scored, bins, title, errors) if filler is None else filler(c, bins, title)
    if filler is not None and errors:  # an event and its copy may be in different places there, but not in the sample
        filled = take_shift_errors(filled, fill(scored, bins, title, errors))
    templates = merge_unusable_bins(filled.scaled(settings.scale), settings.min_entries)
    if settings.symmetrise != "none":
        templates = symmetrise_shifts(templates, settings.symmetrise)
    if settings.smooth != "none":
        templates = smooth_shifts(templates, None if settings.smooth == "auto" else settings.smooth)
    templates = bound_shifts(templates)
    return templates if settings.prune is None else prune_sources(templates, settings.prune)


def _constant(scored: Dataset, settings: FitSettings) -> float | None:
    if settings.transform == "none":
        return None
    return scan_transform(scored, settings.bins).best if settings.c == "scan" else settings.c


def _choose_bins(scored: Dataset, settings: FitSettings, choose_on: Dataset | None) -> ScoreBins:
    chosen = scored if choose_on is None else choose_on
    match settings.binning:
        case "edges":
            return ScoreBins.of(settings.edges or [])
        case "uniform":
            low, high = (-1.0, 1.0) if settings.transform == "tanh" else score_range(chosen)
            return ScoreBins.of(np.linspace(low, high, settings.bins + 1))
        case "equal_signal":
            return ScoreBins.of(equal_yield_edges(chosen, settings.bins, Role.SIGNAL))
        case "equal_background":
            return ScoreBins.of(equal_yield_edges(chosen, settings.bins, Role.BACKGROUND))
        case "cells" | "categories":  # the score is the number of a cell, plus a half
            return ScoreBins.of(np.arange(int(score_range(chosen)[1]) + 2.0))
        case "optimised":
            if choose_on is None:
                return optimise_bins(scored, settings.bins, settings.min_entries)
            scale = find_scale(scored, choose_on, "binning optimised: the bins")
            return ScoreBins.of(optimise_edges(choose_on, settings.bins, settings.min_entries, scale))
