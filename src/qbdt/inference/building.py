"""From a scored dataset and settings to templates that can be fitted: transform, binning, filling, repairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from qbdt.data import Dataset, Role
from qbdt.inference.settings import FitSettings
from qbdt.inference.templates.edges import equal_yield_edges, uniform_edges
from qbdt.inference.templates.filling import Binning, fill, read_score
from qbdt.inference.templates.optimised import optimised_binning, optimised_edges
from qbdt.inference.templates.repair import bounded, pruned, with_usable_bins
from qbdt.inference.templates.template_set import Note, TemplateSet
from qbdt.inference.templates.transform import scan_transform, tanh_scores

__all__ = ["Built", "Filled", "build_templates", "refill"]


@dataclass(frozen=True, eq=False)
class Built:
    """Templates and how they came about: the binning, and the constant c of tanh(c·y) where there was one."""

    templates: TemplateSet
    binning: Binning
    c: float | None


Filled: TypeAlias = Callable[[float | None, Binning, str], TemplateSet]
"""Fills templates from events that are elsewhere: constant c, binning, title of the axis."""


def build_templates(
    scored: Dataset, settings: FitSettings, choose_on: Dataset | None = None, filled: Filled | None = None
) -> Built:
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
    filled
        Where `scored` is only a sample: fills the templates from all events.

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
    binning = _binning(scored, settings, choose_on)
    templates = _filled(scored, settings, binning, c, filled)
    if 1 < binning.n_bins < settings.bins and settings.binning != "edges":
        short = Note("binning", f"{binning.n_bins} bins instead of {settings.bins}: more would break the floor or ties")
        templates = templates.with_notes([short])
    return Built(templates, binning, c)


def refill(scored: Dataset, settings: FitSettings, like: Built) -> TemplateSet:
    """Make templates of other scores of the same events with the choices (c, edges) of an earlier filling."""
    if settings.systematics is not None:
        scored = scored.with_systematics(settings.systematics)
    return _filled(scored if like.c is None else tanh_scores(scored, like.c), settings, like.binning, like.c)


def _filled(
    scored: Dataset, settings: FitSettings, binning: Binning, c: float | None, filled: Filled | None = None
) -> TemplateSet:
    """Fill templates of transformed scores and repair them."""
    title = "score" if c is None else f"tanh({c:g} · score)"
    title = title if binning.folds is None else f"bin of {title}"
    templates = (fill(scored, binning, title) if filled is None else filled(c, binning, title)).scaled(settings.scale)
    templates = bounded(with_usable_bins(templates, settings.min_entries))
    return templates if settings.prune is None else pruned(templates, settings.prune)


def _constant(scored: Dataset, settings: FitSettings) -> float | None:
    if settings.transform == "none":
        return None
    return scan_transform(scored, settings.bins).best if settings.c == "scan" else settings.c


def _binning(scored: Dataset, settings: FitSettings, choose_on: Dataset | None) -> Binning:
    chosen = scored if choose_on is None else choose_on
    match settings.binning:
        case "edges":
            return Binning.of(settings.edges or [])
        case "uniform":
            low, high = (-1.0, 1.0) if settings.transform == "tanh" else _range(chosen)
            return Binning.of(uniform_edges(settings.bins, low, high))
        case "equal_signal":
            return Binning.of(equal_yield_edges(chosen, settings.bins, Role.SIGNAL))
        case "equal_background":
            return Binning.of(equal_yield_edges(chosen, settings.bins, Role.BACKGROUND))
        case "optimised":
            if choose_on is None:
                return optimised_binning(scored, settings.bins, settings.min_entries)
            ratio = scored.total(Role.BACKGROUND) / choose_on.total(Role.BACKGROUND)
            return Binning.of(optimised_edges(choose_on, settings.bins, settings.min_entries, ratio))


def _range(scored: Dataset) -> tuple[float, float]:
    scores = [read_score(s.events, f"sample {s.name}") for s in scored.samples if s.role is not Role.DATA]
    return min(float(s.min()) for s in scores), max(float(s.max()) for s in scores)
