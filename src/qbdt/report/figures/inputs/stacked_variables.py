"""A variable with all processes stacked, recorded data, and the uncertainty of all sources."""

from __future__ import annotations

from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.inference.templates import TemplateSet
from qbdt.report.figures.panels import (
    draw_band,
    draw_points,
    draw_stack,
    find_least_shown,
    make_panels,
    mark_hidden,
    round_scale,
)
from qbdt.report.labels import PLAIN, Labels
from qbdt.report.style import styled


def stacked_variable(
    templates: TemplateSet,
    labels: Labels = PLAIN,
    *,
    log: bool = False,
    data: Floats | None = None,
    title: str = "",
) -> Any:
    """Stacked processes with the signal overlaid, recorded data, the uncertainty of all sources, and the ratio.

    Parameters
    ----------
    log
        Whether the axis of events is logarithmic.
    data
        Recorded events per bin, NaN where they are hidden; none are drawn if not given.
    title
        Text inside the axes, such as the name of a region.
    """
    edges, total = templates.edges, templates.asimov
    error = _total_error(templates)
    with styled():
        drawn, (main, ratio) = make_panels()
        names = draw_stack(main, templates, {p.name: p.nominal for p in templates.processes}, edges, labels)
        draw_band(main, edges, total - error, total + error, "uncertainty")
        _overlay_signal(main, templates, labels)
        if data is not None:
            draw_points(main, edges, data, np.sqrt(np.nan_to_num(data)), "data")
            mark_hidden(main, edges, data)
        _set_range(main, templates, total, data, log, len(names))
        main.set_ylabel("events / bin")
        main.legend(ncols=2, loc="upper right")
        main.text(0.03, 0.95, title, transform=main.transAxes, va="top")
        labels.write_above(main)
        _draw_ratio(ratio, edges, total, error, data)
        ratio.set_xlabel(templates.variable)
        _count_whole_numbers(ratio, edges)
    return drawn


def _count_whole_numbers(axes: Any, edges: Floats) -> None:
    """Ticks in the middle of bins that hold one whole number each."""
    centres = (edges[:-1] + edges[1:]) / 2
    if np.array_equal(centres, np.round(centres)) and np.allclose(np.diff(edges), 1):
        axes.set_xticks(centres[:: -(-len(centres) // 12)])
        axes.tick_params(axis="x", which="minor", length=0)


def _total_error(templates: TemplateSet) -> Floats:
    """Statistics of the simulation and all sources, added in quadrature."""
    variance = np.sum([process.variance for process in templates.processes], axis=0)
    return np.asarray(np.sqrt(variance + np.sum(np.square(templates.arrays().shifts), axis=0)))


def _overlay_signal(axes: Any, templates: TemplateSet, labels: Labels) -> None:
    """All signals together as a line, times a power of ten that brings it near the background."""
    signals = templates.of_role(Role.SIGNAL)
    colour = labels.fill_colours([], [p.name for p in signals])[signals[0].name]
    scale = round_scale(float(templates.background.max()), float(templates.signal.max()))
    label = labels.process(signals[0].name) if len(signals) == 1 else "signal"
    label = f"{label} × {scale:g}" if scale > 1 else f"{label} (line)"
    axes.stairs(scale * templates.signal, templates.edges, color=colour, linewidth=2, label=label)


def _set_range(axes: Any, templates: TemplateSet, total: Floats, data: Floats | None, log: bool, n_names: int) -> None:
    """Room above for the legend."""
    top = max(float(total.max()), float(np.nanmax(data)) if data is not None and np.isfinite(data).any() else 0.0)
    rows = 2 + n_names // 2
    if not log:
        axes.set_ylim(0, top * (1.15 + 0.075 * rows))
        return
    axes.set_yscale("log")
    positive = total[total > 0]
    floor = min(0.3 * float(positive.min()), find_least_shown(templates)) if positive.size else 0.1
    low = max(floor, 1e-4 * top)
    axes.set_ylim(low, top * (top / low) ** (0.1 + 0.08 * rows))


def _draw_ratio(axes: Any, edges: Floats, total: Floats, error: Floats, data: Floats | None) -> None:
    """Data over expectation with the band of the expectation; only the band where there are no data."""
    known = np.where(total > 0, total, np.nan)
    draw_band(axes, edges, 1 - np.nan_to_num(error / known), 1 + np.nan_to_num(error / known), None)
    axes.axhline(1, color="black", linewidth=0.8)
    furthest = np.nan_to_num(error / known)
    if data is not None:
        points, bars = data / known, np.sqrt(np.nan_to_num(data)) / known
        draw_points(axes, edges, points, bars, None)
        furthest = np.maximum(furthest, np.nan_to_num(np.abs(points - 1) + 0.5 * bars))
    reach = min(max(0.1, 1.1 * float(np.quantile(furthest, 0.95))), 1.0)
    axes.set_ylim(1 - reach, 1 + reach)
    if data is not None:
        _point_outside(axes, edges, points - 1, reach)
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylabel("data / exp." if data is not None else "unc.", loc="center")


def _point_outside(axes: Any, edges: Floats, away: Floats, reach: float) -> None:
    """Arrows at the border for points that lie outside."""
    centres = (edges[:-1] + edges[1:]) / 2
    for outside, marker, side in ((away > reach, "^", 0.9), (away < -reach, "v", -0.9)):
        axes.plot(centres[outside], np.full(outside.sum(), 1 + side * reach), marker, color="black", markersize=5)
