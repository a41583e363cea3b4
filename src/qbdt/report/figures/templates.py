"""Figures of templates: stacked expectation with data before or after the fit, and the envelope of one source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qbdt.arrays import Floats
from qbdt.data import Role
from qbdt.inference import FitSummary
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
from qbdt.report.style import DOWN, SIGNAL, UP, styled

NARROW = 0.01
"""Bins narrower than this share of the axis are drawn with equal widths: they could not be seen otherwise."""

MOST_TICKS = 20
"""Bins that have a number each; of more only some have."""


def stacked(
    templates: TemplateSet,
    summary: FitSummary,
    postfit: bool = True,
    labels: Labels = PLAIN,
    *,
    region: str | None = None,
    shown: Floats | None = None,
) -> Any:
    """Stacked processes, the signal also scaled up as a line; the fitted data, the uncertainty, and the ratio below.

    Parameters
    ----------
    summary
        Result of the fit: that of one region, where there are several.
    postfit
        At the best fit, otherwise before it.
    region
        Name of the region, to be written into the figure.
    shown
        For blind results: recorded events per bin, NaN where they are hidden; these bins are grey.
    """
    nominal = {p.name: p.nominal for p in templates.processes}
    yields = {name: summary.postfit[name] for name in nominal} if postfit else nominal
    error = summary.postfit_error if postfit else summary.prefit_error
    total, axis = np.sum(list(yields.values()), axis=0), _Axis.of(templates)
    counts = summary.counts if shown is None else shown
    with styled():
        drawn, (main, ratio) = make_panels()
        _draw_processes(main, templates, yields, axis, labels)
        draw_band(main, axis.edges, total - error, total + error, "uncertainty")
        kind = "data" if summary.data == "recorded" or shown is not None else "Asimov data"
        draw_points(main, axis.edges, counts, np.sqrt(counts), kind)
        for axes in (main, ratio):
            mark_hidden(axes, axis.edges, counts)
        main.set_ylabel("events / bin")
        main.legend(ncols=2, loc="upper right")
        before = "before the fit, μ = 1" if _has_one_strength(summary) else "before the fit"
        to = " to Asimov data" if kind == "data" and summary.data != "recorded" else ""  # blind: not to what is drawn
        title = f"after the fit{to}{_name_strengths(summary, labels)}" if postfit else before
        above = "" if region is None else f"{labels.region(region)}\n"
        main.text(0.03, 0.95, above + title, transform=main.transAxes, va="top")
        labels.write_above(main)
        _draw_ratio(ratio, axis.edges, counts, total, error)
        axis.label(main, ratio)
    return drawn


def _name_strengths(summary: FitSummary, labels: Labels) -> str:
    if _has_one_strength(summary):
        return f", μ = {summary.mu:.2f}"
    return "".join(f"\n{labels.source(one.name)} = {one.mu:z.2f}" for one in summary.strengths)


def _has_one_strength(summary: FitSummary) -> bool:
    return len(summary.strengths) == 1 and summary.strengths[0].is_strength


def _draw_processes(axes: Any, templates: TemplateSet, yields: Any, axis: _Axis, labels: Labels) -> None:
    """All processes as a stack, and the line of all signals together times a round number."""
    names = draw_stack(axes, templates, yields, axis.edges, labels)
    signals = [p.name for p in templates.of_role(Role.SIGNAL)]
    signal, total = np.sum([yields[name] for name in signals], axis=0), np.sum(list(yields.values()), axis=0)
    top = float(total.max())
    scale = round_scale(top, float(signal.max()))
    label = labels.process(signals[0]) if len(signals) == 1 else "signal"
    if scale > 1:
        colour = labels.fill_colours(names[: -len(signals)][::-1], signals)[signals[0]]
        axes.stairs(scale * signal, axis.edges, color=colour, linewidth=2, label=f"{label} × {scale:g}")
    axes.set_yscale("log")
    largest = yields[names[-len(signals) - 1]]
    floor = min(float(np.min(v[v > 0])) for v in (largest, total))
    floor = min(0.1 * floor, max(find_least_shown(templates), 1e-4 * top))
    low, rows = max(floor, 1e-3), 2 + len(names) // 2
    axes.set_ylim(low, top * (top / low) ** (0.1 + 0.08 * rows))


def _draw_ratio(axes: Any, edges: Floats, counts: Floats, total: Floats, error: Floats) -> None:
    """Data over expectation, where that is positive; the range holds the points, their errors and the band."""
    total = np.where(total > 0, total, np.nan)
    draw_band(axes, edges, 1 - error / total, 1 + error / total, None)
    draw_points(axes, edges, counts / total, np.sqrt(counts) / total, None)
    axes.axhline(1, color="black", linewidth=0.8)
    furthest = np.fmax(np.abs(counts / total - 1) + np.sqrt(counts) / total, error / total)
    reach = min(max(0.1, 1.15 * float(np.nanmax(furthest, initial=0.0))), 1.0)
    axes.set_ylim(1 - reach, 1 + reach)
    axes.set_ylabel("data / exp.", loc="center")


def envelope(templates: TemplateSet, source: str, labels: Labels = PLAIN) -> Any:
    """Background with one source moved up and down, MC error bars, and the signal scaled up, as the paper draws it.

    A source that moves the signal alone, such as its mass, is drawn on the signal.
    """
    import mplhep

    role = templates.moved_role(source)
    nominal, signal = templates.total(role), templates.signal
    mc_error = np.sqrt(np.sum([p.variance for p in templates.of_role(role)], axis=0))
    up, down = (templates.total(role, source, side) for side in ("up", "down"))
    axis, name = _Axis.of(templates), labels.source(source)
    with styled():
        drawn, (main, ratio) = make_panels()
        mplhep.histplot(up, axis.edges, ax=main, color=UP, linestyle="--", label=f"{name} up", edges=False)
        mplhep.histplot(down, axis.edges, ax=main, color=DOWN, linestyle=":", label=f"{name} down", edges=False)
        if role is Role.BACKGROUND and signal.any():
            scale = round_scale(float(nominal.max()), float(signal.max()))
            label = f"signal × {scale:g}" if scale != 1 else "signal"
            mplhep.histplot(scale * signal, axis.edges, ax=main, color=SIGNAL, label=label, edges=False)
        draw_points(main, axis.edges, nominal, mc_error, str(role))
        main.set_yscale("log")
        shown = np.concatenate([nominal, up, down])
        main.set_ylim(0.3 * float(shown[shown > 0].min()), 12 * float(shown.max()))
        main.set_ylabel("events / bin")
        main.legend(ncols=2, loc="upper right")
        labels.write_above(main)
        filled = np.where(nominal > 0, nominal, np.nan)  # a signal may have empty bins
        mplhep.histplot(up / filled, axis.edges, ax=ratio, color=UP, linestyle="--", edges=False)
        mplhep.histplot(down / filled, axis.edges, ax=ratio, color=DOWN, linestyle=":", edges=False)
        draw_points(ratio, axis.edges, np.ones_like(nominal), mc_error / filled, None)
        largest = float(np.nanmax(np.abs(np.concatenate([up, down]) / np.tile(filled, 2) - 1)))
        reach = min(max(0.02, 1.4 * largest, 1.4 * float(np.nanmedian(mc_error / filled))), 1.0)
        ratio.set_ylim(1 - reach, 1 + reach)
        ratio.set_ylabel("var. / nom.", loc="center")
        axis.label(main, ratio)
    return drawn


@dataclass(frozen=True, eq=False)
class _Axis:
    """The axis of the bins: that of the variable, or bin numbers where each fold has its own edges or bins crowd."""

    edges: Floats
    title: str
    numbers: tuple[str, ...] = ()

    @classmethod
    def of(cls, templates: TemplateSet) -> _Axis:
        edges, title = templates.edges, templates.variable
        widths = np.diff(edges)
        if np.array_equal(edges, np.round(edges)) and title.startswith("bin of "):  # 0, 1, 2 …, some perhaps merged
            ends = zip(edges[:-1].astype(int) + 1, edges[1:].astype(int), strict=True)
            numbers = tuple(str(last) if first == last else f"{first}–{last}" for first, last in ends)
            return cls(np.arange(len(edges), dtype=float), title.replace("bin of", "bin of the"), numbers)
        if widths.min() < NARROW * widths.sum():
            return cls(np.arange(len(edges), dtype=float), f"bin of the {title}", tuple(_count(len(widths))))
        return cls(edges, title)

    def label(self, main: Any, below: Any) -> None:
        """Write the title below and, where there are, the numbers of the bins in their middle."""
        below.set_xlabel(self.title)
        if not self.numbers:
            return
        every = -(-len(self.numbers) // MOST_TICKS)
        below.set_xticks(np.arange(len(self.numbers))[::every] + 0.5, self.numbers[::every])
        for axes in (main, below):
            axes.tick_params(axis="x", which="both", length=0)


def _count(n: int) -> list[str]:
    return [str(i + 1) for i in range(n)]
