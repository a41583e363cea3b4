"""Figures of the effects of sources on a variable, with statistical errors, and of the correlations of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from qbdt.arrays import Floats
from qbdt.report.figures.panels import draw_matrix
from qbdt.report.labels import PLAIN, Labels
from qbdt.report.style import DOWN, UP, figure, styled


class SourceShape(NamedTuple):
    """Effect of one source on the events of one role, in bins of a variable."""

    # nominal, up, down: events per bin
    nominal: Floats
    up: Floats
    down: Floats
    # up_error, down_error: statistical errors of the differences from the nominal ones, which know that events are
    # shared
    up_error: Floats
    down_error: Floats


def source_shapes(
    source: str, variable: str, edges: Floats, shapes: Mapping[str, SourceShape], labels: Labels = PLAIN
) -> Any:
    """Up and down of one source over nominal, for each title of `shapes`, with statistical errors of the shifts."""
    with styled():
        drawn, axes = figure(6.5, 1.2 + 2.3 * len(shapes), nrows=len(shapes), sharex=True, squeeze=False)
        for panel, (title, shape) in zip(axes[:, 0], shapes.items(), strict=True):
            _draw_shape(panel, edges, shape, labels.source(source))
            panel.text(0.03, 0.93, title, transform=panel.transAxes, va="top")
        axes[0, 0].legend(loc="upper right", ncols=2, frameon=True, framealpha=0.85, edgecolor="none")
        labels.write_above(axes[0, 0])
        axes[-1, 0].set_xlabel(variable)
    return drawn


def _draw_shape(axes: Any, edges: Floats, shape: SourceShape, name: str) -> None:
    nominal = np.where(shape.nominal > 0, shape.nominal, np.nan)
    sides = ((shape.up, shape.up_error, UP, "--", "up"), (shape.down, shape.down_error, DOWN, ":", "down"))
    furthest = [0.01]
    for values, error, colour, style, side in sides:
        ratio, width = np.nan_to_num(values / nominal, nan=1.0), np.nan_to_num(error / nominal)
        axes.stairs(ratio, edges, baseline=None, color=colour, linestyle=style, linewidth=1.8, label=f"{name} {side}")
        axes.stairs(ratio + width, edges, baseline=ratio - width, fill=True, color=colour, alpha=0.2, linewidth=0)
        told = width < 0.5 if (width < 0.5).any() else np.isfinite(width)  # bins of a few events set no scale
        furthest.append(float(np.quantile((np.abs(ratio - 1) + width)[told], 0.95)))
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_ylim(1 - 1.2 * max(furthest), 1 + 1.5 * max(furthest))
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylabel("varied / nominal", loc="center")


def feature_correlation(names: Sequence[str], matrix: Floats, title: str) -> Any:
    """Linear correlations of features, in per cent; NaN where a feature does not vary."""
    size = len(names)
    with styled():
        drawn, axes = figure(max(5.0, 2.6 + 0.46 * size), max(4.4, 2.0 + 0.46 * size))
        draw_matrix(drawn, axes, names, matrix)
        axes.set_title(title, loc="left")
    return drawn
