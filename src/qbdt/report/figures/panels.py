"""Pieces of figures: histograms with a ratio below (a stack, points, a band, hidden bins), and matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.inference.templates import TemplateSet
from qbdt.report.labels import Labels
from qbdt.report.style import figure

MOST_NUMBERED = 25
"""Rows of a matrix up to which its numbers are written into it."""


def make_panels() -> tuple[Any, Any]:
    """Return a figure with axes for a histogram, and below them for a ratio."""
    return figure(6.5, 6.0, nrows=2, sharex=True, gridspec_kw={"height_ratios": [3, 1], "hspace": 0.03})


def draw_stack(
    axes: Any, templates: TemplateSet, yields: Mapping[str, Floats], edges: Floats, labels: Labels
) -> list[str]:
    """Draw backgrounds from the smallest up, signals on top; return the names."""
    import mplhep

    backgrounds = sorted((p.name for p in templates.of_role(Role.BACKGROUND)), key=lambda n: float(yields[n].sum()))
    signals = [p.name for p in templates.of_role(Role.SIGNAL)]
    colours = labels.fill_colours(backgrounds[::-1], signals)
    names = [*backgrounds, *signals]
    mplhep.histplot(
        [yields[name] for name in names],
        edges,
        ax=axes,
        stack=True,
        histtype="fill",
        color=[colours[name] for name in names],
        label=[labels.process(name) for name in names],
        edges=False,
    )
    return names


def draw_points(axes: Any, edges: Floats, values: Floats, errors: Floats, label: str | None) -> None:
    """Draw points with errors in the middle of bins, where both are known."""
    centres = (edges[:-1] + edges[1:]) / 2
    known = np.isfinite(values) & np.isfinite(errors)
    axes.errorbar(centres[known], values[known], yerr=errors[known], fmt="o", color="black", label=label, linewidth=1.2)
    axes.set_xlim(edges[0], edges[-1])


def draw_band(axes: Any, edges: Floats, low: Floats, high: Floats, label: str | None) -> None:
    """Draw a hatched band."""
    axes.stairs(
        high, edges, baseline=low, fill=True, hatch="////", facecolor="none", edgecolor="grey", linewidth=0, label=label
    )


def mark_hidden(axes: Any, edges: Floats, counts: Floats) -> None:
    """Mark bins whose data are hidden, which are NaN."""
    hidden = np.flatnonzero(np.isnan(counts))
    for number in hidden:
        label = "blind" if number == hidden[0] else None
        axes.axvspan(edges[number], edges[number + 1], color="grey", alpha=0.25, linewidth=0, zorder=0, label=label)


def round_scale(background: float, signal: float) -> float:
    """Power of ten that brings the signal near the background; 1 where a region has no signal."""
    ratio = background / signal if signal > 0 else 1.0
    return float(10 ** max(0, int(np.floor(np.log10(max(ratio, 1.0))))))


def draw_matrix(drawn: Any, axes: Any, names: Sequence[str], matrix: Floats) -> None:
    """Draw correlations in per cent; what is NaN stays empty."""
    image = axes.imshow(100 * matrix, cmap="RdBu_r", vmin=-100, vmax=100)
    for i, j in np.ndindex(matrix.shape) if len(names) <= MOST_NUMBERED else ():
        if np.isfinite(matrix[i, j]):
            value = round(100 * float(matrix[i, j]))
            colour = "white" if abs(value) > 60 else "black"
            axes.text(j, i, f"{value}", ha="center", va="center", color=colour, fontsize=9.5)
    axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(which="both", top=False, right=False, bottom=False, left=False)
    drawn.colorbar(image, ax=axes, label="correlation (%)", shrink=0.85)


def find_least_shown(templates: TemplateSet) -> float:
    """Where a logarithmic axis may begin, so that the background with the smallest peak is seen: at a tenth of it."""
    peaks = [float(process.nominal.max()) for process in templates.of_role(Role.BACKGROUND)]
    return min((0.1 * peak for peak in peaks if peak > 0), default=math.inf)
