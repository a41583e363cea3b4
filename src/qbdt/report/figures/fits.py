"""Figures of a fit: pulls, ranking, correlations, likelihood scans, limits, contours; and all of them to a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.files import choose_file_names
from qbdt.inference import FitResult, FitSummary, Scan
from qbdt.inference.answers import LEVELS, PairScan, UpperLimit
from qbdt.progress import Progress, silent
from qbdt.report.figures.panels import draw_matrix
from qbdt.report.figures.templates import envelope, stacked
from qbdt.report.labels import PLAIN, Labels
from qbdt.report.style import COLOURS, DOWN, SIGNAL, UP, figure, save, styled

NARROW = 7
"""Parameters up to which a matrix of correlations is too narrow for all of the line above."""

ABOVE_AXIS = 38
"""Points between axes that have a second axis on top, with its numbers and title, and the line above both."""


ONE_SIGMA, TWO_SIGMA = "#bfe3b4", "#f5e9a8"
"""Colours of the bands of one and two standard deviations."""


def pulls(summary: FitSummary, labels: Labels = PLAIN) -> Any:
    """Post-fit value and uncertainty of each source in units of its prior, with bands of one and two deviations."""
    sources = summary.sources
    with styled():
        drawn, axes = figure(6.5, 1.6 + 0.32 * max(len(sources), 1))
        rows = np.arange(len(sources))[::-1]
        axes.axvspan(-2, 2, color=TWO_SIGMA, zorder=0)
        axes.axvspan(-1, 1, color=ONE_SIGMA, zorder=0)
        axes.axvline(0, color="black", linewidth=0.8, linestyle="--")
        values, errors = [p.value for p in sources], [p.error for p in sources]
        axes.errorbar(values, rows, xerr=errors, fmt="o", color="black", capsize=3)
        axes.set_yticks(rows, [labels.source(p.name) for p in sources])
        axes.tick_params(axis="y", which="minor", left=False, right=False)
        axes.set_ylim(-0.8, len(sources) + 0.5)
        reach = max([2.5, *(abs(v) + e + 0.3 for v, e in zip(values, errors, strict=True))])
        axes.set_xlim(-reach, reach)
        axes.set_xlabel(r"$(\hat{\theta} - \theta_0)\,/\,\Delta\theta$")
        axes.text(0.02, 0.97, f"fit to {summary.data} data", transform=axes.transAxes, va="top", fontsize=10)
        labels.write_above(axes)
    return drawn


def ranking(summary: FitSummary, top: int = 20, labels: Labels = PLAIN) -> Any:
    """Impacts of the sources on μ, largest first: filled with post-fit, outlined with prior widths; pulls on top."""
    impacts = summary.impacts[:top]
    with styled():
        drawn, axes = figure(7.5, 2.2 + 0.34 * max(len(impacts), 1))
        rows = np.arange(len(impacts))[::-1]
        for side, colour in (("up", UP), ("down", DOWN)):
            sign = "+" if side == "up" else "−"
            prefit = [getattr(i, f"prefit_{side}") for i in impacts]
            post = [getattr(i, side) for i in impacts]
            label = rf"$\theta = \hat{{\theta}} {sign}$"
            axes.barh(rows, prefit, height=0.72, fill=False, edgecolor=colour, label=f"{label} pre-fit σ")
            axes.barh(rows, post, height=0.72, color=colour, alpha=0.55, label=f"{label} post-fit σ")
        largest = max([1e-9, *(abs(v) for i in impacts for v in (i.prefit_up, i.prefit_down, i.up, i.down))])
        axes.set_xlim(-1.3 * largest, 1.3 * largest)
        axes.set_ylim(-0.7, len(impacts) + 1.6)
        axes.set_yticks(rows, [labels.source(i.source) for i in impacts])
        axes.tick_params(axis="y", which="minor", left=False, right=False)
        first = summary.strengths[0]
        change = r"$\Delta\hat{\mu}$" + ("" if first.name == "mu" else f" ({first.name})")
        axes.set_xlabel(change if first.is_strength else rf"$\Delta$ {labels.source(first.name)}")
        axes.legend(loc="upper center", ncols=2, columnspacing=1.5, handlelength=1.5)
        above = axes.twiny()
        parameters = [summary.parameter(i.source) for i in impacts]
        above.errorbar(
            [p.value for p in parameters], rows, xerr=[p.error for p in parameters], fmt="o", color="black", capsize=2
        )
        for at in (-1, 0, 1):
            above.axvline(
                at, ymax=(len(impacts) + 0.2) / (len(impacts) + 2.3), color="grey", linewidth=0.7, linestyle=":"
            )
        reach = max([2.0, *(1.05 * (abs(p.value) + p.error) for p in parameters)])
        above.set_xlim(-reach, reach)
        above.set_xlabel(r"$(\hat{\theta} - \theta_0)\,/\,\Delta\theta$ (points)")
        labels.write_above(axes, lift=ABOVE_AXIS)
    return drawn


def correlation(summary: FitSummary, labels: Labels = PLAIN) -> Any:
    """Correlations between the signal strength and the sources after the fit, in per cent."""
    kept = [i for i, p in enumerate(summary.parameters) if p.kind in ("poi", "source", "free")]
    kept.sort(key=lambda i: summary.parameters[i].kind != "poi")
    parameters = [summary.parameters[i] for i in kept]
    names = [r"$\mu$" if p.kind == "poi" and p.name == "mu" else labels.source(p.name) for p in parameters]
    matrix = summary.correlation[np.ix_(kept, kept)]
    size = len(kept)
    with styled():
        drawn, axes = figure(max(5.0, 2.6 + 0.52 * size), max(4.2, 1.8 + 0.52 * size))
        draw_matrix(drawn, axes, names, matrix)
        narrow = size <= NARROW  # no room for luminosity and energy beside the experiment
        (replace(labels, energy=None, luminosity=None) if narrow else labels).write_above(axes)
    return drawn


def likelihood_scan(scan: Scan, summary: FitSummary, labels: Labels = PLAIN) -> Any:
    """Profile likelihood of the signal strength, with all sources free and with them held at their best values."""
    from scipy.interpolate import CubicSpline

    with styled():
        drawn, axes = figure(6.5, 4.8)
        fine = np.linspace(scan.mu[0], scan.mu[-1], 400)
        axes.plot(fine, CubicSpline(scan.mu, scan.full)(fine), color=COLOURS[0], label="full")
        axes.plot(fine, CubicSpline(scan.mu, scan.stat)(fine), color=SIGNAL, linestyle="--", label="sources held")
        for level in (1, 4):
            axes.axhline(level, color="grey", linewidth=0.8, linestyle=":")
            axes.text(scan.mu[-1], level, rf" {int(np.sqrt(level))}$\sigma$", va="center", ha="left", color="grey")
        low, high = summary.interval or (-summary.sigma_mu, summary.sigma_mu)
        first = summary.strengths[0]
        name = r"$\mu$" if len(summary.strengths) == 1 and first.is_strength else labels.source(first.name)
        text = rf"{name} $= {summary.mu:z.2f}\,^{{+{high:.2f}}}_{{{low:.2f}}}$"
        axes.text(0.5, 0.93, text, transform=axes.transAxes, ha="center", va="top", fontsize=14)
        axes.text(0.5, 0.82, f"{summary.data} data", transform=axes.transAxes, ha="center", va="top")
        axes.set_xlim(scan.mu[0], scan.mu[-1])
        axes.set_ylim(0, max(6.0, 1.1 * float(scan.full.max())))
        axes.set_xlabel(f"signal strength {name}" if first.is_strength else name)
        axes.set_ylabel(r"$-2\,\Delta\ln L$")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.75))
        labels.write_above(axes)
    return drawn


def limit_curve(limit: UpperLimit, labels: Labels = PLAIN) -> Any:
    """CLs against the signal strength: expected with bands of one and two deviations, observed where it is known."""
    low_2, low_1, median, high_1, high_2 = limit.expected_cls.T
    with styled():
        drawn, axes = figure(6.5, 4.8)
        axes.fill_between(limit.mu, low_2, high_2, color=TWO_SIGMA, label=r"expected $\pm 2\sigma$", linewidth=0)
        axes.fill_between(limit.mu, low_1, high_1, color=ONE_SIGMA, label=r"expected $\pm 1\sigma$", linewidth=0)
        axes.plot(limit.mu, median, color="black", linestyle="--", label="expected")
        if limit.observed is not None:
            axes.plot(limit.mu, limit.observed_cls, color="black", marker="o", markersize=3, label="observed")
        axes.axhline(1 - limit.level, color=SIGNAL, linewidth=1)
        shown = f"expected limit {limit.expected[2]:.3g}"
        shown += "" if limit.observed is None else f"\nobserved limit {limit.observed:.3g}"
        axes.text(0.03, 0.05, shown, transform=axes.transAxes, va="bottom")
        axes.set_yscale("log")
        axes.set_ylim(1e-3, 2.0)
        axes.set_xlim(limit.mu[0], limit.mu[-1])
        axes.set_xlabel(limit.strength)
        axes.set_ylabel(r"$CL_s$")
        axes.legend(loc="upper right")
        labels.write_above(axes)
    return drawn


def strength_contours(scan: PairScan, labels: Labels = PLAIN) -> Any:
    """Contours of two parameters that hold the truth with 68 % and 95 %, the best fit, and the nominal values."""
    with styled():
        drawn, axes = figure(6.0, 5.2)
        known = np.ma.masked_invalid(scan.rise)
        for (share, level), style in zip(LEVELS.items(), ("-", "--"), strict=True):
            axes.contour(scan.x, scan.y, known, levels=[level], colors=[COLOURS[0]], linestyles=[style])
            axes.plot([], [], color=COLOURS[0], linestyle=style, label=f"{100 * share:.0f} %")
        axes.plot(*scan.best, marker="+", color="black", markersize=11, linestyle="none", label="best fit")
        axes.plot(*scan.nominal, marker="*", color=SIGNAL, markersize=9, linestyle="none", label="nominal")
        axes.set_xlabel(labels.source(scan.parameters[0]))
        axes.set_ylabel(labels.source(scan.parameters[1]))
        axes.legend(loc="upper right")
        labels.write_above(axes)
    return drawn


def write_figures(
    result: FitResult, folder: Path | str, labels: Labels = PLAIN, progress: Progress = silent
) -> list[Path]:
    """Draw and save every figure of a fit, as PNG and PDF.

    These are templates, scan, and for fits with sources pulls, ranking, correlations and envelopes.
    """
    best, root = result.best, Path(folder)
    figures: dict[str, Any] = {}
    for name in result.measurement.regions:
        figures |= _region_figures(result, name, labels)
    if result.scan is not None:
        figures["scan"] = likelihood_scan(result.scan, best, labels)
    if best.sources:
        figures["pulls"], figures["correlation"] = pulls(best, labels), correlation(best, labels)
        figures |= {f"ranking{ending}": ranking(one, labels=labels) for ending, one in _by_strength(best)}
    if result.answers is not None:
        figures |= {f"limit_{one.strength}": limit_curve(one, labels) for one in result.answers.limits}
        figures |= {f"contour_{'_'.join(c.parameters)}": strength_contours(c, labels) for c in result.answers.contours}
    saved = []
    with progress("drawing", len(figures)) as advance:
        for name, drawn in figures.items():
            saved += [save(drawn, root / f"{name}.{suffix}") for suffix in ("png", "pdf")]
            advance(1)
    return saved


def _by_strength(summary: FitSummary) -> list[tuple[str, FitSummary]]:
    """Results with one strength at a time, and the ending of the names of their files."""
    if len(summary.strengths) == 1:
        return [("", summary)]
    return [(f"_{one.name}", replace(summary, strengths=(one,))) for one in summary.strengths]


def _region_figures(result: FitResult, name: str, labels: Labels) -> dict[str, Any]:
    """Templates before and after the fit, and the envelope of each source, of one region."""
    regions = result.measurement.regions
    templates, several = regions[name], len(regions) > 1
    summary = result.best.region(name) if several else result.best
    shown = None if result.shown is None else result.shown[name]
    ending, own = (f"_{name}", name) if several else ("", None)
    figures = {
        f"{when}{ending}": stacked(templates, summary, when == "postfit", labels, region=own, shown=shown)
        for when in ("prefit", "postfit")
    }
    drawn = [source for source in templates.sources if not several or templates.changes_shape(source)]
    for source, file in zip(drawn, choose_file_names(drawn), strict=True):
        figures[f"envelope_{file}{ending}"] = envelope(templates, source, labels)
    return figures
