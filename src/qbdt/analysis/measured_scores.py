"""Measurements of several parameters in an analysis: columns of scores, and cells in the space of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from qbdt.analysis.region_events import RegionEvents
from qbdt.analysis.schema import Analysis
from qbdt.arrays import Floats
from qbdt.data import Events, Role
from qbdt.errors import ConfigError
from qbdt.files import choose_words
from qbdt.inference.templates import CellTarget, choose_cells
from qbdt.models import score_events
from qbdt.training import Model


def name_scores(
    model: Model, events: Events, name: str, n_threads: int | None, device: str | None = None
) -> dict[str, Floats]:
    """Columns of the scores of some events: one, or one for each parameter of interest."""
    return split_scores(score_events(model, events, n_threads, device), model.parameters, name, events.id_names)


def split_scores(scores: Floats, parameters: Sequence[str], name: str, taken: Iterable[str]) -> dict[str, Floats]:
    """Name the columns of scores: `name`, or where there are several that of each parameter behind it.

    None of several is called like what is `taken`.
    """
    if scores.ndim == 1:
        return {name: scores}
    words = choose_words([f"{name}_{parameter}" for parameter in parameters], taken)
    return dict(zip(words, scores.T, strict=True))


def require_measurable(analysis: Analysis) -> None:
    """Refuse, before anything is read, settings that no fit of the scores of a run can have."""
    fit, training = analysis.fit, analysis.training
    strengths = fit.parameters or [fit.poi]
    sources = [name for name in fit.of_interest if name in analysis.systematics and name not in fit.fixed]
    if sources and fit.limits != "none":
        raise ConfigError(
            f"fit.limits: {sources[0]} is measured, and without signal it may have no effect: hold it under fit.fixed, "
            "and measure a signal strength"
        )
    n_scores = len(training.of_interest or training.strengths) or 1
    if fit.binning == "cells" and n_scores > CellTarget.MOST:
        raise ConfigError(
            f"fit.binning: cells of at most {CellTarget.MOST} scores; here {n_scores} are trained: "
            "use binning: categories"
        )
    if fit.binning == "categories" and n_scores != len(strengths):
        raise ConfigError(
            f"fit.binning: categories take a score for each signal strength; here {n_scores} are trained and "
            f"{len(strengths)} fitted: use binning: cells"
        )


def join_scores(events: RegionEvents, analysis: Analysis) -> RegionEvents:
    """Put the number of a cell, or of a category's bin, in place of several scores, where the fit has such bins.

    Cells for the events of one fold are chosen on the simulated events of the others in the regions that train.
    """
    fit = analysis.fit
    if not fit.joins_scores:
        return events
    chosen = events.training()
    chosen = chosen if fit.systematics is None else chosen.with_systematics(fit.systematics)
    free = tuple(fit.free) if not isinstance(fit.free, Mapping) else tuple(p for own in fit.free.values() for p in own)
    signals = tuple(sample.name for sample in chosen.of_role(Role.SIGNAL))
    strengths = {name: tuple(own) for name, own in fit.parameters.items()} or {fit.poi: signals}
    target = CellTarget(strengths, tuple(fit.of_interest), free, figure=fit.figure)
    ways = {"by_folds": True, "by_category": fit.binning == "categories"}
    cells = choose_cells(chosen, fit.bins, target, CellTarget.FLOOR * fit.min_entries, **ways)
    return events.transform(lambda each: {"cell": cells.index(each, "events") + 0.5})
